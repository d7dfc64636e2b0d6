"""Functions over whole columns with nulls in them, against what Spark gives with ANSI mode off."""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.scalar_functions import FUNCTIONS
from millrace.kernel.elements import TIMESTAMP


def cast_all(values: list[Any], given: pa.DataType, kind: pa.DataType) -> list[Any]:
    """The values cast as a column; each must be the same when cast as a scalar."""
    found = cast(pa.array(values, given), kind)
    assert found.type == kind
    alone = pa.array([cast(pa.scalar(value, given), kind).as_py() for value in values], kind)
    assert str(alone) == str(found)
    return list(found.to_pylist())


def test_a_whole_number_is_rounded_to_tens_and_keeps_its_type() -> None:
    numbers = pa.array([None, 7, 4, 5, -5, -15, 0], pa.int32())
    found = FUNCTIONS["round"](numbers, pa.scalar(-1))
    assert found.equals(pa.array([None, 10, 0, 10, -10, -20, 0], pa.int32()))
    assert FUNCTIONS["round"](numbers, pa.scalar(2)).equals(numbers)


def test_a_whole_number_rounded_beyond_its_digits_is_zero() -> None:
    for kind in (pa.int8(), pa.int64()):
        assert FUNCTIONS["round"](pa.array([7, None], kind), pa.scalar(-30)).equals(pa.array([0, None], kind))


def test_a_big_whole_number_is_rounded_exactly() -> None:
    assert FUNCTIONS["round"](pa.array([2**53 + 1]), pa.scalar(-1)).to_pylist() == [9_007_199_254_740_990]


def test_a_whole_number_rounded_out_of_its_type_fails() -> None:
    with pytest.raises(pa.ArrowInvalid):
        FUNCTIONS["round"](pa.array([127], pa.int8()), pa.scalar(-1))


def test_a_logarithm_is_null_where_there_is_none() -> None:
    found = FUNCTIONS["ln"](pa.array([None, 0.0, -0.0, -1.0, 1.0, math.inf, -math.inf]))
    assert found.to_pylist() == [None, None, None, None, 0.0, math.inf, None]
    assert math.isnan(FUNCTIONS["ln"](pa.scalar(math.nan)).as_py())


def test_the_root_of_a_negative_number_is_nan() -> None:
    nothing, root, four = FUNCTIONS["sqrt"](pa.array([None, -1.0, 16.0])).to_pylist()
    assert (nothing, math.isnan(root), four) == (None, True, 4.0)


def test_text_with_a_fraction_is_cut_off_to_a_whole_number() -> None:
    words = [None, "1.7", "-1.7", " +2. ", ".5", "-.5", "12", "1e3", "1.x", "1.2.3", "", "-", "2147483648.0"]
    expected = [None, 1, -1, 2, 0, 0, 12, None, None, None, None, None, None]
    assert cast_all(words, pa.string(), pa.int32()) == expected


def test_text_is_true_or_false_in_all_of_spark_s_words() -> None:
    words = [None, "t", "TRUE", " y", "yes", "1", "f", "False", "n", "No ", "0", "on", "2", ""]
    expected = [None, True, True, True, True, True, False, False, False, False, False, None, None, None]
    assert cast_all(words, pa.string(), pa.bool_()) == expected


def test_text_names_the_numbers_that_are_not_finite() -> None:
    words = ["Infinity", "+infinity", "-Infinity", "inf", "+Inf", " -inf ", "infinit", None, "+1.5", "--1", "1e400"]
    inf = math.inf
    expected = [inf, inf, -inf, inf, inf, -inf, None, None, 1.5, None, inf]
    for kind in (pa.float64(), pa.float32()):
        assert cast_all(words, pa.string(), kind) == expected
        assert [math.isnan(each) for each in cast_all(["NaN", "nan"], pa.string(), kind)] == [True, True]
    assert cast_all(["-nan", "nano"], pa.string(), pa.float64()) == [None, None]


def test_text_is_a_time_in_the_spellings_of_spark() -> None:
    words = ["2024-5-1", "1212", "2024-05", "2024-5-1 1:2", "2024-05-01T01:02:00 UTC+2", "2024-05-01 01:02:03.1234567Z"]
    words += ["+2024-05-01 1", "2024-05-01 10:00:00  GMT-1:30"]
    none = ["2024-02-30", "2024-13", "12", "2024-05-01 24:00:00", "2024-05-01T", "2024-05-01 10:00:00+19:00", None]
    times = cast_all([*words, *none], pa.string(), TIMESTAMP)
    assert [each and f"{each:%Y-%m-%d %H:%M:%S.%f}" for each in times] == [
        "2024-05-01 00:00:00.000000",
        "1212-01-01 00:00:00.000000",
        "2024-05-01 00:00:00.000000",
        "2024-05-01 01:02:00.000000",
        "2024-04-30 23:02:00.000000",
        "2024-05-01 01:02:03.123456",
        "2024-05-01 01:00:00.000000",
        "2024-05-01 11:30:00.000000",
        *[None] * len(none),
    ]
    assert cast_all(["2024-5-1 x", "2024-2-30", "2024"], pa.string(), pa.date32()) == [
        dt.date(2024, 5, 1),
        None,
        dt.date(2024, 1, 1),
    ]


def test_a_time_as_text_has_no_zone_and_no_ending_zeros() -> None:
    micros = [None, 1_704_277_230_500_000, 1_704_277_230_000_000, 1_704_277_230_000_010, 0, -1]
    assert cast_all(micros, TIMESTAMP, pa.string()) == [
        None,
        "2024-01-03 10:20:30.5",
        "2024-01-03 10:20:30",
        "2024-01-03 10:20:30.00001",
        "1970-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
    ]


NUMBERS = {
    1.0: "1.0", 0.1: "0.1", -2.5: "-2.5", 0.0: "0.0", 100.0: "100.0", 123456.789: "123456.789", 0.001: "0.001",
    9999999.0: "9999999.0", 1e7: "1.0E7", 12345678.9: "1.23456789E7", 1e10: "1.0E10", -1e10: "-1.0E10",
    0.00099: "9.9E-4", 1e-5: "1.0E-5", 1.7976931348623157e308: "1.7976931348623157E308", 1e23: "1.0E23",
    math.inf: "Infinity", -math.inf: "-Infinity", math.nan: "NaN",
}  # fmt: skip


def test_a_fraction_as_text_is_spelled_as_java_does() -> None:
    values = [None, *NUMBERS, -0.0, *NUMBERS]
    expected = [None, *NUMBERS.values(), "-0.0", *NUMBERS.values()]
    assert cast_all(values, pa.float64(), pa.string()) == expected
    assert cast_all([0.1, None, 16777216.0, 3.0], pa.float32(), pa.string()) == ["0.1", None, "1.6777216E7", "3.0"]
    assert cast_all([], pa.float64(), pa.string()) == []


def test_nulls_of_no_type_are_null_safely_equal() -> None:
    assert FUNCTIONS["<=>"](pa.scalar(None), pa.scalar(None)).as_py() is True
    assert FUNCTIONS["<=>"](pa.array([1, None]), pa.scalar(None)).to_pylist() == [False, True]


def rounded_by_digits(number: float, places: int, mode: str) -> float:
    if not math.isfinite(number):
        return number
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), mode, Context(prec=800))) + 0.0


@pytest.mark.parametrize(("function", "mode"), [("round", ROUND_HALF_UP), ("bround", ROUND_HALF_EVEN)])
@pytest.mark.parametrize("places", [0, 2, 5, 15, 22, 30, 350, -2, -20, -30, -350])
def test_a_fraction_is_rounded_by_its_decimal_digits(function: str, mode: str, places: int) -> None:
    draw = random.Random(places)
    numbers = [draw.uniform(-10, 10) * 10.0 ** draw.randint(-10, 18) for _ in range(500)]
    numbers += [round(draw.uniform(-1000, 1000), draw.randint(0, 6)) for _ in range(500)]
    numbers += [draw.randint(10**14, 10**16) / 2 / 10 ** draw.randint(0, 5) for _ in range(500)]
    numbers += [1.005, 0.285, 2.5, -0.0, -0.4, 5e-324, sys.float_info.max, math.inf, -math.inf]
    found = FUNCTIONS[function](pa.array([*numbers, math.nan, None]), pa.scalar(places)).to_pylist()
    assert str(found[:-2]) == str([rounded_by_digits(each, places, mode) for each in numbers])
    assert math.isnan(found[-2]) and found[-1] is None


def test_nan_is_the_greatest_number_and_never_the_least_of_several() -> None:
    ones, others = pa.array([math.nan, 1.0, None, math.nan]), pa.array([2.0, math.nan, math.nan, None])
    assert [math.isnan(each) for each in FUNCTIONS["greatest"](ones, others).to_pylist()] == [True] * 4
    assert FUNCTIONS["least"](ones, others).to_pylist()[:2] == [2.0, 1.0]


@pytest.mark.parametrize(
    ("unit", "count"), [("hour", 2**62), ("microsecond", -(2**63)), ("month", 2**40), ("day", 2**31)]
)
def test_a_count_that_leads_further_than_any_time_fails(unit: str, count: int) -> None:
    time = pa.array([0], pa.int64()).cast(TIMESTAMP)
    with pytest.raises(pa.ArrowInvalid, match="overflow of a time"):
        FUNCTIONS["timestampadd"](pa.scalar(unit), pa.array([count]), time)


def test_months_that_no_date_has_fail() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow of a time"):
        FUNCTIONS["add_months"](pa.array([0], pa.date32()), pa.array([2**31 - 1], pa.int32()))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize(
    ("function", "exact"),
    [("try_add", operator.add), ("try_subtract", operator.sub), ("try_multiply", operator.mul)],
)
def test_an_attempt_is_null_exactly_where_the_result_does_not_fit(
    function: str, exact: Callable[[int, int], int], kind: pa.DataType
) -> None:
    bounds = np.iinfo(kind.to_pandas_dtype())
    least, greatest = int(bounds.min), int(bounds.max)
    edges = [0, 1, -1, 2, -2, 3, 7, -7, 11, least, least + 1, least // 2, greatest, greatest - 1, greatest // 2, None]
    pairs = [(one, other) for one in edges for other in edges]
    columns = [pa.array(each, kind) for each in zip(*pairs, strict=True)]
    fitting = [None if None in pair else exact(*pair) for pair in pairs]
    expected = [each if each is not None and least <= each <= greatest else None for each in fitting]
    assert FUNCTIONS[function](*columns).to_pylist() == expected


ROWS = 5_000


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("try_add", ["numbers", 2**63 - 1]),
        ("try_subtract", ["numbers", -(2**63) + 1]),
        ("try_multiply", ["numbers", 2**62]),
        ("right", ["texts", 3]),
        ("find_in_set", ["texts", "a,b,x7"]),
        ("encode", ["texts", "UTF-8"]),
        ("decode", ["bytes", "utf-8"]),
    ],
)
def test_a_function_with_a_kernel_over_columns_is_no_loop_over_rows(function: str, arguments: list[Any]) -> None:
    columns = {"numbers": pa.array(range(ROWS)), "texts": pa.array([f"x{each}" for each in range(ROWS)])}
    columns["bytes"] = columns["texts"].cast(pa.binary())
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    given = [columns[each] if each in columns else pa.scalar(each) for each in arguments]
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        FUNCTIONS[function](*given)
    finally:
        sys.setprofile(before)
    assert calls < ROWS / 10
