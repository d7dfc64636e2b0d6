from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.aggregates.low_level.pre_aggregate import PreAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.relational.distinct import Distinct
from millrace.kernel.relational.explode import Explode
from millrace.kernel.relational.filter import Filter
from millrace.kernel.relational.merge import Merge
from millrace.kernel.relational.number import Number
from millrace.kernel.relational.project import Project
from millrace.kernel.relational.rank import Rank
from millrace.kernel.relational.union import Union
from tests.unit.kernel.check_operator import Script, check_bounds, check_operator, outputs, random_script, rows_of

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("some", "count", ("n",)),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("least", "min", ("n",)),
    FunctionCall("greatest", "max", ("k",)),
    FunctionCall("mean", "avg", ("n",)),
]


def positive() -> Filter:
    return Filter(Call(">", (Column("n"), Literal(3, pa.int64()))))


def doubled() -> Project:
    return Project((("k", Column("k")), ("twice", Call("*", (Column("n"), Literal(2, pa.int64()))))))


def exploded(*, outer: bool) -> Explode:
    """Two rows for one with a number that is not null, with its place."""
    pair = Call("array", (Column("n"), Call("*", (Column("n"), Literal(2, pa.int64())))))
    some = Call("case", (Call("is_not_null", (Column("n"),)), pair, Literal(None, pa.list_(pa.int64()))))
    return Explode(some, "each", "place", ("k",), outer=outer)


def windows(length: int, slide: int, keys: list[str]) -> WindowAggregate:
    return WindowAggregate(Partials(WindowGeometry(length, slide), keys, AGGREGATIONS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "ports"),
    [
        (positive, 1),
        (doubled, 1),
        (lambda: exploded(outer=False), 1),
        (lambda: exploded(outer=True), 1),
        (Union, 3),
        (Merge, 1),
        (Merge, 3),
        (lambda: Merge((("n", True),)), 2),
        (Number, 3),
        (lambda: Distinct(("k", "n")), 1),
        (lambda: Rank("row_number", ("k",), (("n", True),), "place", 2), 1),
        (lambda: windows(10, 10, ["k"]), 1),
        (lambda: windows(10, 10, []), 1),
        (lambda: windows(30, 10, ["k"]), 1),
        (lambda: windows(10, 3, ["k"]), 1),
        (lambda: windows(10, 25, ["k"]), 1),
        (lambda: windows(1, 1, ["k"]), 1),
        (lambda: windows(10, 7, []), 1),
    ],
    ids=[
        "filter",
        "project",
        "explode",
        "explode outer",
        "union",
        "sort",
        "merge",
        "merge by columns",
        "number",
        "distinct",
        "rank",
        "tumbling",
        "global",
        "sliding",
        "ragged",
        "gaps",
        "ticks",
        "ragged global",
    ],
)
def test_every_operator_keeps_the_contract(make: type[Operator], ports: int) -> None:
    check_operator(make, ports=ports)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("length", "slide"), [(10, 10), (30, 10), (10, 3), (10, 25)])
def test_two_levels_give_what_one_does(length: int, slide: int, seed: int) -> None:
    script = random_script(seed, ports=1)
    lower = PreAggregate(Partials(WindowGeometry(length, slide), ["k"], AGGREGATIONS))
    between = outputs(lower, script)
    check_bounds(between)
    above = Script(tuple((0, element) for element in between))
    assert rows_of(outputs(windows(length, slide, ["k"]), above)) == rows_of(
        outputs(windows(length, slide, ["k"]), script)
    )


def test_rows_that_share_no_group_pass_the_low_level_as_they_are() -> None:
    lower = PreAggregate(Partials(WindowGeometry(1, 1), ["k"], AGGREGATIONS))
    list(lower.on_batch(0, batch(1, 2, 3)))
    passed, _ = lower.on_punctuation(Punctuation(END_OF_TIME))
    assert isinstance(passed, Batch) and passed.rows.schema.names == ["k", "n", TIME]


@pytest.mark.parametrize("seed", range(10))
def test_a_merge_lets_rows_out_in_time_order(seed: int) -> None:
    found = outputs(Merge(), random_script(seed, ports=2))
    times = [time for each in found if isinstance(each, Batch) for time in each.times.tolist()]
    assert times == sorted(times)


def batch(*times: int) -> Batch:
    return Batch(pa.record_batch({"k": ["a"] * len(times), "n": [1] * len(times), TIME: list(times)}))


def test_a_merge_by_columns_holds_rows_until_the_bound_is_past_their_time() -> None:
    merge = Merge((("n", True), ("k", False)))
    rows = pa.record_batch({"k": ["b", "a", "c", None], "n": [1, 1, None, 2], TIME: [5, 5, 5, 5]})
    assert list(merge.on_batch(0, Batch(rows))) == []
    assert merge.wanted() == 6
    assert list(merge.on_punctuation(Punctuation(5))) == [Punctuation(5)]
    list(merge.on_batch(1, Batch(pa.record_batch({"k": ["d"], "n": [9], TIME: [5]}))))
    released, _ = merge.on_punctuation(Punctuation(6))
    assert isinstance(released, Batch) and released.rows.column("k").to_pylist() == ["d", None, "a", "b", "c"]


def test_a_merge_releases_rows_at_the_bound_itself() -> None:
    merge = Merge()
    assert list(merge.on_batch(0, batch(5, 7))) == []
    assert merge.wanted() == 5
    released, bound = merge.on_punctuation(Punctuation(5))
    assert isinstance(released, Batch) and released.times.tolist() == [5]
    assert bound == Punctuation(5)
    (simultaneous,) = merge.on_batch(1, batch(5))
    assert isinstance(simultaneous, Batch) and simultaneous.times.tolist() == [5]
    assert merge.held == 1


def test_a_window_stays_open_until_a_punctuation_passes_its_end() -> None:
    operator = windows(10, 10, ["k"])
    assert list(operator.on_batch(0, batch(1, 9, 10))) == []
    assert operator.wanted() == 10
    assert list(operator.on_punctuation(Punctuation(9))) == [Punctuation(9)]
    closed, bound = operator.on_punctuation(Punctuation(10))
    assert isinstance(closed, Batch) and closed.rows.column("rows").to_pylist() == [2]
    assert bound == Punctuation(10)
    assert operator.wanted() == 20


def test_a_window_before_1970_begins_at_a_multiple_of_its_slide() -> None:
    operator = windows(10, 10, [])
    list(operator.on_batch(0, batch(-1, -10, -11)))
    closed = [each for each in operator.on_punctuation(Punctuation(0)) if isinstance(each, Batch)]
    assert sorted(time for each in closed for time in each.times.tolist()) == [-11, -1]


def test_state_is_let_go_when_its_last_window_has_closed() -> None:
    operator = windows(30, 10, ["k"])
    list(operator.on_batch(0, batch(*range(100))))
    list(operator.on_punctuation(Punctuation(1_000)))
    assert operator.held == 0
    assert operator.wanted() is None


def test_a_save_writes_what_changed_and_not_what_is_held() -> None:
    operator = WindowAggregate(Partials(WindowGeometry(1_000_000, 1_000_000), ["n"], AGGREGATIONS[:1]))
    written = 0
    for step in range(64):
        rows = pa.record_batch({"n": list(range(step * 100, step * 100 + 100)), TIME: [step] * 100})
        list(operator.on_batch(0, Batch(rows)))
        written += sum(table.num_rows for table in operator.changes().added.values())
    assert operator.held == 6_400
    assert written < 8 * operator.held
