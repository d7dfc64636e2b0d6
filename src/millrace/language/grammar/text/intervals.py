"""Lengths of time: `5 MINUTES`, `INTERVAL '5' SECOND`, `250ms`, as integer microseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from millrace.errors import Place, QueryError, did_you_mean

_SPELLINGS: dict[int, tuple[str, ...]] = {
    1: ("us", "microsecond", "microseconds"),
    1_000: ("ms", "millisecond", "milliseconds"),
    1_000_000: ("s", "sec", "secs", "second", "seconds"),
    60_000_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000_000: ("h", "hour", "hours"),
    86_400_000_000: ("d", "day", "days"),
    604_800_000_000: ("w", "week", "weeks"),
}
UNITS: dict[str, int] = {name: length for length, names in _SPELLINGS.items() for name in names}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_LONGEST = 2**63 - 1


def parse_interval(text: str) -> int:
    """The microseconds of an interval as it is written in a query.

    >>> parse_interval("1 minute"), parse_interval("INTERVAL '5' SECOND"), parse_interval("250ms")
    (60000000, 5000000, 250000)
    """
    place = Place(1, 1, text, text)
    body = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).replace("'", " ").replace('"', " ")
    return interval_of_words(body, place)


def interval_of_words(text: str, place: Place | None) -> int:
    """The microseconds of `1 hour 30 minutes` and the like."""
    total, position = 0, 0
    while found := _PART.match(text, position):
        total += microseconds(found[1], found[2], place)
        position = found.end()
    if position == 0 or text[position:].strip():
        raise QueryError(
            f'"{text.strip()}" is not a length of time',
            hint="Write a number and a unit, for example 5 MINUTES or 250 MILLISECONDS.",
            place=place,
        )
    return total


MONTHS_OF = {"month": 1, "months": 1, "quarter": 3, "quarters": 3, "year": 12, "years": 12}
_DIGITS = r"(\d+)"
_CLOCK = ("day", "hour", "minute", "second")
_NO_SUCH = (
    "Write for example INTERVAL '3:30' MINUTE TO SECOND, INTERVAL '1 02:03:04.5' DAY TO SECOND or '2-3' YEAR TO MONTH."
)


def spanned(text: str, first: str, last: str, place: Place | None) -> tuple[int, bool]:
    """The value of `'1 02:03' DAY TO MINUTE` or `'2-3' YEAR TO MONTH`, and whether it is a number of months."""
    first, last = first.lower(), last.lower()
    names: tuple[str, ...]
    if (first, last) == ("year", "month"):
        names, most, pattern = ("year", "month"), {"month": 12}, r"(\d+)-(\d+)"
    elif first in _CLOCK and last in _CLOCK[_CLOCK.index(first) + 1 :]:
        names = _CLOCK[_CLOCK.index(first) : _CLOCK.index(last) + 1]
        most = {"hour": 24, "minute": 60, "second": 60}
        number = {"second": r"(\d+(?:\.\d{1,9})?)"}
        separated = [f"{' ' if each == 'hour' else ':'}{number.get(each, _DIGITS)}" for each in names[1:]]
        pattern = _DIGITS + "".join(separated)
    else:
        raise QueryError(f'"{first} TO {last}" is no range of an interval', hint=_NO_SUCH, place=place)
    found = re.fullmatch(rf"\s*([+-]?){pattern}\s*", text)
    parts = [Decimal(each) for each in found.groups()[1:]] if found else []
    if found is None or any(part >= most[name] for name, part in list(zip(names, parts, strict=True))[1:]):
        raise QueryError(f'"{text}" is not "{first} TO {last}"', hint=_NO_SUCH, place=place)
    units = MONTHS_OF if first == "year" else UNITS
    size = int(sum(part * units[name] for name, part in zip(names, parts, strict=True)))
    return -size if found[1] == "-" else size, first == "year"


def months_in(words: Sequence[str]) -> tuple[int, int] | None:
    """The months of `2 YEARS 3 MONTHS` and the like, and how many words these are; None for anything else.

    >>> months_in(["2", "YEARS", "3", "months", "FROM"]), months_in(["1 year 2 months", "AS"]), months_in(["5", "DAYS"])
    ((27, 4), (14, 1), None)
    """
    inside = words[0].split() if words else []
    if len(inside) > 1:
        found = months_in(inside)
        return (found[0], 1) if found and found[1] == len(inside) else None
    total, count = 0, 0
    while len(words) > count + 1 and _WHOLE.fullmatch(words[count]) and words[count + 1].lower() in MONTHS_OF:
        total += int(words[count]) * MONTHS_OF[words[count + 1].lower()]
        count += 2
    return (total, count) if count else None


def microseconds(amount: str, unit: str, place: Place | None) -> int:
    """`amount` of a unit in microseconds; refuses units without a fixed length."""
    name = unit.lower()
    if name in MONTHS_OF:
        raise QueryError(f'a "{name}" has no fixed length', hint="Use DAYS or WEEKS, for example 30 DAYS.", place=place)
    if name not in UNITS:
        meant = did_you_mean(name, [*UNITS], near=0.75)
        units = "The units are microseconds, milliseconds, seconds, minutes, hours, days and weeks."
        raise QueryError(f'"{unit}" is not a unit of time', hint=meant + units, place=place)
    length = int(Decimal(amount) * UNITS[name])
    if abs(length) > _LONGEST:
        raise QueryError(
            f'"{amount} {unit}" is too long', hint="The longest interval is 2^63 microseconds.", place=place
        )
    return length
