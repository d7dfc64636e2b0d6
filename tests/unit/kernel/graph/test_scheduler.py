from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.graph import chain
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.metrics import NodeMetrics
from millrace.kernel.relational.filter import Filter
from tests.unit.kernel.graphs import ORDERED, Costly, numbers, path, rows


def two_components(left: float = 1.0, right: float = 1.0) -> Graph:
    graph = Graph()
    for name, share in (("a", left), ("b", right)):
        graph.sink(f"out_{name}", path(graph, graph.source(name, ORDERED), f"pass_{name}"), share)
    return graph


def served(executor: Executor, steps: int) -> tuple[int, int]:
    clock = Costly()
    for _ in range(steps):
        executor.step(clock)
    nodes = executor.metrics().nodes
    return nodes["pass_a"].rows_in, nodes["pass_b"].rows_in


def test_a_query_that_floods_does_not_starve_another() -> None:
    executor = Executor(two_components(), rows_per_step=1)
    executor.push("a", rows(*range(1000)), now=0)
    executor.push("b", rows(1, 2, 3), now=0)
    flood, other = served(executor, 7)
    assert other == 3 and flood == 4


@pytest.mark.parametrize(("share", "expected"), [(1.0, 20), (3.0, 30), (0.25, 8)])
def test_components_are_served_by_their_shares(share: float, expected: int) -> None:
    executor = Executor(two_components(left=share), rows_per_step=1)
    executor.push("a", rows(*range(100)), now=0)
    executor.push("b", rows(*range(100)), now=0)
    first, second = served(executor, 40)
    assert first + second == 40
    assert abs(first - expected) <= 1


def test_idleness_earns_no_credit() -> None:
    executor = Executor(two_components(), rows_per_step=1)
    executor.push("a", rows(*range(100)), now=0)
    served(executor, 50)
    executor.push("b", rows(*range(100)), now=0)
    first, second = served(executor, 20)
    assert abs((first - 50) - second) <= 1


def chained() -> Graph:
    """A slow selection that drops nothing, then a quick one that drops nearly all, then another."""
    graph = Graph()
    first = path(graph, graph.source("s", ORDERED), "slow")
    tenth = Call("=", (Call("%", (Column("n"), Literal(10, pa.int64()))), Literal(0, pa.int64())))
    second = graph.operator("quick", Filter(tenth), [first])
    graph.sink("out", path(graph, second, "last"))
    for node in graph.operators():
        node.chain = True
    return graph


def test_chain_breaks_where_the_lower_envelope_bends() -> None:
    graph = chained()
    measured = {"slow": (1.0, 1.0), "quick": (1.0, 0.1), "last": (50.0, 1.0)}
    for name, (cost, selectivity) in measured.items():
        graph.nodes[name].metrics = NodeMetrics(rows_in=100, rows_out=int(100 * selectivity), cost=int(100 * cost))
    placed = chain.place(graph.operators())
    assert placed.breaks == {("quick", "last")}
    assert placed.priorities["slow"] == placed.priorities["quick"] > placed.priorities["last"] > 0


def test_chain_leaves_alone_what_has_not_been_measured() -> None:
    assert chain.place(chained().operators()).breaks == set()


def memory_over_time(executor: Executor, clock: Costly) -> int:
    """How much stood in buffers while a burst of a hundred rows was worked off, added up over time."""
    executor.push("s", rows(*range(1000, 1100)), now=0)
    total = 0
    while True:
        before, held = clock.time, sum(node.buffer.size for node in executor.graph.nodes.values() if not node.is_sink)
        if not executor.step(clock):
            return total
        executor.take(0)
        total += held * (clock.time - before)


def test_chain_needs_less_memory_than_serving_fragments_in_turn() -> None:
    needed = {}
    for kind in ("turn", "chain"):
        executor, clock = Executor(chained(), rows_per_step=1), Costly(last=500)
        executor.push("s", rows(*range(100)), now=0)
        executor.run(clock)
        executor.take(0)
        if kind == "chain":
            executor.place_breaks()
        assert executor.breaks == ({("quick", "last")} if kind == "chain" else set())
        if kind == "turn":
            executor.set_breaks({("slow", "quick"), ("quick", "last")})
        needed[kind] = memory_over_time(executor, clock)
    assert needed["chain"] < 0.8 * needed["turn"]


def test_break_nodes_are_placed_while_running_for_queries_that_ask_for_it() -> None:
    executor = Executor(chained(), rows_per_step=1)
    executor.push("s", rows(*range(3000)), now=0)
    executor.run(Costly(last=500))
    assert executor.breaks == {("quick", "last")}
    assert numbers(executor, "out") == list(range(0, 3000, 10))


def test_idleness_earns_no_credit_after_everybody_was_idle() -> None:
    executor = Executor(two_components(), rows_per_step=1)
    executor.push("a", rows(*range(100)), now=0)
    executor.run(Costly())
    executor.push("b", rows(*range(50)), now=0)
    served(executor, 1)
    executor.push("a", rows(*range(100, 150)), now=0)
    first, second = served(executor, 20)
    assert abs((first - 100) - second) <= 2


def test_what_the_scheduler_counted_outlasts_a_change_of_the_graph() -> None:
    executor = Executor(two_components(), rows_per_step=1)
    executor.push("a", rows(*range(100)), now=0)
    served(executor, 50)
    graph = executor.graph
    graph.sink("out_c", path(graph, graph.source("c", ORDERED), "pass_c"))
    executor.adopt()
    executor.push("c", rows(*range(100)), now=0)
    first, _ = served(executor, 20)
    assert abs(first - 60) <= 1
