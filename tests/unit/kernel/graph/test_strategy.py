from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.clock import StandingClock
from millrace.kernel.columns.expressions import Column
from millrace.kernel.graph import scheduler
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.strategy import state_table
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.project import Project
from millrace.kernel.relational.union import Union

TIMESTAMP = pa.timestamp("us", tz="UTC")
KEEP = (("n", Column("n")),)


class Watching(StandingClock):
    """A clock that notes which operator took rows."""

    def __init__(self) -> None:
        super().__init__(0)
        self.order: list[str] = []

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        if rows:
            self.order.append(node)

    def compare(self, node: str, pairs: int) -> None:
        raise AssertionError("nothing is joined here")


def path(strategy: str) -> Executor:
    """A source, two projections and a sink, a row at a time."""
    graph = Graph()
    first = graph.operator("first", Project(KEEP), [graph.source("s", TimeContract("external", "ts"))], strategy)
    graph.sink("out", graph.operator("second", Project(KEEP), [first], strategy))
    return Executor(graph, rows_per_step=1)


def rows(count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": list(range(count)), "ts": pa.array(range(count)).cast(TIMESTAMP)})


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("dfs", "1212121212"),
        ("bfs", "1111122222"),
        ("rr", "1111122222"),
        ("batch:1", "1212121212"),
        ("batch:2", "1122112212"),
        ("batch:4", "1111222212"),
        ("batch:9", "1111122222"),
    ],
)
def test_a_strategy_decides_which_operator_is_next(strategy: str, order: str) -> None:
    executor, clock = path(strategy), Watching()
    executor.push("s", rows(5), now=0)
    executor.run(clock)
    assert "".join({"first": "1", "second": "2"}[name] for name in clock.order) == order


def test_a_strategy_can_be_changed_while_rows_are_waiting() -> None:
    executor, clock = path("bfs"), Watching()
    executor.push("s", rows(6), now=0)
    for _ in range(3):
        executor.step(clock)
    for node in executor.graph.operators():
        node.strategy = "dfs"
    executor.adopt()
    executor.run(clock)
    (batches,) = executor.take(0).values()
    assert [number for batch in batches for number in batch.rows.column("n").to_pylist()] == list(range(6))
    assert state_table(executor.graph)[0].rule == "DFS-Source"


def test_parts_of_a_graph_may_follow_different_strategies() -> None:
    graph = Graph()
    a, b = (graph.source(name, TimeContract("external", "ts")) for name in "ab")
    left = graph.operator("left", Project(KEEP), [a], "bfs")
    right = graph.operator("right", Project(KEEP), [b], "batch:64")
    graph.sink("out", graph.operator("both", Union(), [left, right], "rr"))
    names = {state.name: state.rule for state in state_table(graph)}
    assert names == {"left": "BFS-Source", "right": "Batch(64)-Source", "both": "RR-Sink"}


def order_of(executor: Executor) -> list[str]:
    clock = Watching()
    executor.run(clock)
    return clock.order


def united(strategy: str) -> Graph:
    graph = Graph()
    sources = [graph.source(name, TimeContract("external", "ts")) for name in "ab"]
    paths = [graph.operator(f"pass_{each.name}", Project(KEEP), [each], strategy) for each in sources]
    graph.sink("out", graph.operator("both", Union(), paths, strategy))
    return graph


def test_round_robin_finishes_a_path_before_it_visits_the_next() -> None:
    """001 section 2.3; the paths of a union are cut apart, and are one component."""
    executor = Executor(united("rr"), rows_per_step=1)
    for name in "ab":
        executor.push(name, rows(3), now=0)
    assert order_of(executor) == ["pass_a"] * 3 + ["pass_b"] * 3 + ["both"] * 6


def test_round_robin_finishes_the_path_of_a_query_before_it_visits_that_of_another() -> None:
    graph = Graph()
    for name in "ab":
        first = graph.operator(f"{name}1", Project(KEEP), [graph.source(name, TimeContract("external", "ts"))], "rr")
        graph.sink(
            f"out_{name}", graph.operator(f"{name}2", Project(KEEP), [first], "rr"), share=100.0 ** (name == "b")
        )
    executor = Executor(graph, rows_per_step=1)
    for name in "ab":
        executor.push(name, rows(3), now=0)
    assert order_of(executor) == [f"{name}{place}" for name in "ab" for place in (1, 2) for _ in range(3)]


def test_a_fragment_keeps_control_until_its_rules_give_it_back() -> None:
    executor = Executor(united("dfs"), rows_per_step=1)
    executor.set_breaks({("pass_a", "both"), ("pass_b", "both")})
    for name in "ab":
        executor.push(name, rows(3), now=0)
    assert order_of(executor) == ["pass_a"] * 3 + ["pass_b"] * 3 + ["both"] * 6


def test_a_path_whose_input_does_not_end_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_KEEPS", 4)
    executor = Executor(united("rr"), rows_per_step=1)
    executor.push("a", rows(12), now=0)
    executor.push("b", rows(1), now=0)
    order = order_of(executor)
    assert order.index("pass_b") == 5 and order.index("both") < 7
    assert [order.count(name) for name in ("pass_a", "pass_b", "both")] == [12, 1, 13]
