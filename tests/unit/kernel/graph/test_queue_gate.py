from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from unittest.mock import patch

import pyarrow as pa
import pytest

from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import END_OF_TIME
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.progress.quarantine import UnreadRows, places
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.union import Union
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from millrace.kernel.updates.windows.window_queue import WindowQueue
from tests.unit.kernel.graphs import INTERNAL, ORDERED, Costly, at_least, counting, numbers, path, rows
from tests.unit.kernel.toy_queue import ToyQueue

QUICK = {"queue": 0, "below": 0, "a_queue": 0, "b_queue": 0}
"""What costs nothing in these tests."""


def queued(queue: ToyQueue, *after: str) -> Graph:
    """A source, a queue, operators after it, and a sink."""
    graph = Graph()
    end = path(graph, graph.operator("queue", queue, [graph.source("s", ORDERED)]), *after)
    graph.sink("out", end)
    return graph


def test_a_queue_takes_all_its_input_before_it_lets_go() -> None:
    queue = ToyQueue(keys=3)
    executor = Executor(queued(queue, "work"), rows_per_step=1)
    executor.push("s", rows(*range(6)), now=0)
    assert executor.run(StandingClock(0))
    assert [what for _, what, _ in queue.log] == ["takes"] * 6 + ["lets go", "rests"] * 3
    assert numbers(executor, "out") == [3, 4, 5]


def test_a_queue_lets_go_only_when_all_before_has_been_worked_off() -> None:
    queue = ToyQueue()
    executor = Executor(queued(queue, "first", "second"), rows_per_step=1)
    executor.push("s", rows(*range(3)), now=0)
    executor.run(Costly(first=10, second=5, **QUICK))
    assert queue.log[3:] == [
        (0, "lets go", 1),
        (15, "rests", 0),
        (15, "lets go", 1),
        (30, "rests", 0),
        (30, "lets go", 1),
        (45, "rests", 0),
    ]


def test_rows_that_a_filter_drops_are_delivered_when_it_has_dropped_them() -> None:
    queue, graph = ToyQueue(), Graph()
    place = graph.operator("queue", queue, [graph.source("s", ORDERED)])
    graph.sink("out", graph.operator("drop", at_least(100), [place]))
    executor = Executor(graph, rows_per_step=1)
    executor.push("s", rows(0), now=0)
    executor.run(Costly(drop=7, **QUICK))
    assert queue.log[-1] == (7, "rests", 0)


def test_a_row_that_comes_while_another_is_under_way_supersedes_what_waits() -> None:
    queue, clock = ToyQueue(keys=2), Costly(work=10, **QUICK)
    executor = Executor(queued(queue, "work"), rows_per_step=1)
    executor.push("s", rows(0, 1), now=0)
    while not queue.log or queue.log[-1][1] != "lets go":
        executor.step(clock)
    executor.push("s", rows(2, 3, first=2), now=0)
    executor.run(clock)
    assert numbers(executor, "out") == [0, 3, 2]
    assert executor.metrics().queues["queue"].superseded == 1


def test_a_shut_queue_keeps_its_rows_and_the_graph_comes_to_rest() -> None:
    queue = ToyQueue()
    executor = Executor(queued(queue, "work"))
    executor.queue_gate.shut()
    executor.push("s", rows(*range(5)), now=0)
    assert executor.run(StandingClock(3)) and queue.held == 5
    assert executor.wake_at(()) == 3
    executor.save()
    executor.queue_gate.open(2)
    executor.run(StandingClock(4))
    assert numbers(executor, "out") == [0, 1] and executor.wake_at(()) == 4
    executor.queue_gate.open(None)
    executor.run(StandingClock(5))
    assert numbers(executor, "out") == [2, 3, 4] and not executor.queue_gate.held_back and executor.wake_at(()) is None


def test_queues_are_opened_by_name_and_a_newcomer_does_as_the_others() -> None:
    graph, queues = Graph(), {name: ToyQueue() for name in ("a", "b")}
    source = graph.source("s", ORDERED)
    graph.sink("out_a", graph.operator("a", queues["a"], [source]))
    executor = Executor(graph)
    executor.queue_gate.shut()
    graph.sink("out_b", graph.operator("b", queues["b"], [source]))
    executor.adopt()
    executor.push("s", rows(*range(4)), now=0)
    executor.run(StandingClock(0))
    assert [queue.held for queue in queues.values()] == [4, 4]
    executor.queue_gate.open({"b": 3})
    executor.run(StandingClock(0))
    assert [queue.held for queue in queues.values()] == [4, 1]
    assert executor.queue_gate.titles() == {"a": "out_a", "b": "out_b"} and list(executor.queue_gate.queues()) == [
        "a",
        "b",
    ]


def test_the_end_of_the_input_empties_a_queue_that_is_shut() -> None:
    queue = ToyQueue()
    executor = Executor(queued(queue, "work"))
    executor.queue_gate.shut()
    executor.push("s", rows(*range(5)), now=0)
    executor.edges.end("s")
    executor.run(StandingClock(0))
    assert queue.held == 0 and numbers(executor, "out") == list(range(5))


def test_what_a_queue_holds_is_saved_and_goes_on() -> None:
    executor = Executor(queued(ToyQueue(keys=3), "work"))
    executor.queue_gate.shut()
    executor.push("s", rows(*range(5)), now=0)
    executor.run(StandingClock(0))
    saved = executor.save()
    other = Executor(queued(ToyQueue(keys=3), "work"))
    other.restore(saved.control, saved.added)
    other.push("s", rows(5, first=5), now=0)
    other.run(StandingClock(0))
    assert numbers(other, "out") == [3, 4, 5]
    found = other.metrics().sources["s"]
    assert (found.received, found.processed, found.superseded, found.buffered) == (6, 3, 3, 0)


def test_what_a_queue_holds_counts_as_queued() -> None:
    executor = Executor(queued(ToyQueue(), "work"))
    executor.queue_gate.shut()
    executor.push("s", rows(*range(5)), now=0)
    executor.run(StandingClock(0))
    assert executor.metrics().peak_queued == 5 and executor.metrics().held["queue"] == 5
    assert executor.metrics().nodes["queue"].peak_held == 5


def test_an_enabling_timestamp_ends_at_a_queue_and_never_overtakes_rows() -> None:
    """An aggregate below waits for a window to end; the row that the queue holds is in it."""
    queue, graph = ToyQueue(), Graph()
    place = graph.operator("queue", queue, [graph.source("s", INTERNAL)])
    graph.sink("out", graph.operator("count", counting(10, 10), [graph.operator("pass", at_least(0), [place])]))
    executor = Executor(graph)
    assert [arc.consumer.name for arc in graph.nodes["s"].ets_paths[0]] == ["queue"]
    executor.push("s", rows(0, 0), now=3)
    executor.run(StandingClock(3), silent=["s"])
    executor.queue_gate.shut()
    executor.push("s", rows(0, first=2), now=5)
    executor.run(StandingClock(20), silent=["s"])
    assert not executor.take(20)
    executor.queue_gate.open(None)
    executor.run(StandingClock(20), silent=["s"])
    assert [batch.rows.column("rows").to_pylist() for batch in executor.take(20)["out"]] == [[3]]


def two_queries(costs: dict[str, int]) -> tuple[Executor, dict[str, ToyQueue]]:
    graph, queues = Graph(), {}
    for name in costs:
        queues[name] = ToyQueue()
        place = graph.operator(f"{name}_queue", queues[name], [graph.source(name, ORDERED)])
        graph.sink(f"out_{name}", path(graph, place, f"work_{name}"))
    return Executor(graph, rows_per_step=1), queues


def let_go_at(queues: dict[str, ToyQueue]) -> dict[str, list[int]]:
    return {name: [now for now, what, _ in queue.log if what == "lets go"] for name, queue in queues.items()}


def test_the_most_urgent_of_all_queries_lets_go_next() -> None:
    executor, queues = two_queries({"a": 10, "b": 10})
    queues["a"].fixed_urgency, queues["b"].fixed_urgency = 1.0, 2.0
    for name in queues:
        executor.push(name, rows(*range(3)), now=0)
    executor.run(Costly(**QUICK))
    assert let_go_at(queues) == {"b": [0, 10, 20], "a": [30, 40, 50]}


def test_equally_urgent_queries_take_turns() -> None:
    executor, queues = two_queries({"a": 10, "b": 10})
    for queue in queues.values():
        queue.fixed_urgency = 0.0
    for name in queues:
        executor.push(name, rows(*range(2)), now=0)
    executor.run(Costly(**QUICK))
    assert sorted(let_go_at(queues).values()) == [[0, 20], [10, 30]]


def over_one_stream(queues: Mapping[str, Queue], shares: Mapping[str, float] | None = None) -> Executor:
    """Queries over one stream: their queues stand in one fragment."""
    graph = Graph()
    source = graph.source("s", TimeContract("external", "ts", disorder=1_000_000))
    for name, queue in queues.items():
        place = path(graph, graph.operator(f"{name}_queue", queue, [source]), f"work_{name}")
        graph.sink(f"out_{name}", place, (shares or {}).get(name, 1.0))
    return Executor(graph, rows_per_step=1)


@pytest.mark.parametrize("together", [False, True])
def test_every_second_turn_is_for_queues_that_gain_nothing_by_what_is_next(together: bool) -> None:
    queues = {name: ToyQueue() for name in ("a", "b")}
    executor, queues = (over_one_stream(queues), queues) if together else two_queries({"a": 10, "b": 10})
    queues["a"].fixed_urgency, queues["b"].fixed_urgency = 0.0, 2.0
    for name in ["s"] if together else queues:
        executor.push(name, rows(*range(3)), now=0)
    executor.run(Costly(s=0, **QUICK))
    assert let_go_at(queues) == {"a": [0, 20, 40], "b": [10, 30, 50]}


def test_queries_over_one_stream_count_by_their_shares() -> None:
    queues = {name: ToyQueue() for name in ("a", "b")}
    queues["a"].fixed_urgency, queues["b"].fixed_urgency = 2.0, 1.0
    executor = over_one_stream(queues, {"b": 3.0})
    executor.push("s", rows(0, 1), now=0)
    executor.run(Costly(**QUICK))
    assert let_go_at(queues) == {"b": [0, 10], "a": [20, 30]}


def overloaded(executor: Executor, clock: Costly, until: int) -> None:
    """Rows of a new key each come faster than the slow query can work them off."""
    number = 100
    while clock.time < until:
        executor.push("s", rows(*[clock.time] * 4, first=number), now=clock.time)
        number += 4
        after = clock.time + 400
        while clock.time < after:
            assert executor.step(clock), "there is always work"


def test_an_older_row_does_not_stop_an_append_queue_while_another_is_overloaded() -> None:
    every, risk = UpdateQueue(["n"], QueueSettings("append")), UpdateQueue(["n"], QueueSettings("inplace"))
    executor, clock = over_one_stream({"every": every, "risk": risk}), Costly(work_risk=400, work_every=1)
    executor.push("s", rows(5), now=0)
    executor.run(clock)
    executor.push("s", rows(4), now=clock.time)
    overloaded(executor, clock, 20_000)
    assert risk.held > 20 and every.held <= 5


@pytest.mark.parametrize(("close", "slide", "later"), [("bound", 2_000, [1_500]), ("own", 1_000, [2, 1_500, 1_501])])
def test_windows_are_reported_while_another_query_is_overloaded(
    close: Literal["bound", "own"], slide: int, later: list[int]
) -> None:
    """What is next may be nothing but the end of a window, or a row of one that is still open."""
    sums = WindowQueue(["n"], 1_000, slide, QueueSettings(), close=close)
    risk = UpdateQueue(["n"], QueueSettings("inplace"))
    graph, clock = Graph(), Costly(work_risk=400, work_sums=1)
    for name, queue in {"sums": sums, "risk": risk}.items():
        place = graph.operator(f"{name}_queue", queue, [graph.source("s" if name == "risk" else "w", ORDERED)])
        graph.sink(f"out_{name}", path(graph, place, f"work_{name}"))
    executor = Executor(graph, rows_per_step=1)
    executor.push("w", rows(0, 0, 0), now=0)
    executor.run(clock)
    executor.push("s", rows(*range(100, 150), first=50), now=clock.time)
    executor.push("w", rows(*later), now=clock.time)
    overloaded(executor, clock, 20_000)
    assert risk.held > 20
    assert sums.held == 0 and sums.queue_metrics(clock.time).application_now == 0


def test_what_comes_enters_its_queue_before_any_other_lets_go() -> None:
    executor, queues = two_queries({"a": 10, "b": 10})
    queues["a"].fixed_urgency, queues["b"].fixed_urgency = 9.0, 0.0
    executor.push("a", rows(*range(3)), now=0)
    clock = Costly(**QUICK)
    while not any(what == "lets go" for _, what, _ in queues["a"].log):
        executor.step(clock)
    executor.push("b", rows(0), now=0)
    executor.run(clock)
    assert queues["b"].log[0] == (10, "takes", 1)


def test_a_join_of_two_queues_takes_what_came_before_it_lets_more_go() -> None:
    """Both queues stand in one fragment: what enters one is not kept waiting by the other."""
    graph, queues = Graph(), [ToyQueue(), ToyQueue()]
    places = [
        graph.operator(f"{name}_queue", queues[at], [graph.source(name, ORDERED)]) for at, name in enumerate("ab")
    ]
    graph.sink("out", graph.operator("both", Union(), places))
    executor = Executor(graph, rows_per_step=1)
    executor.push("a", rows(0, 1), now=0)
    clock = Costly(both=10, **QUICK)
    while not any(what == "lets go" for _, what, _ in queues[0].log):
        executor.step(clock)
    executor.push("b", rows(0, 1), now=0)
    executor.run(clock)
    assert queues[1].log[:2] == [(10, "takes", 1), (10, "takes", 1)]
    assert executor.queue_gate.titles() == {"a_queue": "out", "b_queue": "out#2"}
    assert sorted(numbers(executor, "out")) == [0, 0, 1, 1]


@pytest.mark.parametrize("shut", [False, True])
def test_the_accounting_of_a_stream_adds_up(shut: bool) -> None:
    """A filter below one queue drops some, another queue reads all; that which has processed least counts."""
    graph = Graph()
    source = graph.source("s", ORDERED)
    kept, every = ToyQueue(keys=2), ToyQueue(keys=5)
    graph.sink("few", path(graph, graph.operator("q_few", kept, [graph.operator("f", at_least(4), [source])]), "x"))
    graph.sink("all", path(graph, graph.operator("q_all", every, [source]), "y"))
    executor = Executor(graph)
    if shut:
        executor.queue_gate.shut()
    executor.push("s", rows(*range(20)), now=0)
    executor.edges.reject("s", UnreadRows(pa.array(["bad"] * 3), lambda at: places(["x"] * len(at), None, at)), now=0)
    executor.run(StandingClock(0))
    found = executor.metrics().sources["s"]
    assert found.received == 23 == found.processed + found.quarantined + found.superseded + found.buffered
    # 4 dropped and 2 of 16 left of the one, 5 of 20 of the other.
    assert found.processed == (0 if shut else 5) and found.superseded == 15 and found.buffered == (5 if shut else 0)


def test_each_input_of_a_queue_is_accounted_for_by_itself() -> None:
    graph, queue = Graph(), ToyQueue(keys=1, inputs=2)
    place = graph.operator("q", queue, [graph.source("a", ORDERED), graph.source("b", ORDERED)])
    graph.sink("out", place)
    executor = Executor(graph)
    executor.push("a", rows(*range(4)), now=0)
    executor.push("b", rows(*range(3)), now=0)
    executor.run(StandingClock(0))
    sources = executor.metrics().sources
    assert sum(each.processed for each in sources.values()) == 1
    assert sum(each.superseded for each in sources.values()) == 6


def test_the_accounting_of_streams_does_not_look_at_the_staleness_of_keys() -> None:
    queue = ToyQueue()
    executor = Executor(queued(queue, "work"))
    executor.push("s", rows(*range(3)), now=0)
    executor.run(StandingClock(0))
    with patch.object(queue, "queue_metrics", wraps=queue.queue_metrics) as asked:
        assert executor.metrics().sources["s"].processed == 3
    assert asked.call_count == 1, "for the metrics of the queue itself"


def test_rows_under_way_are_part_of_no_save() -> None:
    queue = ToyQueue()
    executor = Executor(queued(queue, "work"), rows_per_step=1)
    executor.push("s", rows(0, 1), now=0)
    while not queue.log or queue.log[-1][1] != "lets go":
        executor.step(StandingClock(0))
    executor.queue_gate.shut()
    with pytest.raises(AssertionError, match="at rest"):
        executor.save()
    executor.run(StandingClock(0))
    executor.take(0)
    assert executor.save().control["notes"]["queue"]["bound"] < END_OF_TIME
