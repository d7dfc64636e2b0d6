"""`CAST`, and what it rests on: texts, numbers and times brought to one another as Spark does it."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import decimals
from millrace.kernel.columns.interval_values import interval_of_text, interval_text
from millrace.kernel.columns.nested.nested_columns import brought, over_columns, shown
from millrace.kernel.elements import TIMESTAMP

Value = Any  # pa.Array | pa.Scalar

_NUMBER = r"^\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)\s*$"
_SPECIAL_NUMBERS = r"(?i)^([+-]?inf(inity)?|nan)$"
_INTEGER = r"^[+-]?(\d{1,37}(\.\d*)?|\.\d*)$"
_DECIMAL = r"^[+-]?0*(\d{1,38}(\.\d*)?|\.\d+)$"
_SURE = {bits: rf"^-?\d{{1,{digits}}}$" for bits, digits in ((8, 2), (16, 4), (32, 9), (64, 18))}
"""Whole numbers that fit into so many bits."""
_TRUE, _FALSE = ["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]
_DAY_FIRST = r"^(\d{4}-\d\d?-\d\d?)[ T].*$"
_LOOSE = (
    r"^\+?(?P<year>\d{4})(?:-(?P<month>\d\d?)(?:-(?P<day>\d\d?)(?:[T ](?P<hour>\d\d?)(?::(?P<minute>\d\d?)"
    r"(?::(?P<second>\d\d?)(?:\.(?P<fraction>\d{0,6})\d*)?)?"
    r" *(?:Z|UTC|GMT|UT)?(?P<ahead>[+-]\d\d?(?::?\d\d?)?)?)?)?)?)?$"
)
"""The further spellings of a time that Spark reads: fewer digits, fewer parts, a zone as UTC+2."""
_ISO = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-](0\d|1[0-8]):?[0-5]\d)?)?$"
)


def cast(value: Value, kind: pa.DataType) -> Value:
    """`CAST(value AS kind)`; what is no such value, or does not fit, becomes null; a fraction is cut off."""
    given = value.type
    if given == kind:
        return value
    if pa.types.is_nested(given) or pa.types.is_nested(kind):
        return _cast_nested(value, kind)
    if pa.types.is_string(given):
        return _cast_text(value, kind)
    if pa.types.is_duration(given) or pa.types.is_duration(kind):
        return _of_interval(value, kind)
    if pa.types.is_decimal(kind):
        return _to_decimal(value, kind)
    if pa.types.is_decimal(given):
        return _of_decimal(value, kind)
    if pa.types.is_timestamp(kind) and (pa.types.is_integer(given) or pa.types.is_floating(given)):
        return seconds_to_timestamp(value)
    if pa.types.is_string(kind) and (pa.types.is_timestamp(given) or pa.types.is_floating(given)):
        return _timestamp_text(value) if pa.types.is_timestamp(given) else _number_text(value)
    if pa.types.is_timestamp(given) and pa.types.is_integer(kind):
        return whole_number(pc.floor(pc.divide(double(pc.cast(value, pa.int64())), 1e6)), kind)
    if pa.types.is_timestamp(given) and pa.types.is_floating(kind):
        return pc.cast(pc.divide(double(pc.cast(value, pa.int64())), 1e6), kind)
    if pa.types.is_boolean(given) and pa.types.is_floating(kind):
        return pc.cast(pc.cast(value, pa.int8()), kind)
    if pa.types.is_integer(kind) and (pa.types.is_integer(given) or pa.types.is_floating(given)):
        return whole_number(value, kind)
    if pa.types.is_binary(given) and pa.types.is_string(kind):
        return _text_of_bytes(value)
    return pc.cast(value, kind, safe=not pa.types.is_floating(kind))


def _text_of_bytes(value: Value) -> Value:
    """Bytes as text in UTF-8; what is none is replaced by the sign for it."""
    try:
        return pc.cast(value, pa.string())
    except pa.ArrowInvalid:
        if isinstance(value, pa.Scalar):
            return pa.scalar(value.as_py().decode(errors="replace"), pa.string())
        encoded = value.dictionary_encode()
        texts = pa.array([each.decode(errors="replace") for each in encoded.dictionary.to_pylist()], pa.string())
        return texts.take(encoded.indices)


def _of_interval(value: Value, kind: pa.DataType) -> Value:
    """An interval as text; null of no type is null of any."""
    if pa.types.is_null(value.type):
        return pc.cast(value, kind)
    if not pa.types.is_string(kind):
        raise pa.ArrowTypeError("an interval is cast to text only")
    return interval_text(value)


def _cast_nested(value: Value, kind: pa.DataType) -> Value:
    """Nested values part by part; null of no type is null of any."""
    if pa.types.is_null(value.type):
        return pc.cast(value, kind)
    if isinstance(value, pa.Scalar):
        return _cast_nested(pa.array([value.as_py()], value.type), kind)[0]
    return shown(value, cast) if pa.types.is_string(kind) else brought(value, kind, cast)


def _to_decimal(value: Value, kind: pa.DataType) -> Value:
    """A number or a time, in seconds, as a decimal; null where it does not fit."""
    given = value.type
    if pa.types.is_decimal(given):
        return decimals.fitted(value, kind)
    if pa.types.is_floating(given):
        return decimals.of_fractions(value, kind)
    if pa.types.is_boolean(given):
        value = pc.cast(value, pa.int8())
    if pa.types.is_timestamp(given):
        micros = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(20, 0))
        return decimals.fitted(pc.multiply(micros, pa.scalar(Decimal("0.000001"), pa.decimal128(6, 6))), kind)
    return decimals.fitted(pc.cast(value, decimals.type_of_integers(value.type)), kind)


def _of_decimal(value: Value, kind: pa.DataType) -> Value:
    """A decimal as another type; its fraction is cut off where that has none."""
    if pa.types.is_integer(kind):
        whole = pc.cast(pc.trunc(value), pa.decimal256(76, 0))
        room = 2 ** (kind.bit_width - 1)
        inside = pc.and_(
            pc.greater_equal(whole, pa.scalar(-room, whole.type)), pc.less(whole, pa.scalar(room, whole.type))
        )
        return pc.cast(where(inside, whole), kind)
    if pa.types.is_boolean(kind):
        return pc.not_equal(value, pa.scalar(0, value.type))
    if pa.types.is_timestamp(kind):
        micros = decimals.multiplied(value, pa.scalar(1_000_000, pa.decimal128(7, 0)))
        return pc.cast(_of_decimal(micros, pa.int64()), TIMESTAMP)
    return pc.cast(decimals.as_doubles(value), kind, safe=False) if pa.types.is_floating(kind) else pc.cast(value, kind)


def whole_number(value: Value, kind: pa.DataType) -> Value:
    """A number as an integer, its fraction cut off; null where the type has no room for it."""
    floating = pa.types.is_floating(value.type)
    room = 2.0 ** (kind.bit_width - 1) if floating else 2 ** (kind.bit_width - 1)
    number = pc.trunc(value) if floating else value
    if pa.types.is_integer(value.type) and value.type.bit_width <= kind.bit_width:
        return pc.cast(value, kind)
    least, beyond = (pa.scalar(limit, number.type) for limit in (-room, room))
    fits = pc.and_(pc.greater_equal(number, least), pc.less(number, beyond))
    return pc.cast(where(fits, number), kind)


def double(value: Value) -> Value:
    """The value as a fraction; a whole number beyond 2 ** 53 becomes the nearest one, as in SQL."""
    return decimals.as_doubles(value) if pa.types.is_decimal(value.type) else pc.cast(value, pa.float64(), safe=False)


def _cast_text(value: Value, kind: pa.DataType) -> Value:
    if pa.types.is_duration(kind):
        return interval_of_text(value, kind)
    text = pc.utf8_trim_whitespace(value)
    if pa.types.is_integer(kind):
        return _parse_integer(text, kind)
    if pa.types.is_floating(kind):
        return _parse_number(text, kind)
    if pa.types.is_decimal(kind):
        return _parse_decimal(text, kind)
    if pa.types.is_boolean(kind):
        lower = pc.utf8_lower(text)
        # Made here: pyarrow loads pandas with its first value, which takes longer than all else that is imported.
        true, false = (pc.is_in(lower, pa.array(words)) for words in (_TRUE, _FALSE))
        return where(pc.or_(true, false), true)
    if pa.types.is_date(kind):
        # Most columns of text are as ISO has it, and Arrow refuses all else.
        with suppress(pa.ArrowInvalid):
            return pc.cast(text, kind)
        # What follows the day does not count.
        return pc.cast(_parse_time(pc.replace_substring_regex(text, _DAY_FIRST, r"\1")), kind, safe=False)
    if pa.types.is_timestamp(kind):
        return _parse_time(text)
    return pc.cast(value, kind)


def _parse_number(text: Value, kind: pa.DataType) -> Value:
    """Fractions, infinities and NaN."""
    known = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _SPECIAL_NUMBERS))
    return pc.cast(pc.utf8_ltrim(where(known, text), "+"), kind)


def _parse_decimal(text: Value, kind: pa.DataType) -> Value:
    """Decimals, rounded half up; null where the type has no room for one."""
    plain = where(pc.match_substring_regex(text, _DECIMAL), text)
    exact = decimals.of_text(plain, pa.decimal256(76, 38))
    powers = where(pc.match_substring_regex(text, r"^[^eE]*\d[^eE]*[eE]"), text)
    rough = decimals.of_fractions(_parse_number(powers, pa.float64()), pa.decimal128(38, min(kind.scale, 18)))
    return pc.coalesce(decimals.fitted(exact, kind), decimals.fitted(rough, kind))


def _parse_integer(text: Value, kind: pa.DataType) -> Value:
    """Whole numbers, a fraction cut off; null where the type has no room for one."""
    if not isinstance(text, pa.Scalar) and pc.all(pc.match_substring_regex(text, _SURE[kind.bit_width])).as_py():
        return pc.cast(text, kind)
    number = where(pc.match_substring_regex(text, _INTEGER), text)
    whole = pc.replace_substring_regex(number, r"^([+-]?)(\d*)(\..*)?$", r"\10\2")
    exact = pc.cast(whole, pa.decimal128(38, 0))
    room = 2 ** (kind.bit_width - 1)
    fits = pc.and_(pc.greater_equal(exact, pa.scalar(-room, exact.type)), pc.less(exact, pa.scalar(room, exact.type)))
    return pc.cast(where(fits, exact), kind)


def _parse_time(text: Value) -> Value:
    """Dates and times, with or without a zone; without one they are UTC, and impossible ones are null."""
    is_iso = pc.match_substring_regex(text, _ISO)
    if not pc.all(is_iso).as_py():
        text = pc.if_else(is_iso, text, _in_iso_form(text))
        is_iso = pc.match_substring_regex(text, _ISO)
    iso = where(_is_possible_date(where(is_iso, text)), text)
    zoned = pc.match_substring_regex(iso, r":\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$")
    plain = pc.cast(pc.cast(where(pc.invert(zoned), iso), pa.timestamp("us"), safe=False), TIMESTAMP)
    return pc.coalesce(plain, pc.cast(where(zoned, iso), TIMESTAMP, safe=False))


def _in_iso_form(text: Value) -> Value:
    """Times in another spelling that Spark reads, as ISO has it."""
    parts = pc.extract_regex(text, _LOOSE)

    def part(name: str, absent: str, width: int = 2) -> Value:
        found = pc.struct_field(parts, name)
        return pc.if_else(pc.equal(found, ""), absent, pc.utf8_lpad(found, width, "0"))

    ahead = pc.extract_regex(pc.struct_field(parts, "ahead"), r"^(?P<sign>.)(?P<hour>\d\d?):?(?P<minute>\d*)$")
    sign, hour, minute = (pc.struct_field(ahead, each) for each in ("sign", "hour", "minute"))
    zone = pc.binary_join_element_wise(sign, pc.utf8_lpad(hour, 2, "0"), ":", pc.utf8_lpad(minute, 2, "0"), "")
    day = pc.binary_join_element_wise(part("year", "", 4), part("month", "01"), part("day", "01"), "-")
    clock = pc.binary_join_element_wise(part("hour", "00"), part("minute", "00"), part("second", "00"), ":")
    fraction = part("fraction", "0", 1)
    return pc.binary_join_element_wise(day, " ", clock, ".", fraction, pc.fill_null(zone, "Z"), "")


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
    """True where the month has such a day."""
    year, month, day = (pc.cast(pc.utf8_slice_codeunits(iso, *span), pa.int32()) for span in ((0, 4), (5, 7), (8, 10)))
    leap = pc.or_(
        pc.and_(pc.equal(remainder(year, _int(4)), 0), pc.not_equal(remainder(year, _int(100)), 0)),
        pc.equal(remainder(year, _int(400)), 0),
    )
    february = pc.if_else(leap, 29, 28)
    short = pc.is_in(month, pa.array([4, 6, 9, 11], pa.int32()))
    last = pc.if_else(pc.equal(month, 2), february, pc.if_else(short, 30, 31))
    return pc.less_equal(pc.cast(day, last.type), last)


def _int(value: int) -> Value:
    return pa.scalar(value, pa.int32())


def where(condition: Value, value: Value) -> Value:
    """The value where the condition holds, else null."""
    return pc.if_else(condition, value, pa.scalar(None, value.type))


def seconds_to_timestamp(value: Value) -> Value:
    """Seconds since the epoch, with or without a fraction, as a time."""
    if pa.types.is_integer(value.type):
        micros = pc.multiply_checked(pc.cast(value, pa.int64()), 1_000_000)
    else:
        micros = whole_number(pc.round(pc.multiply(double(value), 1e6)), pa.int64())
    return time_of_micros(micros)


_TIMES = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first microsecond of the year 1 and the last one of 9999, since 1970."""


def time_of_micros(micros: Value) -> Value:
    """Microseconds since 1970 as a time; null outside of the years from 1 to 9999, which no text can hold."""
    first, last = _TIMES
    return pc.cast(where(pc.and_(pc.greater_equal(micros, first), pc.less_equal(micros, last)), micros), TIMESTAMP)


def nonzero(value: Value) -> Value:
    """The value, null where it is zero: dividing by zero gives null."""
    return where(pc.not_equal(value, pa.scalar(0, value.type)), value)


def remainder(left: Value, right: Value) -> Value:
    """What division towards zero leaves; it has the sign of what is divided."""
    divisor = nonzero(right)
    if pa.types.is_decimal(left.type):
        return decimals.remainder(left, divisor)
    if pa.types.is_floating(left.type) or pa.types.is_floating(divisor.type):
        return _float_remainder(double(left), double(divisor))
    # Nothing is left by 1 either; the least number divided by -1 would not fit, and leave itself.
    divisor = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, divisor.type), divisor)
    return pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))


@over_columns
def _float_remainder(left: pa.Array, divisor: pa.Array) -> pa.Array:
    numbers = [np.asarray(each.fill_null(1.0)) for each in (left, divisor)]
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(*numbers), mask=np.asarray(pc.or_(left.is_null(), divisor.is_null())))
