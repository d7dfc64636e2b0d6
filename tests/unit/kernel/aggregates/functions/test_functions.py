from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from statistics import fmean, pvariance, variance
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions import AGGREGATES, mergeable, partial_bytes, result_type
from millrace.kernel.aggregates.functions.moments import PAIRS
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import PANE, FunctionCall, Partials
from millrace.kernel.elements import TIME, Batch

Row = tuple[Any, ...]
NAMES = ["k", "whole", "fraction", "text", "flag", "kept", TIME]
SCHEMA = pa.schema(
    [("k", pa.string()), ("whole", pa.int64()), ("fraction", pa.float64()), ("text", pa.string())]
    + [("flag", pa.bool_()), ("kept", pa.bool_()), (TIME, pa.int64())]
)
PARAMETERS: dict[str, tuple[float, ...]] = {"percentile": (0.3,), "approx_percentile": (0.3,)}


def rows() -> st.SearchStrategy[list[Row]]:
    row = st.tuples(
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(-(2**40), 2**40),
        st.none() | st.sampled_from([-2.5, -0.0, 0.0, 1.25, 7.0, math.nan]),
        st.none() | st.sampled_from(["", "x", "yy", "ä"]),
        st.none() | st.booleans(),
        st.none() | st.booleans(),
        st.integers(-3, 3),
    )
    return st.lists(row, min_size=1, max_size=30)


def batch_of(rows: Sequence[Row]) -> Batch:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(SCHEMA)]
    return Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def partials_of(*aggregations: FunctionCall) -> Partials:
    return Partials(WindowGeometry(100, 100, -50), ["k"], aggregations)


def in_pieces(partials: Partials, rows: Sequence[Row], cuts: Sequence[int]) -> pa.Table:
    """Partials of pieces of the rows, merged one after another."""
    ends = sorted({*(cut % len(rows) for cut in cuts), len(rows)} - {0})
    tables = [
        partials.of_rows([partials.tagged(batch_of(rows[start:end]))])
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    merged = tables[0]
    for table in tables[1:]:
        merged = partials.merged([table, merged])
    return merged


def results(partials: Partials, table: pa.Table) -> dict[Any, dict[str, Any]]:
    """The results by key and name."""
    names = [each.name for each in partials.calls]
    found = pa.Table.from_arrays(partials.results(table), names=names)
    return dict(zip(table.column("k").to_pylist(), found.to_pylist(), strict=True))


def nulls_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else nan_last(value))


def nan_last(value: Any) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def extreme(best: Any) -> Callable[[list[Any]], Any]:
    return lambda values: best(values, key=nan_last) if values else None


def distinct(values: list[Any]) -> list[Any]:
    numbers = {value for value in values if value == value}
    return [*numbers, *([math.nan] if len(numbers) < len(values) and any(v != v for v in values) else [])]


def percentile(values: list[Any]) -> float | None:
    if not values:
        return None
    place, ordered = 0.3 * (len(values) - 1), sorted(values, key=nan_last)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else low + (high - low) * (place % 1)


def total(values: list[Any]) -> Any:
    return sum(values) if values else None


def of_numbers(function: Callable[[list[Any]], float], least: int) -> Callable[[list[Any]], float | None]:
    def found(values: list[Any]) -> float | None:
        if len(values) < least:
            return None
        return math.nan if any(value != value for value in values) else float(function(values))

    return found


MEANINGS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": total,
    "min": extreme(min),
    "max": extreme(max),
    "avg": of_numbers(fmean, 1),
    "var_samp": of_numbers(variance, 2),
    "var_pop": of_numbers(pvariance, 1),
    "stddev_samp": of_numbers(lambda values: math.sqrt(variance(values)), 2),
    "stddev_pop": of_numbers(lambda values: math.sqrt(pvariance(values)), 1),
    "count_distinct": lambda values: len(distinct(values)),
    "sum_distinct": lambda values: total(distinct(values)),
    "avg_distinct": lambda values: of_numbers(fmean, 1)(distinct(values)),
    "approx_count_distinct": lambda values: len(distinct(values)),
    "percentile": percentile,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
}
NUMBERS = [
    "sum",
    "avg",
    "var_samp",
    "var_pop",
    "stddev_samp",
    "stddev_pop",
    "sum_distinct",
    "avg_distinct",
    "percentile",
]
CASES = (
    [(name, column) for name in NUMBERS for column in ("whole", "fraction")]
    + [(name, column) for name in ("min", "max", "count") for column in ("whole", "fraction", "text", "flag")]
    + [
        (name, column)
        for name in ("count_distinct", "approx_count_distinct")
        for column in ("fraction", "text", "flag")
    ]
    + [("bool_and", "flag"), ("bool_or", "flag")]
)
CHOICES = [
    ("first", TIME),
    ("last", TIME),
    ("max_by", "text"),
    ("min_by", "text"),
    ("max_by", "fraction"),
    ("min_by", "flag"),
]


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
    return bool(found == expected)


def column_of(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[NAMES.index(name)] for row in rows]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rows=rows(), cuts=st.lists(st.integers(0, 99), max_size=4))
def test_a_function_of_one_column_is_what_its_name_says(rows: list[Row], cuts: list[int]) -> None:
    cases = [(function, column, where) for function, column in CASES for where in (None, "kept")]
    partials = partials_of(
        *(FunctionCall(str(case), case[0], (case[1],), case[2], PARAMETERS.get(case[0], ())) for case in cases)
    )
    found = results(partials, in_pieces(partials, rows, cuts))
    for key in {row[0] for row in rows}:
        for case in cases:
            function, column, where = case
            members = [row for row in rows if row[0] == key and (where is None or row[5])]
            values = [value for value in column_of(members, column) if value is not None]
            assert same(found[key][str(case)], MEANINGS[function](values)), (key, case, values)


@settings(max_examples=40, deadline=None)
@given(rows=rows(), cuts=st.lists(st.integers(0, 99), max_size=4))
def test_a_choice_is_by_another_column_then_by_the_value(rows: list[Row], cuts: list[int]) -> None:
    cases = [(*choice, value) for choice in CHOICES for value in ("whole", "fraction", "text", "flag")]
    partials = partials_of(
        *(FunctionCall(str(case), case[0], (case[2],) if case[1] == TIME else (case[2], case[1])) for case in cases)
    )
    found = results(partials, in_pieces(partials, rows, cuts))
    for key in {row[0] for row in rows}:
        members = [row for row in rows if row[0] == key]
        for case in cases:
            function, by, value = case
            pairs = zip(column_of(members, by), column_of(members, value), strict=True)
            known = [(nan_last(first), nulls_first(second), second) for first, second in pairs if first is not None]
            best = max if function in ("last", "max_by") else min
            expected = best(known, key=lambda pair: pair[:2])[2] if known else None
            assert nulls_first(found[key][str(case)]) == nulls_first(expected), (key, case)


def columns_for(function: str) -> list[tuple[str, ...]]:
    """Columns that a function takes."""
    if function in PAIRS:
        return [("whole", "fraction"), ("fraction", "whole")]
    if function.startswith(("bit", "try")):
        return [("whole",)]
    if function.startswith(("bool", "string")):
        return [("flag",) if function.startswith("bool") else ("text",)]
    return [(column, "text") if function.endswith("_by") else (column,) for column in ("whole", "fraction")]


@pytest.mark.parametrize("function", sorted(AGGREGATES))
def test_partials_of_no_rows_have_the_same_columns(function: str) -> None:
    rows = [
        ("a", 1, 1.5, "x", True, True, 0),
        ("a", None, None, None, None, True, 1),
        ("b", 1, 2.5, "x", True, None, 2),
    ]
    for columns in columns_for(function):
        partials = partials_of(FunctionCall("r", function, columns, "kept"))
        none = partials.of_rows([partials.tagged(batch_of([]))])
        some = in_pieces(partials, rows, [1])
        assert (none.schema, none.num_rows) == (some.schema, 0)
        assert results(partials, partials.merged([none, some])) == results(partials, some)
        kind = result_type(function, [SCHEMA.field(name).type for name in columns])
        assert [each.type for each in partials.results(none)] == [kind]


def test_times_and_dates_have_extremes_too() -> None:
    moments, days = [datetime(1969, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)], [date(1969, 1, 1), None]
    rows = pa.record_batch({PANE: [0, 0], "m": pa.array(moments, pa.timestamp("us", "UTC")), "d": pa.array(days)})
    partials = Partials(WindowGeometry(1, 1), [], [FunctionCall("x", "max", ("m",)), FunctionCall("y", "min", ("d",))])
    assert [each.to_pylist() for each in partials.results(partials.of_rows([rows]))] == [[moments[1]], [days[0]]]


def in_one(function: str, values: Any, pieces: int = 1, parameters: tuple[float, ...] = (), shuffle: int = 0) -> Any:
    """One result over all values, cut in pieces that are merged by pairs, in a random order."""
    partials = Partials(WindowGeometry(1, 1), [], [FunctionCall("r", function, ("v",), None, parameters)])
    tables = [
        partials.of_rows([pa.record_batch({PANE: np.zeros(len(part), np.int64), "v": part})])
        for part in np.array_split(values, pieces)
    ]
    random = np.random.default_rng(shuffle)
    while len(tables) > 1:
        left, right = (tables.pop(int(random.integers(len(tables)))) for _ in range(2))
        tables.append(partials.merged([left, right]))
    return partials.results(tables[0])[0].to_pylist()[0]


@pytest.mark.parametrize("pieces", [1, 50])
def test_the_variance_of_large_numbers_that_differ_little_is_right(pieces: int) -> None:
    small = np.random.default_rng(3).normal(size=10_000)
    assert in_one("var_samp", 1e9 + small, pieces) == pytest.approx(float(np.var(small, ddof=1)), rel=1e-6)


@pytest.mark.parametrize("count", [1, 100, 3_000, 10_000, 30_000, 1_000_000])
def test_the_approximate_count_of_distinct_values_is_near(count: int) -> None:
    assert in_one("approx_count_distinct", np.arange(count)) == pytest.approx(count, rel=0.05)
    assert in_one("approx_count_distinct", np.arange(count) * 0.37) == pytest.approx(count, rel=0.05)


def test_the_approximate_count_of_distinct_texts_is_near() -> None:
    assert in_one("approx_count_distinct", np.array([f"user-{n}" for n in range(10_000)])) == pytest.approx(
        1e4, rel=0.05
    )


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_approximate_percentile_is_within_a_percent(fraction: float, scale: float) -> None:
    values = np.random.default_rng(5).standard_cauchy(9_999) * scale
    exact = np.sort(values)[max(math.ceil(fraction * len(values)), 1) - 1]
    assert in_one("approx_percentile", values, 7, (fraction,)) == pytest.approx(exact, rel=0.010001)


@pytest.mark.parametrize(
    "values", [[0.0, -0.0], [math.inf], [-math.inf, -math.inf], [1.7976931348623157e308], [5e-324]]
)
def test_the_approximate_percentile_of_odd_numbers(values: list[float]) -> None:
    assert in_one("approx_percentile", np.array(values), 1, (0.5,)) == pytest.approx(values[0], rel=0.01)


@pytest.mark.parametrize("value", [1000.123, -7.0, 0.1, 1e-200, 3.3e250])
def test_the_approximate_percentile_of_equal_numbers_is_the_number(value: float) -> None:
    for count, fraction in [(1, 0.5), (9, 0.01), (9, 0.99)]:
        assert in_one("approx_percentile", np.full(count, value), min(count, 3), (fraction,)) == value


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_the_approximate_percentile_is_never_outside_of_the_numbers(fraction: float) -> None:
    values = np.random.default_rng(6).lognormal(0, 3, 500)
    assert values.min() <= in_one("approx_percentile", values, 5, (fraction,)) <= values.max()


def test_nan_is_the_greatest_number_in_percentiles() -> None:
    for function in ("percentile", "approx_percentile"):
        assert math.isnan(in_one(function, np.array([math.nan, 1.0]), 1, (1.0,)))
        assert in_one(function, np.array([math.nan, 1.0]), 1, (0.0,)) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    "function", ["approx_percentile", "approx_count_distinct", "percentile", "count_distinct", "histogram_numeric"]
)
def test_results_are_equal_to_the_bit_for_any_order_of_merging(function: str) -> None:
    values = np.random.default_rng(9).lognormal(3, 4, size=20_000)
    expected = in_one(function, values)
    for shuffle in range(5):
        mixed = np.random.default_rng(shuffle).permutation(values)
        assert in_one(function, mixed, 20, (), shuffle) == expected


def test_partials_merge_by_any_columns() -> None:
    partials = partials_of(FunctionCall("n", "count"))
    made = partials.of_rows([partials.tagged(batch_of([("a", *[None] * 5, 0), ("b", *[None] * 5, 60)]))])
    assert partials.merged_by([made], [PANE]).column_names == [PANE, "__p0_0"]
    assert partials.merged_by([made, made], []).column("__p0_0").to_pylist() == [4]


def test_functions_that_ask_for_the_time_get_it() -> None:
    assert partials_of(FunctionCall("r", "first", ("text",))).needs_time
    assert not partials_of(FunctionCall("r", "max", ("text",))).needs_time


@pytest.mark.parametrize(
    ("function", "types", "fact"),
    [
        ("sum", [pa.string()], '"sum" takes a number or an interval, not STRING'),
        ("percentile", [pa.bool_()], '"percentile" takes a number, not BOOLEAN'),
        ("bool_or", [pa.int64()], '"bool_or" takes a condition, not BIGINT'),
        ("max_by", [pa.int64()], '"max_by" takes 2 arguments, not 1'),
        ("min", [pa.map_(pa.string(), pa.int64())], '"min" takes a comparable column'),
        ("bit_and", [pa.float64()], '"bit_and" takes a whole number, not DOUBLE'),
        ("count", [pa.int64(), pa.int64()], '"count" takes one column or none'),
        ("sum_distinct", [pa.string()], '"sum_distinct" takes a number'),
    ],
)
def test_arguments_that_a_function_cannot_take_are_refused(function: str, types: list[pa.DataType], fact: str) -> None:
    with pytest.raises(RequestError) as refused:
        result_type(function, types)
    assert refused.value.fact.startswith(fact)
    assert refused.value.hint


def test_a_fraction_beyond_one_is_refused() -> None:
    with pytest.raises(RequestError, match="not between 0 and 1"):
        partials_of(FunctionCall("r", "percentile", ("whole",), None, (95.0,)))


@pytest.mark.parametrize("function", sorted(AGGREGATES))
def test_every_function_merges_and_has_a_size(function: str) -> None:
    assert mergeable(function)
    assert partial_bytes(function, [pa.int64()]) >= 8


@pytest.mark.parametrize("value", [0.1, 1e300, -7.0])
@pytest.mark.parametrize("pieces", [1, 3])
def test_equal_numbers_have_no_shape(value: float, pieces: int) -> None:
    assert in_one("skewness", np.full(9, value), pieces) is None
    assert in_one("kurtosis", np.full(9, value), pieces) is None


def test_the_closest_bins_of_a_histogram_become_one() -> None:
    found = in_one("histogram_numeric", np.array([1.0, 9.0, 1.5, 20.0, 9.0]), 2, (3,))
    assert found == [{"x": 1.25, "y": 2.0}, {"x": 9.0, "y": 2.0}, {"x": 20.0, "y": 1.0}]
    many = in_one("histogram_numeric", np.random.default_rng(2).normal(size=5_000), 5, (10,))
    assert (len(many), sum(each["y"] for each in many)) == (10, 5_000)
    assert [each["x"] for each in many] == sorted(each["x"] for each in many)


def test_a_sum_that_64_bits_cannot_hold_is_null_however_it_is_cut() -> None:
    large = np.array([2**62, 2**62, -5, -(2**62), 7])
    assert {in_one("try_sum", large, pieces) for pieces in (1, 2, 5)} == {2**62 + 2}
    assert in_one("try_sum", np.array([2**62, 2**62]), 2) is None
    assert in_one("try_sum", np.array([-(2**62), -(2**62)]), 2) == -(2**63)
