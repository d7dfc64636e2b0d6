from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.errors import RequestError, RunError
from millrace.kernel.aggregates.functions import mergeable, partial_bytes, result_type
from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate, SqlAggregate, UserAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import PANE, FunctionCall, Partials
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal
from millrace.kernel.elements import TIME, Batch

HERE = "tests.unit.kernel.user_classes"
DOUBLE, TEXT, WHOLE = pa.float64(), pa.string(), pa.int64()


def in_python(name: str, takes: pa.DataType = DOUBLE, returns: pa.DataType = DOUBLE) -> PythonAggregate:
    return PythonAggregate(name.lower(), (takes,), returns, f"{HERE}:{name}")


def plus(left: Expression, right: Expression) -> Expression:
    return Call("+", (left, right))


MEAN = SqlAggregate(
    "mean",
    (("next", DOUBLE),),
    DOUBLE,
    initialize=(("total", Literal(0.0, DOUBLE)), ("n", Literal(0, WHOLE))),
    iterate=(
        ("total", plus(Column("total"), Column("next"))),
        ("n", Cast(plus(Column("n"), Literal(1, WHOLE)), WHOLE)),
    ),
    merge=(("total", plus(Column("total"), Column("other.total"))), ("n", plus(Column("n"), Column("other.n")))),
    terminate=Call("/", (Column("total"), Column("n"))),
)
TRAIL = SqlAggregate(
    "trail",
    (("next", TEXT),),
    TEXT,
    initialize=(("sofar", Literal("", TEXT)), ("mark", Literal("!", TEXT))),
    iterate=(("sofar", Call("concat", (Column("sofar"), Column("next")))),),
    merge=None,
    terminate=Call("concat", (Column("sofar"), Column("mark"))),
)

Row = tuple[str, float, str, bool, int]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 9).map(float), st.sampled_from("xyz"), st.booleans(), st.integers(0, 5)
    ),
    min_size=1,
    max_size=25,
)


def batch_of(rows: Sequence[Row]) -> Batch:
    names, kinds = ["k", "number", "text", "kept", TIME], [TEXT, DOUBLE, TEXT, pa.bool_(), WHOLE]
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return Batch(pa.RecordBatch.from_arrays(columns, names=names))


def result(aggregate: UserAggregate, column: str, rows: Sequence[Row], cut: int = 0, where: str | None = None) -> Any:
    """The results by key, over rows cut in two."""
    partials = Partials(WindowGeometry(100, 100), ["k"], [FunctionCall("r", aggregate, (column,), where)])
    pieces = [partials.of_rows([partials.tagged(batch_of(part))]) for part in (rows[cut:], rows[:cut])]
    merged = partials.merged([partials.merged(pieces)])
    return dict(zip(merged.column("k").to_pylist(), partials.results(merged)[0].to_pylist(), strict=True))


def by_key(rows: Sequence[Row], place: int) -> dict[str, list[Any]]:
    ordered = sorted(rows, key=lambda row: (row[4], row[place]))
    return {key: [row[place] for row in ordered if row[0] == key and row[3]] for key in {row[0] for row in rows}}


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cut=st.integers(0, 25))
def test_states_are_merged_however_rows_are_cut(rows: list[Row], cut: int) -> None:
    values = by_key(rows, 1)
    assert result(in_python("Total"), "number", rows, cut, "kept") == {key: sum(each) for key, each in values.items()}
    assert result(MEAN, "number", rows, cut, "kept") == pytest.approx(
        {key: sum(each) / len(each) if each else None for key, each in values.items()}
    )


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cut=st.integers(0, 25))
def test_without_merge_rows_are_given_in_order_of_time(rows: list[Row], cut: int) -> None:
    values = by_key(rows, 2)
    joined = result(in_python("Joined", TEXT, TEXT), "text", rows, cut, "kept")
    assert joined == {key: ",".join(each) for key, each in values.items()}
    assert result(TRAIL, "text", rows, cut, "kept") == {key: "".join(each) + "!" for key, each in values.items()}


def test_many_rows_of_many_groups_are_merged_at_once() -> None:
    random = np.random.default_rng(1)
    groups, numbers = random.integers(0, 1_000, 50_000), random.integers(0, 100, 50_000).astype(float)
    partials = Partials(WindowGeometry(1, 1), [], [FunctionCall("m", MEAN, ("v",)), FunctionCall("a", "avg", ("v",))])
    found = partials.results(partials.of_rows([pa.record_batch({PANE: groups, "v": numbers})]))
    assert np.allclose(found[0].to_numpy(), found[1].to_numpy())


def test_null_arguments_are_handed_to_the_user() -> None:
    row = ("a", None, None, True, 0)
    assert result(in_python("Joined", TEXT, TEXT), "text", [row])["a"] == "None"  # type: ignore[list-item]
    assert result(MEAN, "number", [row])["a"] is None  # type: ignore[list-item]


def test_partials_of_no_rows_have_the_same_columns() -> None:
    for aggregate, column in ((MEAN, "number"), (TRAIL, "text"), (in_python("Total"), "number")):
        partials = Partials(WindowGeometry(100, 100), ["k"], [FunctionCall("r", aggregate, (column,))])
        none, some = (partials.of_rows([partials.tagged(batch_of(rows))]) for rows in ([], [("a", 1.0, "x", True, 0)]))
        assert none.schema == some.schema
        assert [each.type for each in partials.results(none)] == [aggregate.returns]


def test_only_aggregates_with_merge_are_mergeable() -> None:
    assert [mergeable(each) for each in (MEAN, TRAIL, in_python("Total"), in_python("Joined"))] == [
        True,
        False,
        True,
        False,
    ]
    assert partial_bytes(MEAN, [DOUBLE]) > 0


def test_a_failure_names_the_aggregate_and_the_method() -> None:
    with pytest.raises(RunError, match='"iterate" of aggregate "failing" failed: ZeroDivisionError: by design'):
        result(in_python("Failing"), "number", [("a", 1.0, "x", True, 0)])


def test_a_result_of_another_type_names_the_aggregate() -> None:
    with pytest.raises(RunError, match='aggregate "unlike" gave a value that is no DOUBLE'):
        result(in_python("Unlike"), "number", [("a", 1.0, "x", True, 0)])


def test_a_fraction_is_no_whole_number() -> None:
    whole = PythonAggregate("whole", (DOUBLE,), pa.int64(), f"{HERE}:Total")
    assert result(whole, "number", [("a", 2.0, "x", True, 0)]) == {"a": 2}
    with pytest.raises(RunError, match='aggregate "whole" gave a value that is no BIGINT'):
        result(whole, "number", [("a", 1.5, "x", True, 0)])


def test_a_state_that_cannot_be_kept_names_the_aggregate() -> None:
    with pytest.raises(RunError, match='the state of aggregate "fleeting" cannot be kept: TypeError'):
        result(in_python("Fleeting"), "number", [("a", 1.0, "x", True, 0)])


@pytest.mark.parametrize(
    ("place", "fact"),
    [
        ("no.such.module:Total", "is not found at"),
        (f"{HERE}:Nothing", "is not found at"),
        (HERE, "is not found at"),
        (f"{HERE}:Lacking", 'has no method "iterate"'),
    ],
)
def test_a_class_that_cannot_be_used_is_refused(place: str, fact: str) -> None:
    with pytest.raises(RequestError, match=fact) as refused:
        mergeable(PythonAggregate("odd", (DOUBLE,), DOUBLE, place))
    assert '"odd"' in refused.value.fact
    assert refused.value.hint


def test_a_class_inside_a_class_is_found() -> None:
    assert mergeable(PythonAggregate("inner", (DOUBLE,), DOUBLE, f"{HERE}:Outer.Inner"))


def test_arguments_must_have_the_declared_types() -> None:
    assert result_type(MEAN, [DOUBLE]) == DOUBLE
    with pytest.raises(RequestError, match=r'"mean" takes \(DOUBLE\), not \(STRING\)'):
        result_type(MEAN, [TEXT])
