"""Lengths of time: `5 MINUTES`, `INTERVAL '5' SECOND`, `250ms`, as integer microseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from millrace.errors import Place, QueryError

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
_NO_FIXED_LENGTH = {"month", "months", "quarter", "quarters", "year", "years"}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")
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


def microseconds(amount: str, unit: str, place: Place | None) -> int:
    """`amount` of a unit in microseconds; refuses units without a fixed length."""
    name = unit.lower()
    if name in _NO_FIXED_LENGTH:
        raise QueryError(f'a "{name}" has no fixed length', hint="Use DAYS or WEEKS, for example 30 DAYS.", place=place)
    if name not in UNITS:
        raise QueryError(
            f'"{unit}" is not a unit of time',
            hint="The units are microseconds, milliseconds, seconds, minutes, hours, days and weeks.",
            place=place,
        )
    length = int(Decimal(amount) * UNITS[name])
    if abs(length) > _LONGEST:
        raise QueryError(
            f'"{amount} {unit}" is too long', hint="The longest interval is 2^63 microseconds.", place=place
        )
    return length
