from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.clock import StandingClock
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.strategy import state_table
from millrace.kernel.operator import Operator
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.filter import Filter
from millrace.kernel.relational.merge import Merge
from millrace.kernel.relational.project import Project
from millrace.kernel.relational.union import Union

TIMESTAMP = pa.timestamp("us", tz="UTC")
ORDERED = TimeContract("external", "ts")
SPOKEN_FOR = TimeContract("external", "ts", ets="on_demand", skew=5)


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch({"n": list(range(len(times))), "ts": pa.array(times).cast(TIMESTAMP)})


def two_streams(operator: Operator, left: TimeContract = ORDERED, right: TimeContract = ORDERED) -> Graph:
    """Two streams into one operator, a filter on the first."""
    graph = Graph()
    a, b = graph.source("a", left), graph.source("b", right)
    passing = graph.operator("pass", Filter(Call(">=", (Column("n"), Literal(0, pa.int64())))), [a])
    graph.sink("out", graph.operator("both", operator, [passing, b]))
    return graph


def counted(left: TimeContract, right: TimeContract) -> Graph:
    graph = Graph()
    union = graph.operator("union", Union(), [graph.source("a", left), graph.source("b", right)])
    window = WindowAggregate(Partials(WindowGeometry(10, 10), [], [FunctionCall("rows", "count")]))
    graph.sink("out", graph.operator("window", window, [union]))
    return graph


def times(executor: Executor, now: int = 0) -> list[int]:
    return [time for batch in executor.take(now).get("out", []) for time in batch.times.tolist()]


def test_an_ordered_union_waits_for_the_slower_stream() -> None:
    executor = Executor(two_streams(Merge()))
    executor.push("a", rows(1, 5), now=0)
    executor.run(StandingClock(0))
    assert times(executor) == []
    executor.push("b", rows(3), now=0)
    executor.run(StandingClock(0))
    assert times(executor) == [1, 3]
    executor.edges.end("b")
    executor.run(StandingClock(0))
    assert times(executor) == [5]


def test_an_order_agnostic_union_never_waits() -> None:
    executor = Executor(two_streams(Union()))
    executor.push("a", rows(9), now=0)
    executor.push("b", rows(1), now=0)
    executor.run(StandingClock(0))
    assert sorted(times(executor)) == [1, 9]


def test_a_silent_source_is_spoken_for_when_that_releases_something() -> None:
    executor = Executor(two_streams(Merge(), right=SPOKEN_FOR))
    executor.push("b", rows(0), now=0)
    executor.push("a", rows(10), now=0)
    executor.run(StandingClock(0), silent={"b"})
    assert times(executor) == [0]
    assert executor.wake_at({"b"}) == 15
    executor.run(StandingClock(14), silent={"b"})
    assert times(executor) == [] and executor.ingress["b"].enabled == 0
    executor.run(StandingClock(15), silent={"b"})
    assert times(executor) == [10] and executor.ingress["b"].enabled == 1
    assert executor.wake_at({"b"}) is None


def test_a_busy_source_is_never_taken_for_a_silent_one() -> None:
    executor = Executor(two_streams(Merge(), right=SPOKEN_FOR))
    executor.push("b", rows(0), now=0)
    executor.push("a", rows(10), now=0)
    executor.run(StandingClock(1_000), silent=())
    assert times(executor) == [0]
    assert executor.wake_at(()) is None


def test_no_ets_is_made_when_another_source_would_still_hold_the_window_back() -> None:
    executor = Executor(counted(ORDERED, SPOKEN_FOR))
    executor.push("a", rows(1), now=0)
    executor.push("b", rows(1), now=0)
    executor.run(StandingClock(1_000), silent={"a", "b"})
    assert times(executor) == [] and executor.ingress["b"].enabled == 0


def test_silence_of_every_source_closes_the_last_window() -> None:
    executor = Executor(counted(SPOKEN_FOR, SPOKEN_FOR))
    executor.push("a", rows(1, 2), now=0)
    executor.push("b", rows(3), now=0)
    executor.run(StandingClock(0), silent={"a", "b"})
    wake = executor.wake_at({"a", "b"})
    assert wake is not None
    executor.run(StandingClock(wake - 1), silent={"a", "b"})
    assert times(executor) == []
    executor.run(StandingClock(wake), silent={"a", "b"})
    assert times(executor) == [9]


@pytest.mark.parametrize("rows_per_step", [1, 2, None])
def test_the_size_of_a_step_does_not_change_the_answer(rows_per_step: int | None) -> None:
    executor = Executor(two_streams(Merge()), rows_per_step=rows_per_step)
    for begin in range(0, 40, 4):
        executor.push("a", rows(*range(begin, begin + 4)), now=0)
        executor.push("b", rows(begin + 1, begin + 3), now=0)
        executor.run(StandingClock(0))
    executor.edges.end("a")
    executor.edges.end("b")
    executor.run(StandingClock(0))
    found = times(executor)
    assert found == sorted(found) and len(found) == 60


def test_a_run_goes_on_from_what_was_saved() -> None:
    first = Executor(counted(ORDERED, ORDERED))
    first.push("a", rows(1, 12), now=0)
    first.push("b", rows(2), now=0)
    first.run(StandingClock(0))
    assert first.take(0) == {}
    saved = first.save()
    second = Executor(counted(ORDERED, ORDERED))
    second.restore(saved.control, saved.added)
    second.push("b", rows(15), now=0)
    second.run(StandingClock(0))
    (result,) = second.take(0)["out"]
    assert result.rows.column("rows").to_pylist() == [2]
    assert second.ingress["a"].received == 2


def test_the_state_table_is_that_of_a_path() -> None:
    graph = Graph()
    node = graph.source("source", ORDERED)
    for name in ("first", "second", "third"):
        node = graph.operator(name, Project((("n", Column("n")),)), [node])
    graph.sink("sink", node)
    table = [(state.name, state.predecessors, state.successors, state.rule) for state in state_table(graph)]
    assert table == [
        ("first", (), ("second",), "DFS-Source"),
        ("second", ("first",), ("third",), "DFS-NOS"),
        ("third", ("second",), (), "DFS-Sink"),
    ]


def test_a_failure_names_the_operator() -> None:
    graph = Graph()
    overflow = Project((("n", Call("*", (Column("n"), Literal(2**62, pa.int64())))),))
    graph.sink("out", graph.operator("double", overflow, [graph.source("a", ORDERED)]))
    executor = Executor(graph)
    executor.push("a", rows(*range(9)), now=0)
    with pytest.raises(RunError, match='operator "double" failed: overflow'):
        executor.run(StandingClock(0))


def test_unconnected_queries_are_components_of_their_own() -> None:
    graph = Graph()
    a, b, c = (graph.source(name, ORDERED) for name in "abc")
    graph.sink("one", graph.operator("both", Union(), [a, c]))
    graph.sink("other", graph.operator("alone", Union(), [b]))
    parts = [[node.name for node in part] for part in graph.components()]
    assert parts == [["a", "c", "both", "one"], ["b", "alone", "other"]]
