"""Decimals: exact numbers of up to 38 digits, with Spark's precision and scale of results.

Rules:
- A result has as many digits as it may need; where these are more than 38, the scale gives way, down to 6 digits.
- A result is rounded half up (away from zero). One that does not fit its type raises `pa.ArrowInvalid`, as a whole
  number does that overflows; a cast gives null instead.
- Intermediate results have up to 76 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.sql_types import MOST_DIGITS
from millrace.kernel.elements import Mask

if TYPE_CHECKING:
    from millrace.kernel.columns.grouping import Groups

Value = Any  # pa.Array | pa.Scalar

_MOST_OF_INT64 = 19
_DIGITS_OF_INT64 = 18
_WIDEST = 76
_LEAST_SCALE = 6
_LIMB = np.int64(2**32 - 1)
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""How many digits an integer of so many bits may have."""
_ROUND = "half_towards_infinity"


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """A type of so many digits; of more than 38 the scale loses as many, but not below 6."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(max(precision, 1), scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def type_of_number(value: Decimal | int) -> pa.DataType:
    """The type of a literal; refuses one of more than 38 digits."""
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return pa.decimal128(max(len(digits) + max(exponent, 0), scale, 1), scale)


def type_of_integers(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds all integers of a type."""
    return pa.decimal128(_DIGITS[kind.bit_width], 0)


def common_decimal(kinds: list[pa.DataType]) -> pa.DataType:
    """The type that holds all values of decimal types; beyond 38 digits the whole part is kept."""
    scale = max(kind.scale for kind in kinds)
    whole = max(kind.precision - kind.scale for kind in kinds)
    return pa.decimal128(max(min(whole + scale, MOST_DIGITS), 1), min(scale, max(MOST_DIGITS - whole, 0)))


# From one type to another


def rescaled(value: Value, kind: pa.DataType) -> Value:
    """A decimal in another type, rounded half up; raises where it does not fit."""
    return value if value.type == kind else pc.cast(_rounded(value, kind.scale), kind)


def fitted(value: Value, kind: pa.DataType) -> Value:
    """A decimal in another type, rounded half up; null where it does not fit."""
    given = value.type
    if kind.scale >= given.scale and kind.precision - kind.scale >= given.precision - given.scale:
        return pc.cast(value, kind)
    wide = pc.cast(_rounded(value, kind.scale), pa.decimal256(_WIDEST, kind.scale))
    limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), wide.type)
    fits = pc.less(pc.abs(wide), limit)
    return pc.cast(pc.if_else(fits, wide, pa.scalar(None, wide.type)), kind)


def _rounded(value: Value, scale: int, mode: str = _ROUND) -> Value:
    given = value.type
    if given.scale <= scale:
        return value
    # What is rounded up may have a digit more.
    room = value if given.precision == _WIDEST else pc.cast(value, pa.decimal256(given.precision + 1, given.scale))
    return pc.round(room, ndigits=scale, round_mode=mode)


def of_text(text: Value, kind: pa.DataType) -> Value:
    """Text as decimals, rounded half up; raises where it is no number or does not fit."""
    short = pc.replace_substring_regex(text, r"^([+-]?\d*\.\d{38})\d+$", r"\1")
    return rescaled(pc.cast(short, pa.decimal256(_WIDEST, MOST_DIGITS)), kind)


def of_fractions(value: Value, kind: pa.DataType) -> Value:
    """Doubles by their shortest spelling, rounded half up; null where they do not fit."""
    if isinstance(value, pa.Scalar) or not pa.types.is_float64(value.type):
        return _spelled_fractions(value, kind)
    whole = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    numbers, doubtful = _products(np.asarray(whole.fill_null(0.0)), kind)
    exact = pc.cast(pa.array(numbers, mask=np.asarray(whole.is_null())), pa.decimal128(_MOST_OF_INT64, 0))
    found = pa.Array.from_buffers(kind, len(exact), exact.buffers(), exact.null_count, exact.offset)
    if not doubtful.any():
        return found
    mask = pa.array(doubtful)
    return pc.replace_with_mask(found, mask, _spelled_fractions(whole.filter(mask), kind))


def _products(value: npt.NDArray[np.float64], kind: pa.DataType) -> tuple[npt.NDArray[np.int64], Mask]:
    """Decimals without their point by a product of doubles, and where it leaves in doubt how they are rounded."""
    with np.errstate(all="ignore"):
        scaled = np.abs(value) * 10.0**kind.scale
        # Below 2 ** 40 the product is off by less than a thousandth.
        sure = (scaled < min(2.0**40, 10.0**kind.precision - 1)) & (np.abs(scaled % 1.0 - 0.5) > 0.002)
        whole = np.where(sure, np.floor(scaled + 0.5), 0.0)
    return np.where(value < 0, -whole, whole).astype(np.int64), ~sure


def _spelled_fractions(value: Value, kind: pa.DataType) -> Value:
    size = pc.abs(pc.cast(value, pa.float64()))
    nothing = pa.scalar(None, value.type)
    inside = pc.if_else(pc.less(size, 1e38), value, nothing)
    tiny = pc.less(size, 1e-20)
    wide = pa.decimal256(_WIDEST, MOST_DIGITS)
    spelled = pc.cast(pc.cast(pc.if_else(tiny, nothing, inside), pa.string()), wide)
    return fitted(pc.coalesce(spelled, pc.cast(pc.if_else(tiny, inside, nothing), wide)), kind)


def as_doubles(value: Value) -> Value:
    """Decimals as the doubles next to them; Arrow's cast misses them by a bit now and then."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(float(value.as_py()) if value.is_valid else None, pa.float64())
    if isinstance(value, pa.ChunkedArray):
        return as_doubles(value.combine_chunks())
    kind = value.type
    if kind.precision <= _DIGITS_OF_INT64 and len(value):
        whole = np.where(np.asarray(value.is_valid()), unscaled(value)[:, 0], 0)
        # Both are exact then, and so one division rounds once.
        if np.abs(whole).max() < 2**53:
            return pa.array(whole / 10.0**kind.scale, mask=np.asarray(value.is_null()))
    return pc.cast(pc.cast(value, pa.string()), pa.float64())


# Arithmetic


def added(function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Sums or differences of decimals."""

    def compute(left: Value, right: Value) -> Value:
        one, other = left.type, right.type
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
        if precision <= MOST_DIGITS:
            return function(left, right)
        return rescaled(function(_wide(left), _wide(right)), decimal_type(precision, scale))

    return compute


def multiplied(left: Value, right: Value) -> Value:
    """Products of decimals."""
    precision, scale = left.type.precision + right.type.precision + 1, left.type.scale + right.type.scale
    if precision <= MOST_DIGITS:
        return pc.multiply(left, right)
    return rescaled(pc.multiply(_wide(left), _within(right, left.type.precision)), decimal_type(precision, scale))


def divided(left: Value, right: Value, kind: pa.DataType | None = None) -> Value:
    """Quotients of decimals, by default in Spark's type of them; the divisor is null where it is zero."""
    one, other = left.type, right.type
    if kind is None:
        scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
        kind = decimal_type(one.precision - one.scale + other.scale + scale, scale)
    # Arrow's quotient has scale + precision - scale + 1 digits after the point; one more than needed is rounded.
    scale = max(one.scale, kind.scale + other.scale - other.precision)
    dividend = pc.cast(left, pa.decimal256(min(one.precision - one.scale + scale, _WIDEST - 2), scale))
    return rescaled(pc.divide(dividend, _within(right, dividend.type.precision)), kind)


def whole_quotient(left: Value, right: Value) -> Value:
    """Quotients cut off towards zero, as BIGINT."""
    one, other = left.type, right.type
    wide = pc.cast(left, pa.decimal256(min(one.precision + other.scale, _WIDEST - 2), one.scale))
    return pc.cast(pc.trunc(pc.divide(wide, _within(right, wide.type.precision))), pa.int64(), safe=False)


def remainder(left: Value, right: Value) -> Value:
    """What division towards zero leaves, with the sign of what is divided."""
    one, other = left.type, right.type
    scale = max(one.scale, other.scale)
    whole = min(one.precision - one.scale, other.precision - other.scale)
    room = pa.decimal256(min(max(one.precision - one.scale, other.precision - other.scale) + scale, 37), scale)
    dividend, divisor = pc.cast(left, room), pc.cast(right, room)
    times = pc.cast(pc.trunc(pc.divide(dividend, divisor)), pa.decimal256(38, 0))
    room = pa.decimal256(74, scale)
    left_over = pc.subtract(pc.cast(dividend, room), pc.cast(pc.multiply(times, divisor), room))
    return rescaled(left_over, decimal_type(whole + scale, scale))


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))


def _within(value: Value, other_precision: int) -> Value:
    """A decimal with so few digits that Arrow has room for the result with another; raises where it has more."""
    return pc.cast(value, pa.decimal256(min(value.type.precision, _WIDEST - 1 - other_precision), value.type.scale))


def rounded(value: Value, places: int, mode: str = _ROUND) -> Value:
    """A decimal rounded, by default half up, to so many digits after the point, or before it."""
    kind = value.type
    whole = kind.precision - kind.scale + 1
    scale = max(min(kind.scale, places), 0)
    precision = whole + scale if places >= 0 else max(whole, 1 - places)
    return pc.cast(_rounded(value, max(places, -MOST_DIGITS), mode), pa.decimal128(min(precision, MOST_DIGITS), scale))


def to_whole(rounding: Callable[[Value], Value], value: Value) -> Value:
    """The next whole number below or above, as a decimal without a fraction."""
    kind = value.type
    if not kind.scale:
        return value
    room = pc.cast(value, pa.decimal256(kind.precision + 1, kind.scale))
    return pc.cast(rounding(room), pa.decimal128(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0))


# Sums of groups


def sum_type(kind: pa.DataType) -> pa.DataType:
    """The type of a sum: ten digits more."""
    return pa.decimal128(min(kind.precision + 10, MOST_DIGITS), kind.scale)


def mean_type(total: pa.DataType) -> pa.DataType:
    """The type of a mean, by that of the sum: four digits more than the numbers have, before and after the point."""
    room = MOST_DIGITS if total.precision == MOST_DIGITS else total.precision - 6
    return pa.decimal128(room, min(total.scale + 4, room))


def sums(groups: Groups, column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The sum of each group of decimals without nulls; raises where it does not fit the type."""
    totals = [groups.sums(limb) for limb in _limbs(column)]
    totals += [np.zeros(len(totals[0]), np.int64)] * (4 - len(totals))
    for place in range(3):
        totals[place + 1] = totals[place + 1] + (totals[place] >> np.int64(32))
        totals[place] = totals[place] & _LIMB
    low, high = (totals[place] | (totals[place + 1] << np.int64(32)) for place in (0, 2))
    # What does not fit the higher word has been shifted out of it.
    sign = totals[3] >> np.int64(32)
    words = np.stack([low, high, sign, sign], axis=1)
    wide = pa.Array.from_buffers(pa.decimal256(_WIDEST, kind.scale), len(low), [None, pa.py_buffer(words)])
    return pc.cast(wide, kind)


def _limbs(column: pa.Array) -> list[Any]:
    """The unscaled numbers in parts of 32 bits, the lowest first, the last one with the sign."""
    words = unscaled(column)
    found = [words[:, 0] & _LIMB, words[:, 0] >> np.int64(32)]
    if column.type.precision <= _DIGITS_OF_INT64:
        return found
    return [found[0], found[1] & _LIMB, words[:, 1] & _LIMB, words[:, 1] >> np.int64(32)]


def unscaled(column: pa.Array) -> Any:
    """The two words of each value's digits, the lower one first; of up to 18 digits it is the number itself."""
    words = np.frombuffer(column.buffers()[1] or b"", np.int64).reshape(-1, 2)
    return words[column.offset : column.offset + len(column)]
