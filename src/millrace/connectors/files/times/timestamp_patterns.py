"""Times in files by a pattern of Spark's, such as `dd/MM/yyyy HH:mm`: over whole columns, by one regular expression.

Rules:
- Letters are fields (y, M, d, H, h, m, s, S, a, X), text in single quotes and other characters stand for themselves.
- A pattern has a year, a month and a day; hours and what is smaller are 0 without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError
from millrace.kernel.elements import TIMESTAMP

Values = Any  # pa.Array; pyarrow has no types to check against

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS = {
    **dict.fromkeys(("yyyy", "uuuu"), ("year", r"\d{4}")),
    "yy": ("short_year", r"\d{2}"),
    "MMM": ("name", "(?i:" + "|".join(_MONTHS) + ")"),
    "MM": ("month", r"\d{2}"),
    "M": ("month", r"\d{1,2}"),
    "dd": ("day", r"\d{2}"),
    "d": ("day", r"\d{1,2}"),
    "HH": ("hour", r"\d{2}"),
    "H": ("hour", r"\d{1,2}"),
    "hh": ("half_day_hour", r"\d{2}"),
    "h": ("half_day_hour", r"\d{1,2}"),
    "a": ("half_day", "(?i:am|pm)"),
    "mm": ("minute", r"\d{2}"),
    "m": ("minute", r"\d{1,2}"),
    "ss": ("second", r"\d{2}"),
    "s": ("second", r"\d{1,2}"),
    **dict.fromkeys(("X", "XX", "XXX", "xxx", "Z"), ("zone", r"Z|[+-]\d{2}:?\d{2}")),
}
"""Fields by their letters: the name of the group, and what it matches."""
_PART = re.compile(r"'((?:''|[^'])*)'|([A-Za-z])\2*|.", re.DOTALL)


@dataclass(frozen=True)
class TimestampPattern:
    """A pattern as a regular expression with a group for each of its fields."""

    expression: str
    fields: frozenset[str]

    @property
    def has_zone(self) -> bool:
        """True if the text says its zone."""
        return "zone" in self.fields

    def read(self, text: Values) -> Values:
        """Text as timestamps; raises Arrow's error where some does not fit."""
        found = pc.extract_regex(text, f"^\\s*{self.expression}\\s*$")
        if found.null_count > text.null_count:
            raise pa.ArrowInvalid("text does not match the pattern")
        parts = {name: pc.struct_field(found, name) for name in self.fields}
        date = pc.binary_join_element_wise(_year(parts), _month(parts), _padded(parts, "day", "01"), "-")
        time = pc.binary_join_element_wise(_hour(parts), _padded(parts, "minute"), _padded(parts, "second"), ":")
        fraction = pc.utf8_slice_codeunits(parts["fraction"], 0, 6) if "fraction" in parts else "0"
        zone = pc.replace_substring_regex(parts["zone"], r"^(...)(\d\d)$", r"\1:\2") if "zone" in parts else "Z"
        whole = pc.binary_join_element_wise(pc.binary_join_element_wise(date, time, "T"), fraction, ".")
        return pc.cast(pc.binary_join_element_wise(whole, zone, ""), TIMESTAMP)


def _padded(parts: dict[str, Values], name: str, otherwise: str = "00") -> Values:
    return pc.utf8_lpad(parts[name], 2, "0") if name in parts else otherwise


def _year(parts: dict[str, Values]) -> Values:
    return parts["year"] if "year" in parts else pc.binary_join_element_wise("20", parts["short_year"], "")


def _month(parts: dict[str, Values]) -> Values:
    if "name" not in parts:
        return _padded(parts, "month")
    number = pc.index_in(pc.utf8_lower(parts["name"]), pa.array(_MONTHS))
    return pc.utf8_lpad(pc.cast(pc.add(number, 1), pa.string()), 2, "0")


def _hour(parts: dict[str, Values]) -> Values:
    if "half_day_hour" not in parts:
        return _padded(parts, "hour")
    hour = pc.cast(parts["half_day_hour"], pa.int32())
    hour = pc.if_else(pc.equal(hour, 12), 0, hour)
    later = pc.equal(pc.utf8_lower(parts["half_day"]), "pm")
    return pc.utf8_lpad(pc.cast(pc.if_else(later, pc.add(hour, 12), hour), pa.string()), 2, "0")


def is_pattern(text: str) -> bool:
    """True if a text is meant as a pattern: it names a year.

    >>> is_pattern("dd/MM/yyyy"), is_pattern("epoch_seconds")
    (True, False)
    """
    return re.search(r"yy|uuuu", text) is not None


@lru_cache
def timestamp_pattern(text: str) -> TimestampPattern:
    """A pattern; refuses one that does not say a whole date.

    >>> timestamp_pattern("d.M.yyyy HH:mm").read(pa.array(["1.12.2024 07:30"])).cast(pa.string()).to_pylist()
    ['2024-12-01 07:30:00.000000Z']
    """
    expression, fields = "", list[str]()
    for part in _PART.finditer(text):
        name, matches = _field(part[0], text) if part[2] else ("", "")
        if not name:
            expression += re.escape(part[0] if part[1] is None else part[1].replace("''", "'") or "'")
            continue
        fields.append(name)
        expression += f"(?P<{name}>{matches})"
    _check(text, fields)
    return TimestampPattern(expression, frozenset(fields))


def _field(letters: str, text: str) -> tuple[str, str]:
    if re.fullmatch("S{1,9}", letters):
        return "fraction", rf"\d{{{len(letters)}}}"
    if letters == "T":
        return "", ""
    if letters not in _FIELDS:
        raise _wrong(text, f'"{letters}" is no field')
    return _FIELDS[letters]


def _check(text: str, fields: list[str]) -> None:
    twice = next((name for name in fields if fields.count(name) > 1), None)
    if twice is not None:
        raise _wrong(text, f"it has the {twice.replace('_', ' ')} twice")
    if not {"month", "name"} & {*fields} or "day" not in fields:
        raise _wrong(text, "it has no month or no day")
    if ("half_day_hour" in fields) != ("half_day" in fields):
        raise _wrong(text, "hours up to 12 (h) come with AM or PM (a)")


def _wrong(text: str, reason: str) -> RequestError:
    return RequestError(
        f'option "timestamp_format" does not take "{text}": {reason}',
        hint="Write a pattern such as dd/MM/yyyy HH:mm:ss.SSS, yyyyMMdd'T'HHmmss or MM/dd/yy hh:mm a.",
    )
