from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.aggregates.panes.window_geometry import Instants
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.session_aggregate import SessionAggregate
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    Punctuation,
)
from tests.unit.kernel.check_operator import (
    Script,
    check_bounds,
    check_operator,
    outputs,
    random_group_script,
    random_script,
)
from tests.unit.kernel.window_results import result_rows

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("kinds", "count_distinct", ("n",)),
    FunctionCall("final", "last", ("n",)),
]


def sessions(gap: int, keys: Sequence[str] = ("k",), *, merging: bool = False) -> SessionAggregate:
    return SessionAggregate(Partials(Instants(), keys, AGGREGATIONS), gap, merges_at_gap=merging)


def batch(*times: int, k: str | None = "a") -> Batch:
    return Batch(pa.record_batch({"k": pa.array([k] * len(times), pa.string()), "n": [1] * len(times), TIME: times}))


def results(elements: Sequence[Element]) -> list[tuple[Any, ...]]:
    """Group, start, end, time, count, total, distinct, last of each session."""
    return result_rows(elements, (TIME, "rows", "total", "kinds", "final"))


def expected(script: Script, gap: int, keyed: bool, merging: bool = False) -> list[tuple[Any, ...]]:
    """The same, row by row."""
    rows = [row for _, each in script.steps if isinstance(each, Batch) for row in each.rows.to_pylist()]
    found: list[list[dict[str, Any]]] = []
    for row in sorted(rows, key=lambda row: (repr(row["k"]) if keyed else "", row[TIME])):
        before = found[-1][-1] if found else None
        apart = row[TIME] - before[TIME] if before and (not keyed or before["k"] == row["k"]) else 2 * gap
        follows = apart < gap or (merging and apart == gap)
        if follows:
            found[-1].append(row)
        else:
            found.append([row])
    return sorted([_result(session, gap, keyed) for session in found], key=repr)


def _result(session: list[dict[str, Any]], gap: int, keyed: bool) -> tuple[Any, ...]:
    first, last = session[0][TIME], session[-1][TIME]
    values = [row["n"] for row in session if row["n"] is not None]
    finals = [row["n"] for row in session if row[TIME] == last]
    final = max([each for each in finals if each is not None], default=None)
    total = sum(values) if values else None
    group = session[0]["k"] if keyed else None
    return group, first, last + gap, last + gap - 1, len(session), total, len(set(values)), final


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1, 5, 17, 1000])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "global"])
@pytest.mark.parametrize("merging", [True, False], ids=["merging", "strict"])
def test_sessions_are_those_of_a_plain_reading(seed: int, gap: int, keyed: bool, merging: bool) -> None:
    script = random_script(seed, ports=1, batches=20)
    found = outputs(sessions(gap, ("k",) if keyed else (), merging=merging), script)
    check_bounds(found)
    assert results(found) == expected(script, gap, keyed, merging)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [1, 4, 20])
def test_sessions_keep_the_contract(gap: int) -> None:
    check_operator(lambda: sessions(gap), seeds=3)
    check_operator(lambda: sessions(gap, (), merging=True), seeds=1)


def test_rows_exactly_the_gap_apart_merge_where_that_is_asked_for() -> None:
    operator = sessions(10, merging=True)
    list(operator.on_batch(0, batch(25, 30)))
    # A row at 40 may still come, and so the session that ends there is not closed by a bound of 40.
    assert list(operator.on_punctuation(Punctuation(40))) == [Punctuation(39)]
    list(operator.on_batch(0, batch(40)))
    assert operator.wanted() == 51
    closed, bound = operator.on_punctuation(Punctuation(51))
    assert (results([closed]), bound) == ([("a", 25, 50, 49, 3, 3, 1, 1)], Punctuation(50))
    assert operator.required(50) == 51


def test_a_row_one_gap_after_the_last_begins_a_new_session() -> None:
    operator = sessions(10)
    assert list(operator.on_batch(0, batch(0, 9, 19))) == []
    found = results(list(operator.on_punctuation(Punctuation(END_OF_TIME))))
    assert [(start, end) for _, start, end, *_ in found] == [(0, 19), (19, 29)]


def test_a_late_row_joins_two_sessions() -> None:
    operator = sessions(10)
    list(operator.on_batch(0, batch(0, 15)))
    assert operator.wanted() == 10
    assert operator.held == 2
    list(operator.on_batch(0, batch(8)))
    assert operator.wanted() == 25
    assert operator.held == 1


def test_a_session_closes_when_the_bound_reaches_its_end() -> None:
    operator = sessions(10)
    list(operator.on_batch(0, batch(-30, -25)))
    assert list(operator.on_punctuation(Punctuation(-16))) == [Punctuation(-16)]
    closed, bound = operator.on_punctuation(Punctuation(-15))
    assert results([closed]) == [("a", -30, -15, -16, 2, 2, 1, 1)]
    assert bound == Punctuation(-15)
    assert operator.held == 0
    assert operator.wanted() is None


@pytest.mark.parametrize("seed", range(3))
def test_what_is_wanted_is_the_least_end_of_an_open_session(seed: int) -> None:
    random = np.random.default_rng(seed)
    operator, rows, bound = sessions(10), [], 0
    for _ in range(60):
        time, group = bound + int(random.integers(0, 40)), str(random.integers(0, 4))
        rows.append((0, batch(time, k=group)))
        list(operator.on_batch(*rows[-1]))
        if random.random() < 0.5:
            bound += int(random.integers(1, 12))
            list(operator.on_punctuation(Punctuation(bound)))
        ends = [end for _, _, end, *_ in expected(Script(tuple(rows)), 10, keyed=True) if end > bound]
        assert operator.wanted() == min(ends, default=None)


def test_rows_of_other_groups_are_only_gathered() -> None:
    operator = sessions(10)
    list(operator.on_batch(0, batch(0)))
    assert operator.wanted() == 10
    for time in range(1, 10):
        list(operator.on_batch(0, batch(time, k="b")))
        assert operator.wanted() == 10
    assert operator.held == 10


def test_results_carry_the_arrival_column_when_rows_do() -> None:
    operator = sessions(10)
    list(operator.on_batch(0, Batch(pa.record_batch({"k": ["a"], "n": [1], TIME: [0], ARRIVED: [7]}))))
    closed, _ = operator.on_punctuation(Punctuation(END_OF_TIME))
    assert isinstance(closed, Batch)
    assert closed.rows.schema.names[-2:] == [TIME, ARRIVED]
    assert closed.rows.column(ARRIVED).to_pylist() == [NO_BOUND]


@pytest.mark.slow
def test_a_moved_end_does_not_stay_in_the_calendar() -> None:
    operator = sessions(10)
    for time in range(0, 600, 3):
        list(operator.on_batch(0, batch(time)))
        list(operator.on_punctuation(Punctuation(time)))
        assert operator.wanted() == time + 10
    assert operator.held == 1
    assert sum(each.num_rows for each in operator.changes().added.values()) < 10


def by_group(gap: int, merging: bool = False) -> SessionAggregate:
    return SessionAggregate(Partials(Instants(), ["k"], AGGREGATIONS), gap, groups=("k",), merges_at_gap=merging)


def promise(**until: int) -> GroupPunctuation:
    return GroupPunctuation(pa.record_batch({"device": list(until)}), np.array(list(until.values())))


@pytest.mark.slow
@pytest.mark.parametrize("gap", [1, 4, 20])
@pytest.mark.parametrize("seed", range(8))
def test_promises_of_groups_close_the_sessions_of_a_plain_reading(seed: int, gap: int) -> None:
    script = random_group_script(seed)
    for merging in (False, True):
        assert results(outputs(by_group(gap, merging), script)) == expected(script, gap, True, merging)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [1, 20])
def test_sessions_by_group_keep_the_contract(gap: int) -> None:
    check_operator(lambda: by_group(gap, merging=gap == 20), scripts=random_group_script, seeds=3)


def test_a_promise_closes_the_sessions_of_its_group_alone() -> None:
    operator = by_group(5)
    list(operator.on_batch(0, batch(1, 3)))
    list(operator.on_batch(0, batch(2, k="b")))
    assert [row[:3] for row in results(list(operator.on_groups(promise(a=8, b=6))))] == [("a", 1, 8)]
    assert [row[:3] for row in results(list(operator.on_groups(promise(b=7))))] == [("b", 2, 7)]


@pytest.mark.slow
def test_the_calendar_does_not_grow_while_only_groups_promise() -> None:
    operator = by_group(5)
    for time in range(0, 16_000, 10):
        list(operator.on_batch(0, batch(time)))
        list(operator.on_groups(promise(a=time + 5)))
    assert operator.held == 0
    assert operator.state_bytes < 20_000
