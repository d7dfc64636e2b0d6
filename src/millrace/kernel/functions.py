"""The scalar functions of the language, each over whole Arrow columns.

A function takes arrays or scalars and returns an array or a scalar. To add one, add a line to `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Value = Any  # pa.Array | pa.Scalar

TIMESTAMP = pa.timestamp("us", tz="UTC")
_NUMBER = r"^\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)\s*$"
_SPECIAL_NUMBERS = r"(?i)^([+-]?inf(inity)?|nan)$"
_INTEGER = r"^[+-]?(\d{1,37}(\.\d*)?|\.\d*)$"
_TRUE, _FALSE = (pa.array(words) for words in (["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]))
_ISO = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-][01]\d:?[0-5]\d)?)?$"
)
_TRUNCATIONS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
}  # fmt: skip


def cast(value: Value, kind: pa.DataType) -> Value:
    """`CAST(value AS kind)`; what is no such value, or does not fit, becomes null; a fraction is cut off."""
    given = value.type
    if given == kind:
        return value
    if pa.types.is_string(given):
        return _cast_text(value, kind)
    if pa.types.is_timestamp(kind) and (pa.types.is_integer(given) or pa.types.is_floating(given)):
        return _seconds_to_timestamp(value)
    if pa.types.is_string(kind) and (pa.types.is_timestamp(given) or pa.types.is_floating(given)):
        return _timestamp_text(value) if pa.types.is_timestamp(given) else _number_text(value)
    if pa.types.is_timestamp(given) and pa.types.is_integer(kind):
        return _whole_number(pc.floor(pc.divide(_double(pc.cast(value, pa.int64())), 1e6)), kind)
    if pa.types.is_timestamp(given) and pa.types.is_floating(kind):
        return pc.cast(pc.divide(_double(pc.cast(value, pa.int64())), 1e6), kind)
    if pa.types.is_boolean(given) and pa.types.is_floating(kind):
        return pc.cast(pc.cast(value, pa.int8()), kind)
    if pa.types.is_integer(kind) and (pa.types.is_integer(given) or pa.types.is_floating(given)):
        return _whole_number(value, kind)
    return pc.cast(value, kind, safe=not pa.types.is_floating(kind))


def _whole_number(value: Value, kind: pa.DataType) -> Value:
    """A number as an integer, its fraction cut off; null where the type has no room for it."""
    floating = pa.types.is_floating(value.type)
    room = 2.0 ** (kind.bit_width - 1) if floating else 2 ** (kind.bit_width - 1)
    number = pc.trunc(value) if floating else value
    if pa.types.is_integer(value.type) and value.type.bit_width <= kind.bit_width:
        return pc.cast(value, kind)
    least, beyond = (pa.scalar(limit, number.type) for limit in (-room, room))
    fits = pc.and_(pc.greater_equal(number, least), pc.less(number, beyond))
    return pc.cast(_where(fits, number), kind)


def _double(value: Value) -> Value:
    """The value as a fraction; a whole number beyond 2 ** 53 becomes the nearest one, as in SQL."""
    return pc.cast(value, pa.float64(), safe=False)


def _cast_text(value: Value, kind: pa.DataType) -> Value:
    text = pc.utf8_trim_whitespace(value)
    if pa.types.is_integer(kind):
        return _parse_integer(text, kind)
    if pa.types.is_floating(kind):
        return _parse_number(text, kind)
    if pa.types.is_boolean(kind):
        lower = pc.utf8_lower(text)
        true, false = pc.is_in(lower, _TRUE), pc.is_in(lower, _FALSE)
        return _where(pc.or_(true, false), true)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pc.cast(_parse_time(text), kind, safe=False)
    return pc.cast(value, kind)


def _parse_number(text: Value, kind: pa.DataType) -> Value:
    """Fractions, infinities and NaN."""
    known = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _SPECIAL_NUMBERS))
    return pc.cast(pc.utf8_ltrim(_where(known, text), "+"), kind)


def _parse_integer(text: Value, kind: pa.DataType) -> Value:
    """Whole numbers, a fraction cut off; null where the type has no room for one."""
    number = _where(pc.match_substring_regex(text, _INTEGER), text)
    whole = pc.replace_substring_regex(number, r"^([+-]?)(\d*)(\..*)?$", r"\10\2")
    exact = pc.cast(whole, pa.decimal128(38, 0))
    room = 2 ** (kind.bit_width - 1)
    fits = pc.and_(pc.greater_equal(exact, pa.scalar(-room, exact.type)), pc.less(exact, pa.scalar(room, exact.type)))
    return pc.cast(_where(fits, exact), kind)


def _parse_time(text: Value) -> Value:
    """Dates and times in ISO form, with or without a zone; without one they are UTC, and impossible ones are null."""
    iso = _where(_is_possible_date(_where(pc.match_substring_regex(text, _ISO), text)), text)
    zoned = pc.match_substring_regex(iso, r":\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$")
    plain = pc.cast(pc.cast(_where(pc.invert(zoned), iso), pa.timestamp("us"), safe=False), TIMESTAMP)
    return pc.coalesce(plain, pc.cast(_where(zoned, iso), TIMESTAMP, safe=False))


def _timestamp_text(value: Value) -> Value:
    """Times in UTC without naming the zone, and without the zeros that end a fraction."""
    return pc.replace_substring_regex(pc.cast(value, pa.string()), r"\.?0*Z$", "")


def _number_text(value: Value) -> Value:
    """Fractions as Java spells them: `1.0`, `0.1`, `1.0E10`."""
    text = pc.cast(value, pa.string())
    if isinstance(text, pa.Scalar):
        return pa.scalar(_java_spelling(text.as_py()), pa.string())
    distinct = pc.unique(text)
    spelled = pa.array([_java_spelling(each) for each in distinct.to_pylist()], pa.string())
    return spelled.take(pc.index_in(text, distinct))


def _java_spelling(text: str | None) -> str | None:
    """A number in Arrow's spelling as Java's `Double.toString` has it: plain from 0.001 to 10 million."""
    if text is None or text in _JAVA_SPELLINGS:
        return None if text is None else _JAVA_SPELLINGS[text]
    number = Decimal(text)
    if Decimal("0.001") <= abs(number) < 10_000_000:
        plain = f"{number:f}"
        return plain if "." in plain else f"{plain}.0"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return f"{'-' * number.is_signed()}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


_JAVA_SPELLINGS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "0": "0.0", "-0": "-0.0"}


def _is_possible_date(iso: Value) -> Value:
    """Whether the month has such a day."""
    year, month, day = (pc.cast(pc.utf8_slice_codeunits(iso, *span), pa.int32()) for span in ((0, 4), (5, 7), (8, 10)))
    leap = pc.or_(
        pc.and_(pc.equal(_remainder(year, _int(4)), 0), pc.not_equal(_remainder(year, _int(100)), 0)),
        pc.equal(_remainder(year, _int(400)), 0),
    )
    february = pc.if_else(leap, 29, 28)
    short = pc.is_in(month, pa.array([4, 6, 9, 11], pa.int32()))
    last = pc.if_else(pc.equal(month, 2), february, pc.if_else(short, 30, 31))
    return pc.less_equal(pc.cast(day, last.type), last)


def _int(value: int) -> Value:
    return pa.scalar(value, pa.int32())


def _where(condition: Value, value: Value) -> Value:
    return pc.if_else(condition, value, pa.scalar(None, value.type))


def _seconds_to_timestamp(value: Value) -> Value:
    if pa.types.is_integer(value.type):
        micros = pc.multiply_checked(pc.cast(value, pa.int64()), 1_000_000)
    else:
        micros = _whole_number(pc.round(pc.multiply(_double(value), 1e6)), pa.int64())
    return pc.cast(micros, TIMESTAMP)


def _arithmetic(function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """The function, with a whole number beside a fraction made one; Arrow's own way fails beyond 2 ** 53."""

    def compute(left: Value, right: Value) -> Value:
        if pa.types.is_floating(left.type) and pa.types.is_integer(right.type):
            right = pc.cast(right, left.type, safe=False)
        elif pa.types.is_integer(left.type) and pa.types.is_floating(right.type):
            left = pc.cast(left, right.type, safe=False)
        return function(left, right)

    return compute


def _nonzero(value: Value) -> Value:
    return _where(pc.not_equal(value, pa.scalar(0, value.type)), value)


def _fraction(left: Value, right: Value) -> Value:
    return pc.divide(_double(left), _nonzero(_double(right)))


def _whole(left: Value, right: Value) -> Value:
    quotient = pc.divide(left, _nonzero(right))
    return pc.cast(pc.trunc(quotient) if pa.types.is_floating(quotient.type) else quotient, pa.int64())


def _remainder(left: Value, right: Value) -> Value:
    divisor = _nonzero(right)
    quotient = pc.divide(left, divisor)
    whole = pc.trunc(quotient) if pa.types.is_floating(quotient.type) else quotient
    return pc.subtract(left, pc.multiply(whole, divisor))


def _null_safe_equal(left: Value, right: Value) -> Value:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return both_null
    return pc.coalesce(pc.equal(left, right), both_null)


def _is_in(value: Value, *candidates: Value) -> Value:
    return reduce(pc.or_kleene, (pc.equal(value, each) for each in candidates))


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


def _substring(text: Value, start: Value, length: Value | None = None) -> Value:
    """SQL's 1-based substring; a negative start counts from the end."""
    first = start.as_py()
    begin = first - 1 if first > 0 else first
    if length is None:
        return pc.utf8_slice_codeunits(text, begin)
    stop = begin + max(0, length.as_py())
    if begin < 0 <= stop:
        return pc.utf8_slice_codeunits(text, begin)
    return pc.utf8_slice_codeunits(text, begin, stop)


def _date_trunc(unit: Value, value: Value) -> Value:
    name = unit.as_py().lower()
    if name not in _TRUNCATIONS:
        raise pa.ArrowInvalid(f"no such unit: {name}")
    return pc.floor_temporal(value, unit=name)


def _round(value: Value, digits: Value | None = None) -> Value:
    places = 0 if digits is None else digits.as_py()
    if not pa.types.is_integer(value.type):
        return pc.round(value, ndigits=places, round_mode="half_towards_infinity")
    if places >= 0:
        return value
    # A decimal has room for what a whole number is rounded up to, and for more digits than it has.
    exact = pc.cast(value, pa.decimal128(38, 0))
    return pc.cast(pc.round(exact, ndigits=max(places, -20), round_mode="half_towards_infinity"), value.type)


def _to_integer(rounding: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda value: value if pa.types.is_integer(value.type) else _whole_number(rounding(value), pa.int64())


def _math(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: function(*(_double(value) for value in values))


def _logarithm(value: Value) -> Value:
    """The natural logarithm; null where there is none."""
    return pc.ln(_where(pc.invert(pc.less_equal(value, 0.0)), value))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "+": _arithmetic(pc.add_checked),
    "-": _arithmetic(pc.subtract_checked),
    "*": _arithmetic(pc.multiply_checked),
    "/": _fraction,
    "div": _whole,
    "%": _remainder,
    "negative": pc.negate_checked,
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<=>": _null_safe_equal,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "is_null": pc.is_null,
    "is_not_null": pc.is_valid,
    "in": _is_in,
    "case": _case,
    "coalesce": pc.coalesce,
    "nullif": lambda left, right: pc.if_else(
        pc.fill_null(pc.equal(left, right), False), pa.scalar(None, left.type), left
    ),
    "like": lambda text, pattern: pc.match_like(text, pattern.as_py()),
    "ilike": lambda text, pattern: pc.match_like(text, pattern.as_py(), ignore_case=True),
    "rlike": lambda text, pattern: pc.match_substring_regex(text, pattern.as_py()),
    "concat": _concat,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
    "ltrim": pc.utf8_ltrim_whitespace,
    "rtrim": pc.utf8_rtrim_whitespace,
    "length": pc.utf8_length,
    "substring": _substring,
    "replace": lambda text, old, new: pc.replace_substring(text, old.as_py(), new.as_py()),
    "startswith": lambda text, prefix: pc.starts_with(text, prefix.as_py()),
    "endswith": lambda text, suffix: pc.ends_with(text, suffix.as_py()),
    "contains": lambda text, part: pc.match_substring(text, part.as_py()),
    "abs": pc.abs_checked,
    "round": _round,
    "floor": _to_integer(pc.floor),
    "ceil": _to_integer(pc.ceil),
    "sqrt": _math(pc.sqrt),
    "power": _math(pc.power),
    "exp": _math(pc.exp),
    "ln": _math(_logarithm),
    "least": pc.min_element_wise,
    "greatest": pc.max_element_wise,
    "date_trunc": _date_trunc,
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "unix_micros": lambda value: pc.cast(value, pa.int64()),
    "timestamp_seconds": _seconds_to_timestamp,
}
