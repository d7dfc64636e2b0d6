"""Intervals as values: lengths of time, and numbers of months, which have no fixed length.

Rules:
- A length of time is a duration in microseconds, `INTERVAL DAY TO SECOND`.
- Arrow has no type of months that can be compared and added up: they are durations in seconds, of which each stands for
  a month. Both types never meet in one function of Arrow: they have no common type.
- A month later is the same day of that month, or its last one. What is rounded is rounded half up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import decimals
from millrace.kernel.columns.nested.nested_columns import over_columns
from millrace.kernel.elements import INTERVAL, MONTHS

Value = Any  # pa.Array | pa.Scalar
Numbers = npt.NDArray[np.int64]

_SECOND = 1_000_000
_SECONDS = pa.decimal128(18, 6)
_DAY = 86_400 * _SECOND
_LENGTH = (
    r"^\s*(?i:interval\s*')?(?P<sign>[+-]?)(?P<day>\d{1,9}) (?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})"
    r"(?:\.(?P<fraction>\d{1,6})\d*)?(?i:'\s*day\s+to\s+second)?\s*$"
)
_MONTHS = r"^\s*(?i:interval\s*')?(?P<sign>[+-]?)(?P<year>\d{1,9})-(?P<month>\d{1,2})(?i:'\s*year\s+to\s+month)?\s*$"
_UNITS = {
    "day": (_DAY, 2**62),
    "hour": (3600 * _SECOND, 24),
    "minute": (60 * _SECOND, 60),
    "year": (12, 2**62),
    "month": (1, 12),
}
"""How long parts of an interval are, and how many make the next larger part."""
INTERVAL_PARTS = {INTERVAL: ("day", "hour", "minute", "second"), MONTHS: ("year", "month")}
"""What EXTRACT can read off the intervals of a type."""


def _numbers(column: pa.Array) -> Numbers:
    numbers: Numbers = pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers


def _made(numbers: npt.NDArray[Any], nulls: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(pa.array(numbers, mask=np.asarray(nulls)), kind)


@over_columns
def interval_text(column: pa.Array) -> pa.Array:
    """Intervals as Spark spells them: `INTERVAL '1 02:03:04.5' DAY TO SECOND`, `INTERVAL '-2-3' YEAR TO MONTH`."""
    given = _numbers(column)
    sign = pa.array(np.where(given < 0, "-", ""))
    # The least number has no positive one, but as a number without a sign.
    size = np.abs(given).view(np.uint64)
    if column.type == MONTHS:
        parts = [sign, _digits(size // 12), "-", _digits(size % 12)]
        found = pc.binary_join_element_wise("INTERVAL '", *parts, "' YEAR TO MONTH", "")
    else:
        day, rest = size // _DAY, size % _DAY
        seconds, micros = rest // _SECOND, rest % _SECOND
        fraction = pc.utf8_rtrim(pc.binary_join_element_wise(".", _digits(micros, 6), ""), "0")
        clock = [_digits(seconds // 3600, 2), ":", _digits(seconds // 60 % 60, 2), ":", _digits(seconds % 60, 2)]
        ending = pc.utf8_rtrim(fraction, ".")
        found = pc.binary_join_element_wise(
            "INTERVAL '", sign, _digits(day), " ", *clock, ending, "' DAY TO SECOND", ""
        )
    return pc.if_else(column.is_valid(), found, pa.scalar(None, pa.string()))


def _digits(numbers: npt.NDArray[Any], width: int = 1) -> pa.Array:
    return pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width, "0")


def interval_of_text(text: Value, kind: pa.DataType) -> Value:
    """What texts as those of `interval_text`, or what is in their quotes, stand for; null for other texts."""

    def read(column: pa.Array) -> pa.Array:
        found = pc.extract_regex(column, _MONTHS if kind == MONTHS else _LENGTH)
        part = {field.name: found.field(place) for place, field in enumerate(found.type)}
        sign = np.where(np.asarray(pc.fill_null(pc.equal(part["sign"], "-"), False)), -1, 1)
        whole = {name: _whole(column) for name, column in part.items() if name not in ("sign", "fraction")}
        if kind == MONTHS:
            size, fits = 12 * whole["year"] + whole["month"], whole["month"] < 12
        else:
            micros = _whole(pc.utf8_rpad(pc.fill_null(part["fraction"], ""), 6, "0"))
            clock = (whole["hour"] * 60 + whole["minute"]) * 60 + whole["second"]
            size = whole["day"] * _DAY + clock * _SECOND + micros
            fits = (whole["hour"] < 24) & (whole["minute"] < 60) & (whole["second"] < 60) & (whole["day"] < 10**8)
        return _made(sign * size, pa.array(np.asarray(found.is_null()) | ~fits), kind)

    made: Value = over_columns(read)(text)
    return made


def _whole(text: pa.Array) -> Numbers:
    """Digits as numbers; 0 for null and for none."""
    plain = pc.if_else(pc.equal(pc.fill_null(text, ""), ""), "0", text)
    return _numbers(pc.cast(plain, pa.int64()))


@over_columns
def plus_months(times: pa.Array, months: pa.Array) -> pa.Array:
    """Dates or times so many months later."""
    nulls = pa.array(np.asarray(times.is_null()) | np.asarray(months.is_null()))
    if pa.types.is_date(times.type):
        later = _later(_numbers(pc.cast(times, pa.int32())), _numbers(months)).astype(np.int32)
        return _made(later, nulls, pa.date32())
    given = _numbers(times)
    days = given // _DAY
    return _made(_later(days, _numbers(months)) * _DAY + (given - days * _DAY), nulls, times.type)


def _later(days: Numbers, months: Numbers) -> Numbers:
    """Days since 1970, so many months later."""
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    day = (date - month.astype("datetime64[D]")).astype(np.int64)
    first = (month + months).astype("datetime64[D]")
    last = ((month + months + 1).astype("datetime64[D]") - first).astype(np.int64) - 1
    found: Numbers = first.astype(np.int64) + np.minimum(day, last)
    return found


def with_intervals(operator: str, function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """An operator that also takes months, and multiples of intervals."""

    def compute(left: Value, right: Value) -> Value:
        if not (pa.types.is_duration(left.type) or pa.types.is_duration(right.type)):
            return function(left, right)
        if operator in ("*", "/"):
            return _scaled(operator, left, right)
        if MONTHS not in (left.type, right.type) or left.type == right.type:
            return function(left, right)
        if INTERVAL in (left.type, right.type) or (operator == "-" and left.type == MONTHS):
            raise pa.ArrowTypeError("months and lengths of time cannot be added up")
        time, months = (right, left) if left.type == MONTHS else (left, right)
        return plus_months(time, negated(months) if operator == "-" else months)

    return compute


def _scaled(operator: str, left: Value, right: Value) -> Value:
    """A multiple or a part of an interval."""
    if operator == "*" and pa.types.is_duration(right.type):
        left, right = right, left
    if not pa.types.is_duration(left.type) or pa.types.is_duration(right.type):
        raise pa.ArrowTypeError("an interval is multiplied or divided by a number")
    micros = pc.cast(left, pa.int64())
    if operator == "*" and pa.types.is_integer(right.type):
        return pc.cast(pc.multiply_checked(micros, pc.cast(right, pa.int64())), left.type)
    number = pc.cast(right, pa.float64(), safe=False)
    fraction = pc.cast(micros, pa.float64(), safe=False)
    if operator == "/":
        number = pc.if_else(pc.equal(number, 0.0), pa.scalar(None, pa.float64()), number)
    scaled = pc.multiply(fraction, number) if operator == "*" else pc.divide(fraction, number)
    return pc.cast(pc.cast(pc.round(scaled, round_mode="half_towards_infinity"), pa.int64()), left.type)


def divided(interval: Value, number: Value) -> Value:
    """A part of an interval."""
    return _scaled("/", interval, number)


def of_size(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A function of a number, also of an interval."""

    def compute(value: Value) -> Value:
        if not pa.types.is_duration(value.type):
            return function(value)
        return pc.cast(function(pc.cast(value, pa.int64())), value.type)

    return compute


negated = of_size(pc.negate_checked)


def _whole_parts(kind: pa.DataType, lengths: tuple[int, ...]) -> Callable[..., Value]:
    """An interval of so many whole parts each; the last one of a length of time may be a fraction."""

    def make(*values: Value) -> Value:
        total: Value = pa.scalar(0, pa.int64())
        for value, length in zip(values, lengths, strict=False):
            if pa.types.is_integer(value.type) or pa.types.is_null(value.type):
                part = pc.multiply_checked(pc.cast(value, pa.int64()), length)
            else:
                brought = decimals.fitted if pa.types.is_decimal(value.type) else decimals.of_fractions
                exact = pc.multiply(brought(value, _SECONDS), pa.scalar(length, pa.decimal128(18, 0)))
                part = pc.cast(exact, pa.int64())
            total = pc.add_checked(total, part)
        return pc.cast(total, kind)

    return make


def _interval_part(value: Value, part: Value) -> Value:
    """A part of an interval as `EXTRACT` gives it, with the interval's sign."""
    name = part.as_py()
    if name == "second":
        rest = _remainder(pc.cast(value, pa.int64()), 60 * _SECOND)
        return pc.cast(pc.divide(pc.cast(rest, pa.float64()), 1e6), pa.decimal128(8, 6))
    length, count = _UNITS[name]
    found = _remainder(pc.divide(pc.cast(value, pa.int64()), length), count)
    return pc.cast(found, pa.int32() if name in ("day", "year") else pa.int8())


def _remainder(numbers: Value, divisor: int) -> Value:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


INTERVAL_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "make_dt_interval": _whole_parts(INTERVAL, (_DAY, 3600 * _SECOND, 60 * _SECOND, _SECOND)),
    "make_ym_interval": _whole_parts(MONTHS, (12, 1)),
    "interval_part": _interval_part,
}
