"""Functions of numbers: Arrow's kernels and NumPy's.

Rules:
- A logarithm or a quotient that does not exist is null; other fractions follow IEEE 754, as in Java.
- Bits are those of two's complement, and a shift by more than the width begins again, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from math import e, factorial, pi
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import decimals
from millrace.kernel.columns.casts import Value, double, nonzero, remainder, where
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct
from millrace.kernel.columns.nested.nested_columns import over_columns

_ROUND = "half_to_even"
_EXACT_POWER = 22
"""The greatest power of ten that a double holds exactly."""
Fractions = npt.NDArray[np.float64]
_PIECE = 16_384
WIDE = Context(prec=1_200)
"""More digits than any number has, so that nothing is lost before it is rounded."""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def of_doubles(function: Callable[..., Any]) -> Kernel:
    """A function of NumPy's over fractions, null where one of them is null."""

    @over_columns
    def compute(*columns: pa.Array) -> pa.Array:
        nulls = np.logical_or.reduce([np.asarray(each.is_null()) for each in columns])
        numbers = [double(each).fill_null(0.0).to_numpy(zero_copy_only=False) for each in columns]
        with np.errstate(all="ignore"):
            return pa.array(function(*numbers), pa.float64(), mask=nulls)

    return compute


def _cube_root(number: np.ndarray) -> np.ndarray:
    """NumPy's root after one step of Newton's method: its last bit differs between machines, and 27 has the root 3."""
    root = np.cbrt(number)
    better = root - (root * root * root - number) / (3.0 * root * root)
    return np.where(np.isfinite(better), better, root)


def _math(function: Callable[..., Value]) -> Kernel:
    return lambda *values: function(*(double(value) for value in values))


def _above(least: float, function: Callable[[Value], Value]) -> Kernel:
    """A logarithm, null where the number is not above a limit; of NaN it is NaN."""
    return lambda value: function(where(pc.invert(pc.less_equal(double(value), least)), double(value)))


def _log(base: Value, number: Value) -> Value:
    positive = [where(pc.invert(pc.less_equal(double(each), 0.0)), double(each)) for each in (base, number)]
    return pc.divide(pc.ln(positive[1]), pc.ln(positive[0]))


def _pmod(left: Value, right: Value) -> Value:
    """The remainder with the sign of the divisor, as far as Java's formula gives it."""
    rest = remainder(left, right)
    if pa.types.is_floating(rest.type):
        right = double(right)
    if pa.types.is_decimal(left.type):
        again = remainder(decimals.added(pc.add)(rest, nonzero(right)), right)
        return pc.if_else(pc.less(rest, pa.scalar(0, rest.type)), pc.cast(again, rest.type), rest)
    divisor = nonzero(right)
    return pc.if_else(pc.less(rest, pa.scalar(0, rest.type)), remainder(pc.add(rest, divisor), divisor), rest)


def rounded(value: Value, places: int, *, even: bool = False) -> Value:
    """Fractions rounded by their decimal digits, as Java's BigDecimal does it: 1.005 to two places is 1.01."""

    def compute(numbers: Fractions) -> Fractions:
        # In pieces that a cache holds: it takes a third of the time.
        pieces = [numbers[start : start + _PIECE] for start in range(0, max(len(numbers), 1), _PIECE)]
        return np.concatenate([_rounded(each, places, even) for each in pieces])

    return pc.cast(of_doubles(compute)(value), value.type, safe=False)


def _rounded(numbers: Fractions, places: int, even: bool) -> Fractions:
    """By their bits, which gives another number only in or close to the middle between two results."""
    power = 10.0 ** min(abs(places), _EXACT_POWER)
    scaled = numbers * power if places >= 0 else numbers / power
    near = np.rint(scaled)
    found = near / power if places >= 0 else near * power
    # Beyond that a number has no fraction, or is none.
    large = ~(np.abs(numbers) < 2.0**53) if places >= 0 else ~np.isfinite(numbers)
    found[large] = numbers[large]
    # Beyond 15 digits two decimals may be one double.
    few_digits = np.abs(scaled) < (1e14 if abs(places) <= _EXACT_POWER else 0.0)
    close = (np.abs(scaled - near) >= 0.5 - 2.0**-4) & few_digits
    found[close] = _at_middle(numbers[close], power, places, even)
    others = ~(few_digits | large)
    found[others] = [_digit_by_digit(each, places, even) for each in numbers[others].tolist()]
    return found + 0.0


def _at_middle(numbers: Fractions, power: float, places: int, even: bool) -> Fractions:
    """Rounded by the decimal of few digits that is the middle, if that is what a number stands for."""
    size = np.abs(numbers)
    below = np.floor(size * power if places >= 0 else size / power)
    middle = (below + 0.5) / power if places >= 0 else (below + 0.5) * power
    above = below + ((size > middle) | ((size == middle) & ((below % 2 == 1) if even else True)))
    return np.copysign(above / power if places >= 0 else above * power, numbers)


def _digit_by_digit(number: float, places: int, even: bool) -> float:
    exact, last = Decimal(repr(number)), Decimal(1).scaleb(-max(min(places, 400), -400))
    return float(exact.quantize(last, ROUND_HALF_EVEN if even else ROUND_HALF_UP, WIDE))


def _bround(value: Value, digits: Value | None = None) -> Value:
    places = 0 if digits is None else digits.as_py()
    if pa.types.is_decimal(value.type):
        return decimals.rounded(value, places, _ROUND)
    if pa.types.is_integer(value.type) and places >= 0:
        return value
    if pa.types.is_integer(value.type):
        exact = pc.cast(value, pa.decimal128(38, 0))
        return pc.cast(pc.round(exact, ndigits=max(places, -20), round_mode=_ROUND), value.type)
    return rounded(value, places, even=True)


def _nanvl(value: Value, other: Value) -> Value:
    return pc.if_else(pc.fill_null(pc.is_nan(double(value)), False), double(other), double(value))


@over_columns
def _width_bucket(value: pa.Array, low: pa.Array, high: pa.Array, count: pa.Array) -> pa.Array:
    given = [np.asarray(double(each).fill_null(np.nan)) for each in (value, low, high)]
    number, least, most = given
    buckets = np.asarray(count.fill_null(0)).astype(np.int64)
    none = np.isnan(number) | ~np.isfinite(least) | ~np.isfinite(most) | (least == most) | (buckets <= 0)
    nulls = none | np.asarray(value.is_null()) | (buckets == np.iinfo(np.int64).max)
    rising = least < most
    with np.errstate(all="ignore"):
        share = buckets * (number - least) / (most - least)
    below = np.where(rising, number < least, number > least)
    beyond = np.where(rising, number >= most, number <= most)
    # Whole numbers from here on: a fraction cannot hold a bucket beyond 2 to the 53rd.
    inside = np.where(nulls | below | beyond, 0.0, np.minimum(share, 2.0**63 - 1024)).astype(np.int64) + 1
    return pa.array(np.where(below, 0, np.where(beyond, buckets + 1, inside)), mask=nulls)


def _bits(function: Callable[..., Any]) -> Kernel:
    """A function of NumPy's over whole numbers, of the type of the first."""

    @over_columns
    def compute(*columns: pa.Array) -> pa.Array:
        if not all(pa.types.is_integer(each.type) for each in columns):
            raise pa.ArrowInvalid("bits are those of whole numbers")
        nulls = np.logical_or.reduce([np.asarray(each.is_null()) for each in columns])
        numbers = [np.asarray(each.fill_null(0)) for each in columns]
        return pa.array(function(*numbers).astype(numbers[0].dtype), mask=nulls)

    return compute


def _shift(function: Callable[..., Any]) -> Kernel:
    def shifted(number: Any, count: Any) -> Any:
        width = number.dtype.itemsize * 8
        return function(number, (count % width).astype(number.dtype))

    return _bits(shifted)


def _unsigned(number: Any, count: Any) -> Any:
    kind = np.uint64 if number.dtype.itemsize == 8 else np.uint32
    return (number.view(kind) >> count.astype(kind)).view(number.dtype)


@over_columns
def _bit_count(value: pa.Array) -> pa.Array:
    plain = pc.cast(value, pa.int8()) if pa.types.is_boolean(value.type) else value
    words = np.ascontiguousarray(np.asarray(plain.fill_null(0)).astype(np.int64)).view(np.uint8).reshape(-1, 8)
    return pa.array(np.unpackbits(words, axis=1).sum(axis=1).astype(np.int32), mask=np.asarray(value.is_null()))


@over_columns
def _bit_get(value: pa.Array, place: pa.Array) -> pa.Array:
    width = value.type.bit_width
    outside = pc.or_(pc.less(place, 0), pc.greater_equal(place, width))
    if pc.any(pc.and_(outside, value.is_valid())).as_py():
        raise pa.ArrowInvalid(f"a place among the bits of a number is from 0 to {width - 1}")
    nulls = np.asarray(pc.or_(value.is_null(), place.is_null()))
    shifted = np.asarray(value.fill_null(0)).astype(np.int64) >> np.asarray(place.fill_null(0)).astype(np.int64)
    return pa.array((shifted & 1).astype(np.int8), mask=nulls)


def digits_of(bits: int) -> Kernel:
    """Whole numbers of 64 bits in digits of so many bits, without leading zeros."""
    count = 64 // bits
    shifts = np.arange(count - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
    letters = np.frombuffer(_DIGITS.encode(), np.uint8)

    @over_columns
    def compute(value: pa.Array) -> pa.Array:
        words = np.asarray(value.fill_null(0)).astype(np.int64).view(np.uint64)
        digits = (words[:, None] >> shifts) & np.uint64(2**bits - 1)
        shown = np.maximum.accumulate(digits != 0, axis=1)
        shown[:, -1] = True
        offsets = np.concatenate([[0], np.cumsum(shown.sum(axis=1))]).astype(np.int32)
        data = letters[digits[shown].astype(np.int64)]
        found = pa.Array.from_buffers(
            pa.string(), len(value), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
        )
        return pc.if_else(value.is_valid(), found, pa.scalar(None, pa.string()))

    return compute


def _conv(text: str, given: int, wanted: int) -> str | None:
    """A number of one base in another; Hive's rules: what does not fit 64 bits is the greatest number."""
    if not (2 <= given <= 36 and 2 <= abs(wanted) <= 36) or not text.strip(" "):
        return None
    text = text.strip(" ")
    negative = text.startswith("-")
    number = 0
    for letter in text[negative:].upper():
        digit = _DIGITS.find(letter)
        if not 0 <= digit < given:
            break
        number = number * given + digit
    number = min(number, 2**64 - 1)
    if negative:
        number = -number % 2**64 if wanted > 0 else -number
    elif wanted < 0 and number >= 2**63:
        number -= 2**64
    # A zero keeps its sign where signs are written, as in Spark.
    sign = "-" * (number < 0 or (negative and wanted < 0))
    return f"{sign}{_in_base(abs(number), abs(wanted))}"


def _in_base(number: int, base: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


_FACTORIALS = [factorial(number) for number in range(21)]


@over_columns
def _factorial(value: pa.Array) -> pa.Array:
    inside = pc.and_(pc.greater_equal(value, 0), pc.less_equal(value, 20))
    return pa.array(_FACTORIALS, pa.int64()).take(where(inside, value))


def attempted(kernel: Kernel, overflows: Callable[[Any, Any], Any] | None = None) -> Kernel:
    """A kernel, with null for the rows for which it raises `pa.ArrowInvalid`.

    Of whole numbers `overflows` tells which these are, of other columns they are found by halves.
    """

    def of_rows(*columns: pa.Array) -> pa.Array:
        count = len(columns[0])
        try:
            return kernel(*columns)
        except pa.ArrowInvalid:
            if count == 1:
                return pa.nulls(1, kernel(*(each.slice(0, 0) for each in columns)).type)
        if overflows is not None and all(pa.types.is_integer(each.type) for each in columns):
            left, right = np.broadcast_arrays(*(np.asarray(each.fill_null(0)) for each in columns))
            kind = np.promote_types(left.dtype, right.dtype)
            beyond = overflows(left.astype(kind), right.astype(kind))
            return kernel(where(pa.array(~beyond), columns[0]), *columns[1:])
        half = count // 2
        halves = ([each.slice(begin, size) for each in columns] for begin, size in ((0, half), (half, count - half)))
        return pa.concat_arrays([of_rows(*each) for each in halves])

    return over_columns(of_rows)


def sum_overflows(left: Any, right: Any) -> Any:
    """Where a sum of integers has another sign than both of them."""
    found = left + right
    return ((left ^ found) & (right ^ found)) < 0


def difference_overflows(left: Any, right: Any) -> Any:
    """Where a difference of integers of different signs has not the sign of the first."""
    return ((left ^ right) & (left ^ (left - right))) < 0


def product_overflows(left: Any, right: Any) -> Any:
    """Where a product of integers, divided by one of them, does not give the other."""
    least = np.iinfo(left.dtype).min
    # The least number divided by -1 would not fit either.
    by_one = right == -1
    divisor = np.where((right == 0) | by_one, left.dtype.type(1), right)
    return np.where(by_one, left == least, (right != 0) & ((left * right) // divisor != left))


NUMBER_FUNCTIONS: dict[str, Kernel] = {
    **{name: _math(getattr(pc, name)) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")},
    **{name: _math(getattr(pc, name)) for name in ("tanh", "asinh", "acosh", "atanh", "expm1")},
    "atan2": _math(lambda y, x: pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0))),
    "sign": _math(pc.sign),
    "log10": _above(0.0, pc.log10),
    "log2": _above(0.0, pc.log2),
    "log1p": _above(-1.0, pc.log1p),
    "log": _log,
    "cbrt": of_doubles(_cube_root),
    "cot": of_doubles(lambda number: 1 / np.tan(number)),
    "sec": of_doubles(lambda number: 1 / np.cos(number)),
    "csc": of_doubles(lambda number: 1 / np.sin(number)),
    "degrees": of_doubles(np.degrees),
    "radians": of_doubles(np.radians),
    "hypot": of_doubles(np.hypot),
    "rint": lambda value: pc.round(double(value), round_mode=_ROUND),
    "e": lambda: pa.scalar(e),
    "pi": lambda: pa.scalar(pi),
    "pmod": _pmod,
    "bround": _bround,
    "nanvl": _nanvl,
    "isnan": lambda value: pc.fill_null(pc.is_nan(value), False),
    "width_bucket": _width_bucket,
    "&": _bits(np.bitwise_and),
    "|": _bits(np.bitwise_or),
    "^": _bits(np.bitwise_xor),
    "~": _bits(np.invert),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "shiftrightunsigned": _shift(_unsigned),
    "bit_count": _bit_count,
    "bit_get": _bit_get,
    "bin": digits_of(1),
    "conv": by_distinct(pa.string())(_conv),
    "factorial": _factorial,
}
