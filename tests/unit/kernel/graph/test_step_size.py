"""How many rows a step takes: by strategy, and by the time that functions of a user were measured to take."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Column
from millrace.kernel.columns.user_functions import UserCall, UserFunction
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.relational.filter import Filter
from millrace.kernel.relational.project import Project
from tests.unit.kernel.graphs import ORDERED, Costly, at_least, numbers, rows

CALL = UserCall(UserFunction("abs", (pa.int64(),), pa.int64(), "builtins:abs"), (Column("n"),))


def steps(clock: Costly, node: str) -> list[int]:
    """The rows of each step of a node."""
    return [spent // clock.prices[node] for name, spent in clock.spent if name == node]


def executor(moment: int | None, *, strategy: str = "dfs", selects: int = 0) -> Executor:
    """A selection, and a function of the user behind it."""
    graph = Graph()
    node = graph.operator("select", at_least(selects), [graph.source("s", ORDERED)], strategy)
    node = graph.operator("call", Project((("n", CALL),)), [node], strategy)
    graph.sink("out", node)
    return Executor(graph, moment=moment)


def test_an_operator_that_calls_a_function_takes_as_many_rows_as_a_moment_allows() -> None:
    run, clock = executor(100), Costly(select=1, call=20)
    run.push("s", rows(*range(20)), now=0)
    assert run.run(clock)
    assert steps(clock, "select") == [20], "columns are computed whole"
    assert steps(clock, "call") == [1, 5, 5, 5, 4]
    assert numbers(run, "out") == list(range(20))


def test_without_a_moment_every_step_takes_a_whole_batch() -> None:
    for strategy in ("dfs", "batch:3"):
        run, clock = executor(None, strategy=strategy), Costly(select=1, call=20)
        run.push("s", rows(*range(20)), now=0)
        run.run(clock)
        assert steps(clock, "call") == [20]


def test_a_slower_function_takes_fewer_rows_and_always_one() -> None:
    run, clock = executor(100), Costly(select=1, call=20)
    run.push("s", rows(*range(11)), now=0)
    run.run(clock)
    clock.spent.clear()
    clock.prices["call"] = 1_000
    run.push("s", rows(*range(11, 19)), now=0)
    run.run(clock)
    assert steps(clock, "call") == [5, 1, 1, 1]


@pytest.mark.parametrize(("strategy", "taken"), [("batch:3", [3, 3, 2]), ("bfs", [8])])
def test_a_batch_of_the_strategy_is_the_most_that_a_step_takes(strategy: str, taken: list[int]) -> None:
    run, clock = executor(1_000, strategy=strategy), Costly(select=1, call=1)
    run.push("s", rows(*range(8)), now=0)
    run.run(clock)
    assert steps(clock, "select") == taken


def test_a_stream_gives_as_many_rows_as_its_functions_keep_up_with() -> None:
    run, clock = executor(100), Costly(select=1, call=20)
    assert run.step_size.allowance("s") == 1, "nothing is known yet"
    run.push("s", rows(0), now=0)
    while run.graph.nodes["select"].waiting:
        run.step(clock)
    assert run.step_size.allowance("s") == 0, "the function has still to take it"
    run.run(clock)
    assert run.step_size.allowance("s") == 4, "no more than some times what has come so far"
    run.push("s", rows(*range(1, 1_001)), now=0)
    run.run(clock)
    assert run.step_size.allowance("s") == 5 * 100 // 20


def test_rows_that_a_function_does_not_see_do_not_count() -> None:
    run, clock = executor(100, selects=900), Costly(select=1, call=20)
    run.push("s", rows(*range(1_000)), now=0)
    run.run(clock)
    assert run.step_size.allowance("s") == 10 * 5 * 100 // 20


def test_a_stream_without_functions_gives_all_it_has() -> None:
    graph = Graph()
    graph.sink("out", graph.operator("select", Filter(at_least(0).predicate), [graph.source("s", ORDERED)]))
    assert Executor(graph, moment=100).step_size.allowance("s") is None
    assert executor(None).step_size.allowance("s") is None
