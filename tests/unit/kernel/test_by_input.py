"""Operators that are told the bound of each input by itself, put work off, compare pairs, and let go first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND, Batch, Element, JointPunctuation, Microseconds, Punctuation
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.operator import Operator
from millrace.kernel.relational.merge import Merge
from tests.unit.kernel.graphs import INTERNAL, ORDERED, Costly, at_least, numbers, rows


class Second(Operator):
    """Gives rows of the first input once the second one has passed them, a few at a time, and none of the second."""

    label = "second"
    holds = senses_bounds = uses_every_bound = by_input = leads = learns_cost = True

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []
        self.waiting: list[Batch] = []
        self.bounds = [NO_BOUND, NO_BOUND]
        self.costs: list[int] = []
        self.compared = 0

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self.heard.append(("rows", port, len(batch)))
        self.compared += 3 * len(batch)
        if port == 0:
            self.waiting.append(batch)
        yield from ()

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        self.heard.append(("bound", port, punctuation.until))
        self.bounds[port] = punctuation.until
        yield JointPunctuation((self.bounds[0], self.bounds[1]))

    @property
    def unfinished(self) -> bool:  # type: ignore[override]
        return bool(self.waiting) and int(self.waiting[0].times[0]) < self.bounds[1]

    def on_more(self, limit: int | None) -> Iterator[Element]:
        self.heard.append(("more", 0, limit or 0))
        yield self.waiting.pop(0)

    def on_cost(self, micros: Microseconds) -> None:
        self.costs.append(micros)

    def wants(self) -> Sequence[Mapping[int, Microseconds]]:
        return [{1: int(each.times[0]) + 1} for each in self.waiting[:1]]

    @property
    def held(self) -> int:
        return len(self.waiting)


def joined(contract: object = ORDERED, **options: object) -> tuple[Executor, Second]:
    graph, operator = Graph(), Second()
    sources = [graph.source(name, contract) for name in ("a", "b")]  # type: ignore[arg-type]
    graph.sink("q", graph.operator("second", operator, sources))
    return Executor(graph, **options), operator  # type: ignore[arg-type]


def test_each_input_tells_its_own_bound_before_and_after_its_rows() -> None:
    executor, operator = joined()
    executor.push("a", rows(5, 9), now=0)
    executor.run(StandingClock(0))
    assert operator.heard == [("bound", 0, 5), ("rows", 0, 2), ("bound", 0, 9)]
    executor.push("b", rows(3), now=0)
    executor.run(StandingClock(0))
    assert operator.heard[3:] == [("bound", 1, 3), ("rows", 1, 1)]


def test_work_that_was_put_off_goes_on_before_further_input_a_step_at_a_time() -> None:
    executor, operator = joined(rows_per_step=1)
    executor.push("a", rows(1, 2, 3), now=0)
    executor.run(StandingClock(0))
    assert numbers(executor, "q") == []
    del operator.heard[:]
    executor.push("b", rows(3), now=0)
    executor.run(StandingClock(0))
    assert operator.heard == [("bound", 1, 3), ("more", 0, 1), ("more", 0, 1), ("rows", 1, 1)]
    assert numbers(executor, "q") == [0, 1]


def test_pairs_that_were_compared_cost_time_and_the_operator_learns_what() -> None:
    executor, operator = joined()
    clock = Costly(second=10)
    executor.push("a", rows(1, 2), now=0)
    executor.run(clock)
    assert operator.costs == [0, 26]
    assert clock.time == 26


def test_a_graph_at_rest_has_nothing_put_off_and_can_be_saved() -> None:
    executor, _ = joined(rows_per_step=1)
    executor.push("a", rows(1), now=0)
    executor.push("b", rows(5), now=0)
    executor.run(StandingClock(0))
    assert numbers(executor, "q") == [0]
    assert executor.save().control["nodes"]["second"]["registers"] == [1, 5]


def test_only_the_input_that_is_waited_for_is_spoken_for() -> None:
    executor, operator = joined(INTERNAL)
    executor.push("a", rows(0).select(["n"]), now=100)
    executor.run(StandingClock(100), silent=())
    assert numbers(executor, "q") == []
    executor.run(StandingClock(200), silent=("b",))
    assert numbers(executor, "q") == [0]
    assert operator.bounds == [100, 200]


def test_a_promise_about_pairs_passes_filters_and_reaches_who_empties_a_sink() -> None:
    graph = Graph()
    sources = [graph.source(name, ORDERED) for name in ("a", "b")]
    chosen = graph.operator("filter", at_least(0), [graph.operator("second", Second(), sources)])
    graph.sink("q", chosen, takes_bounds=True)
    executor = Executor(graph)
    executor.push("a", rows(4), now=0)
    executor.push("b", rows(7), now=0)
    executor.run(StandingClock(0))
    executor.take(0)
    assert executor.promised_jointly("q") == (4, 7)


def test_what_an_input_must_reach_is_asked_of_the_sources_behind_it() -> None:
    graph = Graph()
    a, b, c = (graph.source(name, INTERNAL) for name in "abc")
    merged = graph.operator("merge", Merge(), [b, c])
    graph.sink("q", graph.operator("second", Second(), [a, merged]))
    executor = Executor(graph)
    executor.push("a", rows(0).select(["n"]), now=100)
    executor.run(StandingClock(200), silent=("b", "c"))
    assert numbers(executor, "q") == [0]
    assert [executor.ingress[name].bound for name in "abc"] == [100, 200, 200]
