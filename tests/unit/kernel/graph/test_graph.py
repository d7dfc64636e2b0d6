from __future__ import annotations

import pytest

from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import Batch, Punctuation
from millrace.kernel.graph.delivery import ets_arcs
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.strategy import state_table
from millrace.kernel.relational.merge import Merge
from millrace.kernel.relational.union import Union
from tests.unit.kernel.graphs import ORDERED, counting, numbers, path, rows


def forked(strategy: str = "dfs") -> Graph:
    """The fork of 001 Fig. 7: a selection that two others read."""
    graph = Graph()
    first = path(graph, graph.source("s", ORDERED), "first", strategy=strategy)
    for name in ("left", "right"):
        graph.sink(f"out_{name}", path(graph, first, name, strategy=strategy))
    return graph


def test_a_fork_keeps_one_buffer_until_every_branch_has_read() -> None:
    graph = forked()
    buffer = graph.nodes["first"].buffer
    left, right = graph.nodes["first"].outputs
    buffer.put(Batch(rows(1, 2, 3)), merge=True)
    assert len(buffer.elements) == 1 and buffer.size == 3
    assert len(left.take(2)) == 2 and right.rows == 3
    assert len(left.take(2)) == 1
    assert buffer.size == 3, "the other branch has not read it"
    assert len(right.take()) == 3
    assert buffer.size == 0 and not buffer.elements


def test_a_punctuation_takes_the_place_of_one_that_no_branch_has_taken() -> None:
    graph = forked()
    buffer = graph.nodes["first"].buffer
    left, right = graph.nodes["first"].outputs
    buffer.put(Punctuation(1), merge=True)
    buffer.put(Punctuation(2), merge=True)
    assert left.take() == Punctuation(2)
    buffer.put(Punctuation(3), merge=True)
    assert [left.take(), right.take(), right.take()] == [Punctuation(3), Punctuation(2), Punctuation(3)]
    buffer.put(Punctuation(4), merge=False)
    buffer.put(Punctuation(5), merge=False)
    assert buffer.size == 2


def test_the_state_table_of_a_fork_is_that_of_the_paper() -> None:
    table = [(each.name, each.predecessors, each.successors, each.rule) for each in state_table(forked())]
    assert table == [
        ("first", (), ("fork(first)",), "DFS-Source"),
        ("fork(first)", ("first",), ("left",), "DFS-Fork"),
        ("fork(first)", ("first",), ("right",), "DFS-Fork"),
        ("left", ("fork(first)",), (), "DFS-Sink"),
        ("right", ("fork(first)",), (), "DFS-Sink"),
    ]


def test_a_fork_serves_its_branches_in_turn() -> None:
    order: list[str] = []

    class Watching(StandingClock):
        def spend(self, node: str, rows: int, ets: bool = False) -> None:
            order.append(node)

    executor = Executor(forked("bfs"), rows_per_step=1)
    executor.push("s", rows(1, 2), now=0)
    executor.run(Watching(0))
    assert order == ["first", "first", "left", "left", "right", "right"]
    assert numbers(executor, "out_left") == [0, 1]


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "rr", "batch:2"])
def test_every_branch_of_a_fork_gets_every_row(strategy: str) -> None:
    executor = Executor(forked(strategy), rows_per_step=1)
    executor.push("s", rows(1, 2, 3, 4, 5), now=0)
    executor.run(StandingClock(0))
    taken = executor.take(0)
    assert {name: sum(map(len, batches)) for name, batches in taken.items()} == {"out_left": 5, "out_right": 5}


def test_a_break_node_cuts_the_state_table_as_the_paper_prints_it() -> None:
    graph = Graph()
    graph.sink("out", path(graph, graph.source("s", ORDERED), "select", "first", "second"))
    executor = Executor(graph)
    executor.set_breaks({("first", "second")})
    table = [(each.name, each.predecessors, each.successors, each.rule) for each in state_table(graph)]
    assert table == [
        ("select", (), ("first",), "DFS-Source"),
        ("first", ("select",), (), "DFS-Sink"),
        ("second", (), (), "DFS-Source-Sink"),
    ]
    executor.set_breaks(())
    assert state_table(graph)[2].rule == "DFS-Sink"


def test_round_robin_cuts_what_is_no_path() -> None:
    graph = Graph()
    inputs = [path(graph, graph.source(name, ORDERED), f"pass_{name}", strategy="rr") for name in "ab"]
    graph.sink("out", graph.operator("both", Union(), inputs, "rr"))
    executor = Executor(graph)
    assert [state.rule for state in state_table(graph)] == ["RR-Source-Sink"] * 3
    executor.push("a", rows(1), now=0)
    executor.push("b", rows(2), now=0)
    executor.run(StandingClock(0))
    assert sum(map(len, executor.take(0)["out"])) == 2


def test_ets_arcs_skip_what_only_passes_bounds_on() -> None:
    graph = Graph()
    inputs = [path(graph, graph.source(name, ORDERED), f"{name}1", f"{name}2") for name in "ab"]
    union = graph.operator("union", Merge(), inputs)
    window = graph.operator("window", counting(10, 10), [path(graph, union, "between")])
    graph.sink("out", path(graph, window, "last"))
    arcs = {
        node.name: [[arc.consumer.name for arc in each] for each in ets_arcs(node)] for node in graph.nodes.values()
    }
    assert arcs["a"] == [["a1", "a2", "union"]]
    assert arcs["union"] == [["between", "window"]]
    assert arcs["window"] == []


def test_a_consumer_that_joins_later_learns_what_was_promised_and_reads_only_what_follows() -> None:
    graph = Graph()
    first = path(graph, graph.source("s", ORDERED), "first")
    graph.sink("out", graph.operator("window", counting(10, 10), [first]))
    executor = Executor(graph)
    executor.push("s", rows(1, 25), now=0)
    graph.sink("late", graph.operator("sorted", Merge(), [path(graph, first, "second")]))
    executor.adopt()
    executor.push("s", rows(30, first=2), now=0)
    executor.run(StandingClock(0))
    assert numbers(executor, "late") == [0, 1, 2], "what still stood before the shared operator is read by both"
    assert graph.nodes["sorted"].bound == 30


def test_what_leaves_takes_its_place_in_buffers_and_schedules_with_it() -> None:
    graph = forked()
    executor = Executor(graph, rows_per_step=1)
    executor.push("s", rows(1, 2, 3), now=0)
    for _ in range(2):
        executor.step(StandingClock(0))
    graph.keep({"s", "first", "right", "out_right"})
    executor.adopt()
    executor.run(StandingClock(0))
    assert numbers(executor, "out_right") == [0, 1, 2]
    assert graph.nodes["first"].buffer.size == 0
