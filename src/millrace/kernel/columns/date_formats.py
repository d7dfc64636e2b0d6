"""Times as text, by Spark's patterns (`date_format`) and PostgreSQL's (`to_char`), over whole columns.

A pattern becomes parts, each a text or a field of the time. Few of a column's times differ in the fields that a pattern
names, so only the different ones are written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value, cast
from millrace.kernel.elements import TIMESTAMP

Write = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class Field:
    """A field of a time: the unit below which nothing matters to it, and how it is written.

    That is a directive of strftime, or a function.
    """

    unit: str
    directive: str = ""
    write: Write | None = None


def _number(unit: str, part: Callable[[pa.Array], pa.Array]) -> Field:
    return Field(unit, write=lambda times: pc.cast(part(times), pa.string()))


def _fraction(digits: int) -> Field:
    def write(times: pa.Array) -> pa.Array:
        since_second = pc.subtract(pc.cast(times, pa.int64()), pc.cast(_whole_seconds(times), pa.int64()))
        text = pc.utf8_lpad(pc.cast(since_second, pa.string()), 6, "0")
        return pc.utf8_slice_codeunits(pc.utf8_rpad(text, 9, "0"), 0, digits)

    return Field("microsecond", write=write)


def _whole_seconds(times: pa.Array) -> pa.Array:
    return pc.floor_temporal(times, unit="second")


def _half_day_hour(times: pa.Array) -> pa.Array:
    hour = pc.hour(times)
    past_noon = pc.if_else(pc.greater(hour, 12), pc.subtract(hour, 12), hour)
    return pc.if_else(pc.equal(hour, 0), 12, past_noon)


SPARK_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("yyyy", "uuuu"), Field("year", "%Y")),
    **dict.fromkeys(("y", "u"), _number("year", pc.year)),
    "yy": Field("year", "%y"),
    **dict.fromkeys(("q", "Q"), _number("quarter", pc.quarter)),
    "M": _number("month", pc.month),
    "MM": Field("month", "%m"),
    "MMM": Field("month", "%b"),
    "MMMM": Field("month", "%B"),
    "d": _number("day", pc.day),
    "dd": Field("day", "%d"),
    "D": _number("day", pc.day_of_year),
    "DDD": Field("day", "%j"),
    **dict.fromkeys(("E", "EE", "EEE"), Field("day", "%a")),
    "EEEE": Field("day", "%A"),
    "a": Field("hour", "%p"),
    "H": _number("hour", pc.hour),
    "HH": Field("hour", "%H"),
    "h": _number("hour", _half_day_hour),
    "hh": Field("hour", "%I"),
    "k": _number("hour", lambda times: pc.if_else(pc.equal(pc.hour(times), 0), 24, pc.hour(times))),
    "K": _number("hour", lambda times: pc.subtract(pc.hour(times), pc.if_else(pc.less(pc.hour(times), 12), 0, 12))),
    "m": _number("minute", pc.minute),
    "mm": Field("minute", "%M"),
    "s": _number("second", pc.second),
    "ss": Field("second", "%S"),
    **{"S" * digits: _fraction(digits) for digits in range(1, 10)},
}
"""The fields of `date_format`."""
SPARK_FIELDS |= {name.replace("M", "L"): field for name, field in SPARK_FIELDS.items() if name[0] == "M"}
_UTC = {
    **dict.fromkeys(("X", "XX", "XXX"), "Z"), "x": "+00", **dict.fromkeys(("xx", "Z", "ZZ", "ZZZ"), "+0000"),
    "xxx": "+00:00", "VV": "UTC", **dict.fromkeys(("z", "zz", "zzz"), "UTC"),
}  # fmt: skip
"""How the zone is written, which is always UTC."""

POSTGRES_FIELDS: dict[str, Field] = {
    name: SPARK_FIELDS[same]
    for name, same in {
        "YYYY": "yyyy", "YY": "yy", "Q": "q", "MM": "MM", "DDD": "DDD", "DD": "dd", "HH24": "HH", "HH12": "hh",
        "HH": "hh", "MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a",
    }.items()
}  # fmt: skip
"""The fields of `to_char`, in letters of any case."""

_DIGITS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}
"""The directives that always have so many digits."""
_UNITS = ("year", "quarter", "month", "day", "hour", "minute", "second", "microsecond")
_SPARK_PARTS = re.compile(r"'(?:''|[^'])*'|([a-zA-Z])\1*|[^a-zA-Z']+")
_POSTGRES_PARTS = re.compile(
    r'"[^"]*"|' + "|".join(sorted(POSTGRES_FIELDS, key=len, reverse=True)) + r'|[^a-zA-Z"]+', re.IGNORECASE
)


def date_format(value: Value, pattern: Value) -> Value:
    """A time as text by a pattern of Spark's, such as yyyy-MM-dd HH:mm."""
    return _written(value, spark_parts(pattern.as_py()))


def to_char(value: Value, pattern: Value) -> Value:
    """A time as text by a pattern of PostgreSQL's, such as YYYY-MM-DD HH24:MI."""
    return _written(value, postgres_parts(pattern.as_py()))


@lru_cache(maxsize=256)
def spark_parts(pattern: str) -> tuple[str | Field, ...]:
    """The texts and fields of a pattern; refuses letters that name no field and are not in single quotes."""
    return tuple(_spark_part(word) for word in _words(pattern, _SPARK_PARTS))


def _spark_part(word: str) -> str | Field:
    if word == "''":
        return "'"
    if word.startswith("'"):
        return word[1:-1].replace("''", "'")
    if not word[0].isascii() or not word[0].isalpha():
        return word
    if word in _UTC:
        return _UTC[word]
    if word not in SPARK_FIELDS:
        raise pa.ArrowInvalid(f'no field of a time is "{word}"')
    return SPARK_FIELDS[word]


@lru_cache(maxsize=256)
def postgres_parts(pattern: str) -> tuple[str | Field, ...]:
    """The texts and fields of a pattern; refuses letters that name no field and are not in double quotes."""
    return tuple(POSTGRES_FIELDS.get(word.upper(), word.strip('"')) for word in _words(pattern, _POSTGRES_PARTS))


def _words(pattern: str, parts: re.Pattern[str]) -> list[str]:
    """A pattern cut into its parts, without a gap."""
    words = [found.group() for found in parts.finditer(pattern)]
    rest = pattern
    for word in words:
        if not rest.startswith(word):
            break
        rest = rest.removeprefix(word)
    if rest:
        raise pa.ArrowInvalid(f'no field of a time is "{rest}"')
    return words


def _written(value: Value, parts: tuple[str | Field, ...]) -> Value:
    if isinstance(value, pa.Scalar):
        return _written(pa.array([value.as_py()], value.type), parts)[0]
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    finest = max((_UNITS.index(part.unit) for part in parts if isinstance(part, Field)), default=0)
    times = pc.floor_temporal(as_time(value), unit=_UNITS[finest])
    different = pc.dictionary_encode(times)
    written = [_text(list(run), different.dictionary) for _, run in groupby(parts or [""], key=_has_directive)]
    return pc.binary_join_element_wise(*written, "", "").take(different.indices)


def _has_directive(part: str | Field) -> bool:
    return isinstance(part, str) or bool(part.directive)


def _text(run: list[str | Field], times: pa.Array) -> pa.Array:
    """Parts that strftime writes all at once, or others one after the other."""
    if not _has_directive(run[0]):
        alone = [part.write(times) for part in run if isinstance(part, Field) and part.write is not None]
        return pc.binary_join_element_wise(*alone, "")
    if all(isinstance(part, str) or part.directive in _DIGITS for part in run):
        return _of_digits(run, times)
    directives = "".join(part.directive if isinstance(part, Field) else part.replace("%", "%%") for part in run)
    # In whole seconds, for Arrow's %S would write the fraction too.
    return pc.strftime(pc.cast(_whole_seconds(times), pa.timestamp("s", tz="UTC")), format=directives)


def _of_digits(run: list[str | Field], times: pa.Array) -> pa.Array:
    """Parts that always have the same number of digits: computed for all times at once, many times as fast."""
    seconds = np.asarray(pc.cast(times, pa.int64()).fill_null(0)) // 1_000_000
    days, clock = np.divmod(seconds, 86_400)
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    numbers = {
        "%Y": dates.astype("datetime64[Y]").astype(np.int64) + 1970, "%m": months.astype(np.int64) % 12 + 1,
        "%d": (dates - months).astype(np.int64) + 1, "%H": clock // 3600, "%M": clock // 60 % 60, "%S": clock % 60,
    }  # fmt: skip
    signs: list[Any] = []
    for part in run:
        if isinstance(part, str):
            signs += [np.full(len(times), byte, np.uint8) for byte in part.encode()]
        else:
            number, digits = numbers[part.directive], _DIGITS[part.directive]
            signs += [(number // 10**place % 10 + ord("0")).astype(np.uint8) for place in reversed(range(digits))]
    data = np.stack(signs, axis=1) if signs else np.zeros((len(times), 0), np.uint8)
    offsets = np.arange(len(times) + 1, dtype=np.int32) * data.shape[1]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pc.if_else(
        times.is_valid(), pa.Array.from_buffers(pa.string(), len(times), buffers), pa.scalar(None, pa.string())
    )


def as_time(value: Value) -> Value:
    """A time, also from a date or from text; refuses other types."""
    if pa.types.is_date(value.type) or pa.types.is_string(value.type) or pa.types.is_null(value.type):
        return cast(value, TIMESTAMP)
    if not pa.types.is_timestamp(value.type):
        raise pa.ArrowInvalid(f"{value.type} is no time")
    return value
