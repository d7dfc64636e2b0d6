from __future__ import annotations

import datetime
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RequestError, RunError
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal
from millrace.kernel.columns.user_functions import UserCall, UserFunction, loaded
from millrace.kernel.elements import TIME, Batch, Block
from millrace.kernel.relational.filter import Filter
from millrace.kernel.relational.project import Project
from tests.unit.kernel import user_functions as written

HERE = "tests.unit.kernel.user_functions"
DOUBLE, TEXT, WHOLE = pa.float64(), pa.string(), pa.int64()
UTC = pa.timestamp("us", tz="UTC")
ROWS = pa.record_batch({"x": pa.array([1.0, None, 3.0]), "k": ["a", "bb", "ccc"], "n": pa.array([1, 2, 7])})


@pytest.fixture(autouse=True)
def called() -> Iterator[list[tuple[Any, ...]]]:
    written.called.clear()
    yield written.called
    written.called.clear()


def function(name: str, *takes: pa.DataType, returns: pa.DataType = DOUBLE) -> UserFunction:
    return UserFunction(name, takes or (DOUBLE,), returns, f"{HERE}:{name}")


def call(name: str, *arguments: Expression, returns: pa.DataType = DOUBLE) -> UserCall:
    kinds = [each.type_in(ROWS.schema) for each in arguments]
    return UserCall(function(name, *kinds, returns=returns), arguments)


PRICE = call("price", Column("x"), Column("k"))
POSITIVE = call("positive", Column("x"))


# Values


def test_a_function_is_called_row_by_row_with_none_for_null(called: list[tuple[Any, ...]]) -> None:
    assert PRICE.over(ROWS).to_pylist() == [1.0, None, 9.0]
    assert called == [(1.0, "a"), (None, "bb"), (3.0, "ccc")]


def test_one_that_is_marked_is_called_once_with_columns(called: list[tuple[Any, ...]]) -> None:
    found = call("columns_price", Column("x"), Column("k")).over(ROWS)
    assert found.to_pylist() == [1.0, None, 9.0]
    assert called == [(3, 3)]


def test_columns_may_come_back_from_numpy_and_in_a_type_that_widens() -> None:
    assert call("doubled", Column("n"), returns=WHOLE).over(ROWS).to_pylist() == [2, 4, 14]
    assert call("doubled", Column("n"), returns=DOUBLE).over(ROWS).to_pylist() == [2.0, 4.0, 14.0]


def test_constants_and_expressions_are_arguments_and_it_is_one_of_them() -> None:
    nested = Call("+", (call("price", PRICE, Literal("xy", TEXT)), Literal(1.0, DOUBLE)))
    assert nested.over(ROWS).to_pylist() == [3.0, None, 19.0]
    assert str(nested) == "(price(price(x, k), 'xy') + 1.0)"


def test_times_and_places_inside_classes() -> None:
    rows = pa.record_batch({"t": pa.array([0, None], pa.int64()).cast(UTC), "x": [4.0, 8.0]})
    with pytest.raises(RunError, match=r"\"next_day\" failed for \(None\)"):
        UserCall(function("next_day", UTC, returns=UTC), (Column("t"),)).over(rows)
    found = UserCall(function("next_day", UTC, returns=UTC), (Column("t"),)).over(rows.slice(0, 1))
    assert found.to_pylist() == [datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)]
    tax = UserFunction("tax", (DOUBLE,), DOUBLE, f"{HERE}:Shop.tax")
    assert UserCall(tax, (Column("x"),)).over(rows).to_pylist() == [1.0, 2.0]


def test_types_are_known_without_the_code() -> None:
    absent = UserCall(UserFunction("f", (DOUBLE,), TEXT, "nowhere.at_all:f"), (Column("x"),))
    assert absent.type_in(ROWS.schema) == TEXT


def test_an_expression_says_whether_it_is_guarded_and_travels(called: list[tuple[Any, ...]]) -> None:
    assert Call("+", (PRICE, Column("x"))).is_guarded and Cast(PRICE, TEXT).is_guarded
    assert not Call("+", (Column("x"), Column("x"))).is_guarded
    sent = pickle.loads(pickle.dumps(Cast(PRICE, TEXT)))
    assert sent == Cast(PRICE, TEXT) and sent.over(ROWS).to_pylist() == ["1.0", None, "9.0"]
    assert list(Cast(PRICE, TEXT).columns()) == ["x", "k"]


# Failures


def test_a_failure_names_the_function_the_arguments_and_the_reason() -> None:
    rows = pa.record_batch({"x": [2.0, -1.0]})
    with pytest.raises(RunError) as caught:
        POSITIVE.over(rows)
    assert caught.value.fact == 'function "positive" failed for (-1.0): ValueError: it must be positive'
    assert f"{HERE}:positive" in caught.value.hint


def test_a_failure_over_columns_shows_the_first_row() -> None:
    with pytest.raises(RunError) as caught:
        call("failing", Column("n")).over(ROWS)
    assert caught.value.fact == "function \"failing\" failed for 3 rows, of which the first is (1): KeyError: 'nothing'"


def test_long_arguments_are_shortened() -> None:
    rows = pa.record_batch({"x": ["y" * 5000]})
    with pytest.raises(RunError) as caught:
        UserCall(function("positive", TEXT), (Column("x"),)).over(rows)
    assert len(caught.value.fact) < 300


@pytest.mark.parametrize(
    ("value", "returns", "given"),
    [
        ("seven", WHOLE, "'seven' for (7)"),
        (1.5, WHOLE, "1.5 for (7)"),
        (True, WHOLE, "True for (7)"),
        (True, DOUBLE, "True for (7)"),
        (2**70, WHOLE, f"{2**70} for (7)"),
        (7, TEXT, "7 for (7)"),
        (7, UTC, "7 for (7)"),
        (7, pa.bool_(), "7 for (7)"),
        ("2024-01-01", UTC, "'2024-01-01' for (7)"),
        (300, pa.int8(), "300 for (7)"),
        ([1.0], DOUBLE, "[1.0] for (7)"),
    ],
)
def test_a_value_of_another_type_fails(
    value: Any, returns: pa.DataType, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting = {TEXT: "x", UTC: datetime.datetime(2024, 1, 1), pa.bool_(): False}.get(returns, 1)
    spec = function("echo", WHOLE, returns=returns)
    monkeypatch.setattr(loaded(spec), "given", lambda number: value if number == 7 else fitting)
    with pytest.raises(RunError) as caught:
        UserCall(spec, (Column("n"),)).over(ROWS)
    assert caught.value.fact.endswith(f"but gave {given}")
    assert "RETURNS" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "returns", "kept"),
    [
        (2.0, WHOLE, 2),
        (np.int32(2), WHOLE, 2),
        (np.float64(2.5), DOUBLE, 2.5),
        (2, DOUBLE, 2.0),
        (2**60 + 1, DOUBLE, float(2**60 + 1)),
        (None, TEXT, None),
        (pa.scalar("x"), TEXT, "x"),
        (np.str_("x"), TEXT, "x"),
        (float("inf"), DOUBLE, float("inf")),
        (datetime.date(2024, 1, 1), pa.date32(), datetime.date(2024, 1, 1)),
    ],
)
def test_a_value_that_fits_is_taken(
    value: Any, returns: pa.DataType, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = function("echo", WHOLE, returns=returns)
    monkeypatch.setattr(loaded(spec), "given", lambda _: value)
    assert UserCall(spec, (Column("n"),)).over(ROWS).to_pylist() == [kept] * 3


@pytest.mark.parametrize(
    ("name", "returns", "fact"),
    [
        ("first_only", WHOLE, "but gave 1 values for 3 rows"),
        ("as_text", WHOLE, "but gave an array of STRING"),
        ("listed", WHOLE, "but gave list instead of an Arrow array"),
        ("halves", WHOLE, "truncated"),
        ("doubled", TEXT, "but gave an array of BIGINT"),
    ],
)
def test_columns_that_do_not_fit_fail(name: str, returns: pa.DataType, fact: str) -> None:
    with pytest.raises(RunError) as caught:
        call(name, Column("n"), returns=returns).over(ROWS)
    assert fact in caught.value.fact and f'function "{name}" returns' in caught.value.fact
    assert caught.value.hint


@pytest.mark.parametrize(
    ("spec", "fact"),
    [
        (UserFunction("f", (DOUBLE,), DOUBLE, "nowhere.at_all:f"), 'function "f" is not found at "nowhere.at_all:f"'),
        (UserFunction("f", (DOUBLE,), DOUBLE, f"{HERE}:absent"), "is not found"),
        (UserFunction("f", (DOUBLE,), DOUBLE, f"{HERE}:NUMBER"), "is no function"),
        (function("price", DOUBLE), "declared with 1 argument, but"),
        (function("positive", DOUBLE, DOUBLE), "declared with 2 arguments, but"),
    ],
)
def test_code_that_is_not_there_or_takes_other_arguments_is_refused(spec: UserFunction, fact: str) -> None:
    with pytest.raises(RequestError) as caught:
        loaded(spec)
    assert fact in caught.value.fact and caught.value.hint


# Rows where a value counts


def test_case_calls_a_function_for_the_rows_of_its_branch_alone(called: list[tuple[Any, ...]]) -> None:
    rows = pa.record_batch({"x": [2.0, -1.0, 3.0, None]})
    large = Call(">", (Column("x"), Literal(0.0, DOUBLE)))
    either = Call("case", (large, POSITIVE, Literal(0.0, DOUBLE)))
    assert either.over(rows).to_pylist() == [2.0, 0.0, 3.0, 0.0]
    assert called == [(2.0,), (3.0,)]
    otherwise = Call("case", (Call("not", (large,)), Column("x"), Call("coalesce", (Column("x"), POSITIVE))))
    with pytest.raises(RunError, match="failed for \\(None\\)"):
        otherwise.over(rows)
    assert otherwise.over(rows.slice(0, 3)).to_pylist() == [2.0, -1.0, 3.0]


@pytest.mark.parametrize("constant", [True, False, None])
def test_a_condition_that_is_constant_decides_for_all_rows(
    constant: bool | None, called: list[tuple[Any, ...]]
) -> None:
    either = Call("case", (Literal(constant, pa.bool_()), PRICE, Literal(0.5, DOUBLE)))
    assert either.over(ROWS).to_pylist() == ([1.0, None, 9.0] if constant else [0.5] * 3)
    assert len(called) == (3 if constant else 0)


@pytest.mark.parametrize("swapped", [False, True])
def test_and_and_or_call_a_function_where_the_other_side_does_not_decide(
    swapped: bool, called: list[tuple[Any, ...]]
) -> None:
    rows = pa.record_batch({"x": [2.0, -1.0, 3.0, None], "b": [True, False, None, False]})
    test = Call(">", (POSITIVE, Literal(2.0, DOUBLE)))
    both = Call("and", (test, Column("b")) if swapped else (Column("b"), test))
    assert both.over(rows).to_pylist() == [False, False, None, False]
    assert called == [(2.0,), (3.0,)]
    called.clear()
    rows = rows.set_column(1, "b", pa.array([False, True, None, True]))
    either = Call("or", (test, Column("b")) if swapped else (Column("b"), test))
    assert either.over(rows).to_pylist() == [False, True, True, True]
    assert called == [(2.0,), (3.0,)]


def test_coalesce_calls_a_function_where_nothing_before_it_has_a_value(called: list[tuple[Any, ...]]) -> None:
    rows = pa.record_batch({"x": [5.0, None], "y": [-1.0, 4.0]})
    assert Call("coalesce", (Column("x"), call_on("y"))).over(rows).to_pylist() == [5.0, 4.0]
    assert called == [(4.0,)]


def call_on(name: str) -> UserCall:
    return UserCall(function("positive", DOUBLE), (Column(name),))


# Steps


def pieces(rows: pa.RecordBatch) -> list[Batch]:
    block = Block(rows.append_column(TIME, pa.array(range(rows.num_rows))))
    return [Batch.cut(block, place, place + 1) for place in range(rows.num_rows)]


def test_a_projection_calls_a_function_for_the_rows_of_a_step_alone(called: list[tuple[Any, ...]]) -> None:
    project = Project((("p", PRICE),))
    for number, piece in enumerate(pieces(ROWS), 1):
        (found,) = project.on_batch(0, piece)
        assert isinstance(found, Batch) and len(found) == 1
        assert len(called) == number


def test_a_filter_calls_a_function_for_the_rows_of_a_step_alone(called: list[tuple[Any, ...]]) -> None:
    chosen = Filter(Call(">", (PRICE, Literal(1.0, DOUBLE))))
    found = []
    for number, piece in enumerate(pieces(ROWS), 1):
        found += [each.rows.column("k").to_pylist() for each in chosen.on_batch(0, piece) if isinstance(each, Batch)]
        assert len(called) == number
    assert found == [["ccc"]]
