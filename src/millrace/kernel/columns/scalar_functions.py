"""The scalar functions of the language, each over whole Arrow columns.

A function takes arrays or scalars and returns an array or a scalar. To add one, add a line to `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import decimals
from millrace.kernel.columns.casts import (
    Value,
    cast,
    double,
    nonzero,
    remainder,
    seconds_to_timestamp,
    time_of_micros,
    where,
    whole_number,
)
from millrace.kernel.columns.comparison import equals, in_order
from millrace.kernel.columns.date_formats import as_time, date_format, to_char
from millrace.kernel.columns.functions import SQL_FUNCTIONS
from millrace.kernel.columns.functions.number_functions import (
    attempted,
    difference_overflows,
    product_overflows,
    rounded,
    sum_overflows,
)
from millrace.kernel.columns.interval_values import INTERVAL_FUNCTIONS, negated, of_size, with_intervals
from millrace.kernel.columns.nested.json_functions import JSON_FUNCTIONS
from millrace.kernel.columns.nested.nested_functions import NESTED_FUNCTIONS, compared, extreme
from millrace.kernel.elements import INTERVAL

_TRUNCATIONS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
}  # fmt: skip


def _arithmetic(
    function: Callable[[Value, Value], Value], of_decimals: Callable[[Value, Value], Value]
) -> Callable[[Value, Value], Value]:
    """The function, with a whole number beside a fraction made one; Arrow's own way fails beyond 2 ** 53."""

    def compute(left: Value, right: Value) -> Value:
        if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
            return of_decimals(left, right)
        if pa.types.is_floating(left.type) and pa.types.is_integer(right.type):
            right = pc.cast(right, left.type, safe=False)
        elif pa.types.is_integer(left.type) and pa.types.is_floating(right.type):
            left = pc.cast(left, right.type, safe=False)
        return function(left, right)

    return compute


def _of_times(function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """The function over times as whole numbers: Arrow's own also takes what stands in the place of nulls, and fails."""

    def compute(left: Value, right: Value) -> Value:
        durations = [pa.types.is_duration(each.type) for each in (left, right)]
        times = [each.type for each in (left, right) if pa.types.is_timestamp(each.type)]
        if sum(durations) + len(times) < 2 or (len(times) == 2 and function is pc.add_checked):
            return function(left, right)
        found = function(pc.cast(left, pa.int64()), pc.cast(right, pa.int64()))
        return pc.cast(found, times[0] if len(times) == 1 else left.type if all(durations) else INTERVAL)

    return compute


def _extreme(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function over times too, which Arrow's own does not take where they have a zone."""

    def compute(*values: Value) -> Value:
        if not all(pa.types.is_timestamp(each.type) for each in values):
            return function(*values)
        return pc.cast(function(*(pc.cast(each, pa.int64()) for each in values)), values[0].type)

    return compute


def _greatest(*values: Value) -> Value:
    """The greatest of numbers, above which NaN is: Arrow passes over it."""
    found = pc.max_element_wise(*values)
    if not pa.types.is_floating(found.type):
        return found
    nan = reduce(pc.or_, (pc.fill_null(pc.is_nan(each), False) for each in values))
    return pc.if_else(nan, pa.scalar(float("nan"), found.type), found)


def _fraction(left: Value, right: Value) -> Value:
    if pa.types.is_decimal(left.type):
        return decimals.divided(left, nonzero(right))
    return pc.divide(double(left), nonzero(double(right)))


def _whole(left: Value, right: Value) -> Value:
    if pa.types.is_decimal(left.type):
        return decimals.whole_quotient(left, nonzero(right))
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return pc.cast(pc.trunc(pc.divide(left, nonzero(right))), pa.int64())
    number, divisor = pc.cast(left, pa.int64()), pc.cast(nonzero(right), pa.int64())
    # Arrow gives 0 for the least number by -1.
    return pc.if_else(pc.equal(divisor, -1), pc.negate(number), pc.divide(number, divisor))


def _null_safe_equal(left: Value, right: Value) -> Value:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return both_null
    return pc.coalesce(equals(left, right), both_null)


def _is_in(value: Value, *candidates: Value) -> Value:
    return reduce(pc.or_kleene, (equals(value, each) for each in candidates))


def _case(*branches: Value) -> Value:
    """`condition, value, condition, value, ..., otherwise`."""
    result = branches[-1]
    for condition, value in reversed(list(zip(branches[:-1:2], branches[1:-1:2], strict=True))):
        if pa.types.is_null(result.type):
            result = pc.cast(result, value.type)
        elif pa.types.is_null(value.type):
            value = pc.cast(value, result.type)
        result = pc.if_else(pc.fill_null(condition, False), value, result)
    return result


def _concat(*parts: Value) -> Value:
    return pc.binary_join_element_wise(*(cast(part, pa.string()) for part in parts), "")


def _date_trunc(unit: Value, value: Value) -> Value:
    name = unit.as_py().lower()
    if name not in _TRUNCATIONS:
        raise pa.ArrowInvalid(f"no such unit: {name}")
    return pc.floor_temporal(as_time(value), unit=name)


def _since_1970(micros: int) -> Callable[[Value], Value]:
    """How many units of so many microseconds a time lies after 1970, cut off downwards also before."""

    def count(value: Value) -> Value:
        given = pc.cast(as_time(value), pa.int64())
        into = remainder(given, pa.scalar(micros))
        return _whole(pc.subtract(given, pc.if_else(pc.less(into, 0), pc.add(into, micros), into)), pa.scalar(micros))

    return count


def _time_after_1970(micros: int) -> Callable[[Value], Value]:
    return lambda value: time_of_micros(pc.multiply_checked(pc.cast(value, pa.int64()), micros))


def _field(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A field of times, as an INT."""
    return lambda value: pc.cast(function(as_time(value)), pa.int32())


def _epoch(value: Value) -> Value:
    """Seconds since 1970, with their fraction."""
    return pc.divide(double(pc.cast(as_time(value), pa.int64())), 1e6)


def _from_unixtime(seconds: Value, pattern: Value | None = None) -> Value:
    return date_format(seconds_to_timestamp(seconds), pa.scalar("yyyy-MM-dd HH:mm:ss") if pattern is None else pattern)


def _round(value: Value, digits: Value | None = None) -> Value:
    places = 0 if digits is None else digits.as_py()
    if pa.types.is_decimal(value.type):
        return decimals.rounded(value, places)
    if not pa.types.is_integer(value.type):
        return rounded(value, places)
    if places >= 0:
        return value
    # A decimal has room for what a whole number is rounded up to, and for more digits than it has.
    exact = pc.cast(value, pa.decimal128(38, 0))
    return pc.cast(pc.round(exact, ndigits=max(places, -20), round_mode="half_towards_infinity"), value.type)


def _to_integer(rounding: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def compute(value: Value) -> Value:
        if pa.types.is_decimal(value.type):
            return decimals.to_whole(rounding, value)
        return (
            pc.cast(value, pa.int64()) if pa.types.is_integer(value.type) else whole_number(rounding(value), pa.int64())
        )

    return compute


def _math(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: function(*(double(value) for value in values))


def _logarithm(value: Value) -> Value:
    """The natural logarithm; null where there is none."""
    return pc.ln(where(pc.invert(pc.less_equal(value, 0.0)), value))


def _canonical(value: Value) -> Value:
    """A fraction with one zero and one NaN, so that equal ones are one key."""
    return pc.if_else(pc.is_nan(value), pa.scalar(float("nan"), value.type), pc.add(value, pa.scalar(0.0, value.type)))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "+": with_intervals("+", _arithmetic(_of_times(pc.add_checked), decimals.added(pc.add))),
    "-": with_intervals("-", _arithmetic(_of_times(pc.subtract_checked), decimals.added(pc.subtract))),
    "*": with_intervals("*", _arithmetic(pc.multiply_checked, decimals.multiplied)),
    "/": with_intervals("/", _fraction),
    "div": _whole,
    "%": remainder,
    "negative": negated,
    "=": equals,
    "<>": in_order(pc.not_equal),
    "<": compared(pc.less),
    "<=": compared(pc.less_equal),
    ">": compared(pc.greater),
    ">=": compared(pc.greater_equal),
    "<=>": _null_safe_equal,
    "and": lambda *conditions: reduce(pc.and_kleene, conditions),
    "or": lambda *conditions: reduce(pc.or_kleene, conditions),
    "not": pc.invert,
    "canonical": _canonical,
    "is_null": pc.is_null,
    "is_not_null": pc.is_valid,
    "in": _is_in,
    "case": _case,
    "coalesce": pc.coalesce,
    "concat": _concat,
    "length": lambda text: pc.binary_length(text) if pa.types.is_binary(text.type) else pc.utf8_length(text),
    "abs": of_size(pc.abs_checked),
    "round": _round,
    "floor": _to_integer(pc.floor),
    "ceil": _to_integer(pc.ceil),
    "sqrt": _math(pc.sqrt),
    "power": _math(pc.power),
    "exp": _math(pc.exp),
    "ln": _math(_logarithm),
    "least": extreme(_extreme(pc.min_element_wise), greatest=False),
    "greatest": extreme(_extreme(_greatest), greatest=True),
    "date_trunc": _date_trunc,
    "year": _field(pc.year),
    "month": _field(pc.month),
    "day": _field(pc.day),
    "hour": _field(pc.hour),
    "minute": _field(pc.minute),
    "second": _field(pc.second),
    "quarter": _field(pc.quarter),
    "week": _field(pc.iso_week),
    "dayofyear": _field(pc.day_of_year),
    "weekday": _field(pc.day_of_week),
    "dayofweek": _field(lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7)),
    "dayofweek_iso": _field(lambda value: pc.day_of_week(value, count_from_zero=False)),
    "epoch": _epoch,
    "date_format": date_format,
    "to_char": to_char,
    "unix_micros": lambda value: pc.cast(value, pa.int64()),
    "unix_millis": _since_1970(1_000),
    "unix_seconds": _since_1970(1_000_000),
    "timestamp_seconds": seconds_to_timestamp,
    "timestamp_millis": _time_after_1970(1_000),
    "timestamp_micros": _time_after_1970(1),
    "from_unixtime": _from_unixtime,
    **SQL_FUNCTIONS,
    **INTERVAL_FUNCTIONS,
    **NESTED_FUNCTIONS,
    **JSON_FUNCTIONS,
}
FUNCTIONS |= {
    "try_add": attempted(FUNCTIONS["+"], sum_overflows),
    "try_subtract": attempted(FUNCTIONS["-"], difference_overflows),
    "try_multiply": attempted(FUNCTIONS["*"], product_overflows),
    "try_element_at": attempted(FUNCTIONS["element_at"]),
}
