"""Texts as times by Spark's patterns, the parts of all texts at once by one regular expression."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value, cast, where
from millrace.kernel.columns.functions.calendar_functions import MONTH_NAMES, SECOND, make_time, micros_of, times_of
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct
from millrace.kernel.columns.nested.nested_columns import over_columns

_WORDS = re.compile(r"'(?:''|[^'])*'|([a-zA-Z])\1*|[^a-zA-Z']")
_MONTHS = [name[:3] for name in MONTH_NAMES]
_FIELDS = {
    **{"y" * count: ("year", rf"\d{{{max(count, 1)},9}}" if count != 4 else r"\d{4}") for count in range(3, 7)},
    "y": ("year", r"\d{1,9}"), "yy": ("short_year", r"\d{2}"),
    "M": ("month", r"\d{1,2}"), "MM": ("month", r"\d{2}"), "MMM": ("month_name", "|".join(_MONTHS)),
    "MMMM": ("full_name", "|".join(MONTH_NAMES)), "d": ("day", r"\d{1,2}"), "dd": ("day", r"\d{2}"),
    "H": ("hour", r"\d{1,2}"), "HH": ("hour", r"\d{2}"), "h": ("half", r"\d{1,2}"), "hh": ("half", r"\d{2}"),
    "a": ("noon", "AM|PM|am|pm"), "m": ("minute", r"\d{1,2}"), "mm": ("minute", r"\d{2}"),
    "s": ("second", r"\d{1,2}"), "ss": ("second", r"\d{2}"),
    **{"S" * count: ("fraction", rf"\d{{1,{count}}}") for count in range(1, 10)},
    **dict.fromkeys(("X", "XX", "XXX", "Z", "x", "xx", "xxx"), ("zone", r"Z|[+-]\d{2}(?::?\d{2})?")),
}  # fmt: skip
_FIELDS["u"], _FIELDS["uuuu"], _FIELDS["L"], _FIELDS["LL"] = (_FIELDS[same] for same in ("y", "yyyy", "M", "MM"))


@lru_cache(maxsize=256)
def _regular_expression(pattern: str) -> tuple[str, frozenset[str]]:
    """A pattern as a regular expression with a group for each field, and the fields."""
    words = [found[0] for found in _WORDS.finditer(pattern)]
    if "".join(words) != pattern:
        raise pa.ArrowInvalid(f"'{pattern}' is not a pattern of a time")
    names: list[str] = []
    expression = "".join(_part(word, names) for word in words)
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid(f"the pattern '{pattern}' has a field twice")
    return f"^{expression}$", frozenset(names)


def _part(word: str, names: list[str]) -> str:
    if word == "''":
        return "'"
    if word[0] == "'":
        return re.escape(word[1:-1].replace("''", "'"))
    if not word[0].isalpha() or not word[0].isascii():
        return {"[": "(?:", "]": ")?"}.get(word) or re.escape(word)
    if word not in _FIELDS:
        raise pa.ArrowInvalid(f'no field of a time that is read is "{word}"')
    name, digits = _FIELDS[word]
    names.append(name)
    return f"(?P<{name}>{digits})"


def check_pattern(pattern: str) -> None:
    """Refuse a pattern by which no text can be read, with `pa.ArrowInvalid`."""
    _regular_expression(pattern)


def parse_times(text: Value, pattern: Value) -> Value:
    """Texts as times by a pattern; null where they do not follow it."""
    expression, names = _regular_expression(pattern.as_py())

    @over_columns
    def compute(texts: pa.Array) -> pa.Array:
        found = pc.extract_regex(texts, expression) if names else pa.nulls(len(texts))
        parts = {name: pc.struct_field(found, [name]) for name in names}
        times = make_time(*_date(parts, len(texts)), *_clock(parts, len(texts)))
        known = pc.match_substring_regex(texts, expression)
        return where(known, _in_zone(times, parts.get("zone")))

    return compute(text)


def _whole(parts: dict[str, pa.Array], name: str, otherwise: int, count: int) -> pa.Array:
    if name not in parts:
        return pa.array(np.full(count, otherwise), pa.int64())
    digits = parts[name]
    given = pc.cast(where(pc.not_equal(digits, ""), digits), pa.int64())
    return given.fill_null(otherwise)


def _date(parts: dict[str, pa.Array], count: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    year = _whole(parts, "year", 1970, count)
    if "short_year" in parts:
        year = pc.add(_whole(parts, "short_year", 70, count), 2000)
    month = _whole(parts, "month", 1, count)
    for name, names in (("month_name", _MONTHS), ("full_name", MONTH_NAMES)):
        if name in parts:
            month = pc.add(pc.cast(pc.index_in(parts[name], pa.array(names)), pa.int64()), 1)
    return year, month, _whole(parts, "day", 1, count)


def _clock(parts: dict[str, pa.Array], count: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    hour = _whole(parts, "hour", 0, count)
    if "half" in parts:
        half = _whole(parts, "half", 12, count)
        allowed = pc.and_(pc.greater_equal(half, 1), pc.less_equal(half, 12))
        past = pc.equal(pc.utf8_upper(parts["noon"]), "PM") if "noon" in parts else pa.repeat(False, count)
        within = pc.if_else(pc.equal(half, 12), 0, half)
        hour = where(allowed, pc.add(within, pc.if_else(past, 12, 0)))
    micros = _whole({"fraction": _six_digits(parts)} if "fraction" in parts else {}, "fraction", 0, count)
    second = _whole(parts, "second", 0, count)
    whole = where(pc.less(second, 60), pc.add(pc.multiply(second, SECOND), micros))
    exact = pc.multiply(pc.cast(whole, pa.decimal128(19, 0)), pa.scalar(Decimal("0.000001")))
    return hour, _whole(parts, "minute", 0, count), pc.cast(exact, pa.decimal128(16, 6))


def _six_digits(parts: dict[str, pa.Array]) -> pa.Array:
    return pc.utf8_slice_codeunits(pc.utf8_rpad(parts["fraction"], 6, "0"), 0, 6)


def _in_zone(times: pa.Array, zone: pa.Array | None) -> pa.Array:
    """Times by the clock of a zone, in UTC."""
    if zone is None:
        return times
    minutes = by_distinct(pa.int64())(_minutes)(zone)
    micros = micros_of(times) - np.asarray(minutes.fill_null(0)) * 60 * SECOND
    return times_of(micros, np.asarray(times.is_null()))


def _minutes(offset: str) -> int:
    digits = re.sub(r"\D", "", offset).ljust(4, "0")
    return (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if offset.startswith("-") else 1)


def _seconds(text: Value, pattern: Value) -> Value:
    """Seconds since 1970, cut off downwards."""
    micros = over_columns(lambda column: pa.array(micros_of(column) // SECOND, mask=np.asarray(column.is_null())))
    return micros(parse_times(text, pattern))


TIME_PATTERN_FUNCTIONS: dict[str, Kernel] = {
    "parse_timestamp": parse_times,
    "parse_date": lambda text, pattern: cast(parse_times(text, pattern), pa.date32()),
    "parse_unix_seconds": _seconds,
}
