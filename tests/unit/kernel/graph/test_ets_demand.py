from __future__ import annotations

import pytest

from millrace.kernel.clock import StandingClock
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.merge import Merge
from millrace.kernel.relational.union import Union
from tests.unit.kernel.graphs import INTERNAL, ORDERED, Costly, at_least, counting, numbers, path, rows

BOTH = ("a", "b")


def united(contract: TimeContract = INTERNAL, strategy: str = "dfs") -> Graph:
    """The graph of 001 Fig. 1: a selection before each input of an in-order union."""
    graph = Graph()
    inputs = [path(graph, graph.source(name, contract), f"pass_{name}", strategy=strategy) for name in BOTH]
    graph.sink("out", graph.operator("union", Merge(), inputs, strategy))
    return graph


def raw(*values: int) -> object:
    return rows(*[0] * len(values), first=values[0] if values else 0)


def test_an_ets_goes_past_the_selection_into_the_register() -> None:
    executor, clock = Executor(united(), rows_per_step=1), Costly(100)
    executor.push("a", raw(1), now=100)
    executor.run(clock, silent=BOTH)
    assert clock.spent == [("pass_a", 10), ("union", 10), ("union", 1)]
    assert numbers(executor, "out") == [1]
    nodes = executor.graph.nodes
    assert nodes["union"].inputs[1].register == 120 and not nodes["union"].inputs[1].active
    assert nodes["pass_b"].promised == 120, "the operator that was skipped is as if it had passed the bound on"


def test_operator_by_operator_an_ets_costs_every_operator() -> None:
    executor, clock = Executor(united(), rows_per_step=1, ets_arcs=False), Costly(100)
    executor.push("a", raw(1), now=100)
    executor.run(clock, silent=BOTH)
    assert clock.spent == [("pass_a", 10), ("union", 10), ("pass_b", 10), ("union", 10)]
    assert numbers(executor, "out") == [1]


def test_a_query_can_keep_ets_arcs_off() -> None:
    graph = united()
    graph.nodes["pass_b"].ets_arcs = False
    executor, clock = Executor(graph, rows_per_step=1), Costly(100)
    executor.push("a", raw(1), now=100)
    executor.run(clock, silent=BOTH)
    assert ("pass_b", 10) in clock.spent


def test_one_ets_serves_a_burst_of_simultaneous_rows_depth_first() -> None:
    executor, clock = Executor(united(), rows_per_step=1), Costly(100)
    executor.push("a", raw(0, 1, 2), now=100)
    executor.run(clock, silent=BOTH)
    assert executor.metrics().sources["b"].enabled == 1
    assert [node for node, _ in clock.spent] == ["pass_a", "union", "union", "pass_a", "union", "pass_a", "union"]


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "rr", "batch:3"])
def test_the_cycle_ends_with_every_strategy(strategy: str) -> None:
    executor, clock = Executor(united(strategy=strategy), rows_per_step=1), Costly(100)
    executor.push("a", raw(0, 1, 2, 3), now=100)
    assert executor.run(clock, silent=BOTH)
    assert numbers(executor, "out") == [0, 1, 2, 3]
    enabled = executor.metrics().sources["b"].enabled
    assert not executor.step(clock, BOTH) and executor.metrics().sources["b"].enabled == enabled


def test_a_source_with_rows_under_way_is_not_spoken_for() -> None:
    graph = united()
    executor, clock = Executor(graph, rows_per_step=1), StandingClock(100)
    executor.set_breaks({("pass_b", "union")})
    executor.push("b", raw(9), now=90)
    executor.push("a", raw(1), now=100)
    while graph.nodes["pass_b"].buffer.size == 0 and executor.step(clock, BOTH):
        pass
    assert executor.metrics().sources["b"].enabled == 0
    executor.run(clock, BOTH)
    assert sorted(numbers(executor, "out")) == [1, 9]


def test_no_ets_without_need_and_none_for_a_busy_source() -> None:
    executor = Executor(united())
    executor.push("a", raw(1), now=100)
    executor.run(StandingClock(100), silent=("a",))
    assert numbers(executor, "out") == []
    executor.push("b", raw(2), now=101)
    executor.run(StandingClock(101), silent=())
    assert numbers(executor, "out") == [1]
    assert {name: each.enabled for name, each in executor.metrics().sources.items()} == {"a": 0, "b": 0}


def test_periodic_ets_come_at_their_beat_and_are_never_sent_twice() -> None:
    beating = TimeContract("internal", "ts", ets="periodic", every=50)
    executor = Executor(united(beating), rows_per_step=1)
    executor.run(StandingClock(10), silent=BOTH)
    executor.push("a", raw(1), now=30)
    executor.run(StandingClock(30), silent=BOTH)
    assert numbers(executor, "out") == [] and executor.wake_at(BOTH) == 50
    executor.run(StandingClock(50), silent=BOTH)
    assert numbers(executor, "out") == [1]
    enabled = executor.metrics().sources["b"].enabled
    executor.run(StandingClock(60), silent=BOTH)
    assert executor.metrics().sources["b"].enabled == enabled == 1 and executor.wake_at(BOTH) == 100


@pytest.mark.parametrize(("merge", "sent"), [(True, 1), (False, 4)])
def test_beats_that_were_missed_are_queued_or_merged(merge: bool, sent: int) -> None:
    graph = united(TimeContract("internal", "ts", ets="periodic", every=50))
    executor = Executor(graph, merge_punctuation=merge)
    executor.run(StandingClock(10), silent=BOTH)
    executor.push("a", raw(1), now=30)
    executor.step(StandingClock(240), silent=BOTH)
    assert graph.nodes["b"].metrics.punctuations_out == sent


def test_a_bound_is_sent_only_at_boundaries_that_some_operator_can_use() -> None:
    graph = Graph()
    source = graph.source("s", ORDERED)
    graph.sink("out", graph.operator("window", counting(20, 10), [path(graph, source, "pass")]))
    executor = Executor(graph)
    for time in range(1, 60):
        executor.push("s", rows(time), now=0)
        executor.run(StandingClock(0))
    assert graph.nodes["window"].bound == 50, "windows of 20 every 10 end at multiples of ten"
    graph.sink("sorted", graph.operator("merge", Merge(), [graph.nodes["pass"]]))
    executor.adopt()
    executor.push("s", rows(63), now=0)
    executor.run(StandingClock(0))
    assert graph.nodes["merge"].bound == 63, "an in-order union can use every advance"


def test_dropped_rows_still_tell_how_far_their_stream_has_come() -> None:
    graph = Graph()
    none = graph.operator("none", at_least(99), [graph.source("s", ORDERED)])
    graph.sink("out", graph.operator("union", Merge(), [none, graph.source("t", ORDERED)]))
    executor = Executor(graph)
    executor.push("t", rows(4, first=7), now=0)
    executor.push("s", rows(5), now=0)
    executor.run(StandingClock(0))
    assert numbers(executor, "out") == [7]


def before_the_last_union(*, in_order: bool) -> Executor:
    """A slide aggregate before the last union (001 Fig. 16)."""
    graph = Graph()
    window = graph.operator("window", counting(100, 100, in_order=in_order), [graph.source("a", INTERNAL)])
    graph.sink("out", graph.operator("last", Merge(), [path(graph, window, "pass"), graph.source("b", INTERNAL)]))
    return Executor(graph)


@pytest.mark.parametrize(("in_order", "waits"), [(True, True), (False, False)])
def test_a_slide_aggregate_in_order_sends_bounds_with_its_windows_only(in_order: bool, waits: bool) -> None:
    executor = before_the_last_union(in_order=in_order)
    executor.push("b", raw(1), now=130)
    executor.push("a", raw(1), now=140)
    executor.run(StandingClock(140))
    assert (executor.metrics().held["last"] == 1) is waits


def test_a_slide_aggregate_reacts_to_an_ets() -> None:
    executor = before_the_last_union(in_order=True)
    executor.push("b", raw(1), now=130)
    executor.run(StandingClock(150), silent=BOTH)
    assert executor.metrics().held["last"] == 0 and executor.graph.nodes["last"].bound == 130


def test_idle_waiting_is_counted_from_when_what_is_wanted_is_due() -> None:
    executor = Executor(united(TimeContract("internal", "ts")))
    executor.push("a", raw(1), now=100)
    executor.run(StandingClock(110))
    executor.push("b", raw(2), now=400)
    executor.run(StandingClock(400))
    assert executor.metrics().nodes["union"].idle == 290


def test_unions_of_both_kinds_sense_bounds_and_selections_do_not() -> None:
    assert Union().senses_bounds and Merge().senses_bounds and counting(1, 1).senses_bounds
    assert not at_least(0).senses_bounds


def test_a_query_that_floods_does_not_keep_another_from_its_ets() -> None:
    graph = united()
    graph.sink("other", path(graph, graph.source("flood", ORDERED), "busy"))
    executor, clock = Executor(graph, rows_per_step=1), Costly(100)
    executor.push("a", raw(1), now=100)
    executor.run(clock, silent=())
    executor.push("flood", rows(*range(1000)), now=0)
    for _ in range(100):
        executor.step(clock, silent=("a", "b"))
    assert numbers(executor, "out") == [1]


def test_a_beat_that_a_busy_stream_could_not_send_is_not_lost() -> None:
    beating = TimeContract("external", "ts", ets="periodic", every=50, lull=5)
    executor = Executor(united(beating))
    executor.run(StandingClock(10), silent=BOTH)
    executor.push("a", rows(30), now=40)
    executor.run(StandingClock(60), silent=())
    executor.run(StandingClock(60), silent=BOTH)
    assert numbers(executor, "out") == [0]


def test_a_stream_is_spoken_for_as_of_the_moment_it_was_looked_at() -> None:
    lulled = TimeContract("external", "ts", ets="on_demand", lull=10)
    executor = Executor(united(lulled))
    executor.push("a", rows(100), now=105)
    executor.run(StandingClock(200), silent={"b": 105})
    assert numbers(executor, "out") == [], "at 105 the stream might have lagged to 95"
    executor.run(StandingClock(200), silent={"b": 150})
    assert numbers(executor, "out") == [0]
    assert executor.metrics().sources["b"].bound == 140
