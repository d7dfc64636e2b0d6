from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.aggregates import span_folds, time_partials
from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate
from millrace.kernel.aggregates.panes.window_geometry import Instants
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.trailing_aggregate import TrailingAggregate
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from tests.unit.kernel.check_operator import Script, check_bounds, check_operator, outputs, random_script, restarted
from tests.unit.kernel.window_results import result_rows

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("least", "min", ("n",)),
    FunctionCall("kinds", "count_distinct", ("n",)),
    FunctionCall("middle", "percentile", ("n",), None, (0.5,)),
    FunctionCall("final", "last", ("n",)),
]


NAMES = (TIME, "rows", "total", "least", "kinds", "middle", "final")


SMALL = [each for each in AGGREGATIONS if each.name not in ("kinds", "middle")]
"""Those whose partials are small, so that what lies in range is held folded."""


def trailing(range: int | None, keys: Sequence[str] = ("k",), **options: Any) -> TrailingAggregate:
    return TrailingAggregate(Partials(Instants(), keys, AGGREGATIONS), range, **options)


def stacked(range: int, keys: Sequence[str] = ("k",), **options: Any) -> TrailingAggregate:
    return TrailingAggregate(Partials(Instants(), keys, SMALL), range, **options)


def batch(*times: int, k: Sequence[str | None] | None = None) -> Batch:
    groups = k if k is not None else ["a"] * len(times)
    return Batch(pa.record_batch({"k": pa.array(groups, pa.string()), "n": [1] * len(times), TIME: times}))


def results(elements: Sequence[Element]) -> list[tuple[Any, ...]]:
    """Group, start, end, time, count, total, least, distinct, median, last of each row, as far as they are there."""
    return result_rows(elements, NAMES)


def expected(script: Script, range: int | None, keyed: bool) -> list[tuple[Any, ...]]:
    """The same, row by row."""
    rows = [row for _, each in script.steps if isinstance(each, Batch) for row in each.rows.to_pylist()]
    found = []
    for row in rows:
        time, group = row[TIME], row["k"] if keyed else None
        start = None if range is None else time - range
        frame = [
            each
            for each in rows
            if (not keyed or each["k"] == group) and each[TIME] <= time and (start is None or each[TIME] >= start)
        ]
        found.append((group, start, time, time, *_result(frame)))
    return sorted(found, key=repr)


def _result(frame: list[dict[str, Any]]) -> tuple[Any, ...]:
    values = [row["n"] for row in frame if row["n"] is not None]
    time = max(row[TIME] for row in frame)
    final = max([row["n"] for row in frame if row[TIME] == time and row["n"] is not None], default=None)
    if not values:
        return len(frame), None, None, 0, None, final
    return len(frame), sum(values), min(values), len(set(values)), float(np.median(values)), final


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("range", [0, 1, 13, 400, None])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "global"])
def test_each_row_has_the_result_of_a_plain_reading(seed: int, range: int | None, keyed: bool) -> None:
    script = random_script(seed, ports=1, batches=20)
    found = outputs(trailing(range, ("k",) if keyed else ()), script)
    check_bounds(found)
    assert results(found) == expected(script, range, keyed)


def expected_small(script: Script, range: int, keyed: bool) -> list[tuple[Any, ...]]:
    return sorted([(*each[:7], each[9]) for each in expected(script, range, keyed)], key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("range", [0, 13, 31, 60, 400])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "global"])
def test_small_partials_give_the_same_results(seed: int, range: int, keyed: bool) -> None:
    script = random_script(seed, ports=1, batches=40)
    found = outputs(stacked(range, ("k",) if keyed else ()), script)
    check_bounds(found)
    assert results(found) == expected_small(script, range, keyed)


@pytest.mark.slow
@pytest.mark.parametrize("range", [0, 31])
def test_what_is_held_folded_is_made_anew_after_a_restart(range: int) -> None:
    check_operator(lambda: stacked(range), seeds=2)
    check_operator(lambda: stacked(range, ()), seeds=1)
    script = random_script(7, ports=1, batches=40)
    assert results(restarted(lambda: stacked(range), script, 7, 0.1)) == expected_small(script, range, keyed=True)


@pytest.mark.slow
@pytest.mark.parametrize("range", [0, 1, 8])
@pytest.mark.parametrize("step", [1, 3, 7, 8, 9, 17])
def test_every_place_of_a_row_between_two_flips_is_right(range: int, step: int) -> None:
    operator, found = stacked(range, ()), list[Element]()
    for bound in np.arange(-40, 40, step).tolist():
        # The row at the bound is there twice: it waits when the bound comes, and comes when it has.
        list(operator.on_batch(0, batch(*np.arange(bound + 1, bound + step + 1))))
        found += operator.on_punctuation(Punctuation(bound + 1))
        list(operator.on_batch(0, batch(*np.arange(bound + 1, bound + step + 1))))
    found += operator.on_punctuation(Punctuation(END_OF_TIME))
    last = max(each[3] for each in results(found))
    assert [each[1:6] for each in sorted(results(found), key=lambda each: each[3])] == [
        (time - range, time, time, count, count)
        for time in np.arange(-39, last + 1).tolist()
        for count in [2 * min(range + 1, time + 40)] * 2
    ]


def test_groups_of_one_hash_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_partials, "hashes_of", lambda rows, keys: np.zeros(rows.num_rows, np.int64))
    script = random_script(5, ports=1, batches=40)
    assert results(outputs(stacked(60), script)) == expected_small(script, 60, keyed=True)
    assert results(outputs(trailing(None), script)) == expected(script, None, keyed=True)


def test_the_memory_of_what_is_held_folded_is_counted_and_not_saved() -> None:
    operator = stacked(100)
    for bound in (50, 60, 70):
        list(operator.on_batch(0, batch(*range(bound - 10, bound))))
        list(operator.on_punctuation(Punctuation(bound)))
    changes = operator.changes()
    restored = stacked(100)
    restored.restore(changes)
    assert restored.held == operator.held == 30
    assert restored.state_bytes < operator.state_bytes
    list(operator.on_punctuation(Punctuation(END_OF_TIME)))
    assert operator.state_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize("range", [0, 13, None])
def test_trailing_windows_keep_the_contract(range: int | None) -> None:
    check_operator(lambda: trailing(range), seeds=3)
    check_operator(lambda: trailing(range, ()), seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 2**13])
def test_spans_may_be_folded_in_many_parts(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_folds, "_FEW", few)
    monkeypatch.setattr(span_folds, "_PAIRS", 8)
    script = random_script(3, ports=1, batches=20)
    assert results(outputs(trailing(100), script)) == expected(script, 100, keyed=True)
    assert results(outputs(trailing(None), script)) == expected(script, None, keyed=True)
    assert results(outputs(stacked(100), script)) == expected_small(script, 100, keyed=True)


def test_a_row_is_answered_when_the_bound_is_past_its_time() -> None:
    operator = trailing(10)
    list(operator.on_batch(0, batch(5, -5, -6)))
    assert operator.wanted() == -5
    assert list(operator.on_punctuation(Punctuation(-6))) == [Punctuation(-6)]
    answered, _ = operator.on_punctuation(Punctuation(5))
    assert results([answered]) == [("a", -15, -5, -5, 2, 2, 1, 1, 1.0, 1), ("a", -16, -6, -6, 1, 1, 1, 1, 1.0, 1)]
    assert operator.wanted() == 6
    list(operator.on_batch(0, batch(5)))
    answered, _ = operator.on_punctuation(Punctuation(6))
    assert results([answered]) == [("a", -5, 5, 5, 3, 3, 1, 1, 1.0, 1)] * 2
    assert operator.wanted() is None


def test_rows_go_when_nobody_looks_back_to_them() -> None:
    operator = trailing(10)
    list(operator.on_batch(0, batch(*range(100))))
    list(operator.on_punctuation(Punctuation(100)))
    assert operator.held == 10
    list(operator.on_punctuation(Punctuation(END_OF_TIME)))
    assert operator.held == 0


def test_counted_rows_have_bounds_that_are_numbers() -> None:
    operator = trailing(2, counts_rows=True)
    list(operator.on_batch(0, batch(0, 1, 2, 3, k=["a", "a", "b", "a"])))
    (answered, _) = operator.on_punctuation(Punctuation(4))
    assert isinstance(answered, Batch)
    assert answered.rows.schema.field("window_start").type == pa.int64()
    assert [each[:5] for each in results([answered])] == [
        ("a", -1, 2, 1, 2),
        ("a", -2, 1, 0, 1),
        ("a", 1, 4, 3, 2),
        ("b", 0, 3, 2, 1),
    ]


def test_without_a_range_the_start_is_null_and_a_group_is_one_row() -> None:
    operator = trailing(None, state_limit=2)
    for step in range(50):
        list(operator.on_batch(0, batch(step, step, k=["a", None])))
        answered, _ = operator.on_punctuation(Punctuation(step + 1))
        assert isinstance(answered, Batch)
        assert answered.rows.schema.field("window_start").type == pa.timestamp("us", tz="UTC")
        assert [each[:5] for each in results([answered])] == [(k, None, step, step, step + 1) for k in ("a", None)]
    assert operator.held == 2


def test_more_groups_than_the_limit_are_refused() -> None:
    operator = trailing(None, state_limit=2)
    list(operator.on_batch(0, batch(0, 0, 0, k=["a", "b", "c"])))
    with pytest.raises(RunError, match="more than 2 groups"):
        list(operator.on_punctuation(Punctuation(1)))


class Written:
    """An aggregate of a user's, without a way to merge: the values one after another."""

    def initialize(self) -> str:
        return ""

    def iterate(self, state: str, values: pa.Array) -> str:
        return state + "".join(map(str, values.to_pylist()))

    def terminate(self, state: str) -> str:
        return state


@pytest.mark.parametrize(("range", "expected"), [(1, ["1", "12", "23"]), (None, ["1", "12", "123"])])
def test_an_aggregate_that_cannot_merge_sees_each_frame_in_order(range: int | None, expected: list[str]) -> None:
    written = PythonAggregate("written", (pa.int64(),), pa.string(), f"{__name__}:Written")
    operator = TrailingAggregate(Partials(Instants(), [], [FunctionCall("all", written, ("n",))]), range)
    list(operator.on_batch(0, Batch(pa.record_batch({"n": [3, 1, 2], TIME: [12, 10, 11]}))))
    found: list[Element] = [*operator.on_punctuation(Punctuation(12)), *operator.on_punctuation(Punctuation(13))]
    assert [text for each in found if isinstance(each, Batch) for text in each.rows["all"].to_pylist()] == expected


class Counting(Partials):
    """Partials that count the rows that are merged."""

    rows = 0

    def merged_by(self, tables: Sequence[pa.Table], by: Sequence[str]) -> pa.Table:
        self.rows += sum(table.num_rows for table in tables)
        return super().merged_by(tables, by)


def test_long_frames_cost_little_more_than_short_ones() -> None:
    partials = Counting(Instants(), ["k"], AGGREGATIONS[:2])
    operator = TrailingAggregate(partials, 5_000)
    list(operator.on_batch(0, batch(*np.arange(10_000).tolist())))
    list(operator.on_punctuation(Punctuation(END_OF_TIME)))
    assert partials.rows < 10_000 * 20


@pytest.mark.slow
def test_what_a_row_costs_does_not_follow_how_many_it_looks_back_to() -> None:
    def cost(range: int) -> float:
        partials = Counting(Instants(), ["k"], AGGREGATIONS[:2])
        operator = TrailingAggregate(partials, range)
        for time in np.arange(0, 6_000, 60).tolist():
            list(operator.on_batch(0, batch(*np.arange(time, time + 60))))
            list(operator.on_punctuation(Punctuation(time + 60)))
        return partials.rows / 6_000

    assert cost(2_000) < 1.1 * cost(200)
