"""State that finds its operators again in another graph."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.clock import StandingClock
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.snapshot import Place
from millrace.language import parse_network
from millrace.plan.physical.stages import physical
from tests.property.cases import batch, declared

COUNTED = "SELECT count(*) AS n FROM s [RANGE {0} SECONDS SLIDE {0} SECONDS WA ts]"


def executor(*selects: str) -> Executor:
    queries = "".join(f"CREATE QUERY q{number} AS {select};" for number, select in enumerate(selects))
    return Executor(physical(parse_network(declared("s", 5) + queries)).whole())


def pushed(given: Executor, second: int) -> None:
    given.push("s", batch([{"k": "a", "j": 1, "v": 1, "x": 1.0, "ts": second * 1_000_000}]), 0)
    given.run(StandingClock(0))
    given.take(0)


def saved(given: Executor) -> tuple[dict[str, object], dict[Place, pa.Table]]:
    found = given.save()
    return found.control, found.added


def test_operators_that_went_are_let_go_and_those_that_stayed_go_on() -> None:
    first = executor(COUNTED.format(10), COUNTED.format(30))
    pushed(first, 7)
    control, segments = saved(first)
    second = executor(COUNTED.format(30))
    second.restore(control, segments)
    assert sum(second.metrics().held.values()) == 1
    gone = {node.name for node in first.graph.operators()} - set(second.graph.nodes)
    removed = second.save().removed
    assert removed and {name for name, _ in removed} <= gone
    assert second.save().removed == []


def test_an_operator_that_is_new_knows_at_once_what_was_promised_to_others() -> None:
    first = executor(COUNTED.format(10))
    pushed(first, 70)
    control, segments = saved(first)
    second = executor(COUNTED.format(10), "SELECT max(v) AS m FROM s [RANGE 20 SECONDS SLIDE 20 SECONDS WA ts]")
    second.restore(control, segments)
    second.run(StandingClock(0))
    new = [node for node in second.graph.operators() if node.name not in control["nodes"]]  # type: ignore[operator]
    assert new
    told = [arc.register for node in new for arc in node.inputs if arc.producer.name == "s"]
    assert told == [60_000_000], "the bound, as far as a window could use it"


def test_an_outlet_that_nobody_read_begins_where_its_stream_stands() -> None:
    first = executor(COUNTED.format(10))
    pushed(first, 70)
    pushed(first, 71)
    second = executor(COUNTED.format(10), "SELECT sum(v) AS v FROM s [ROWS 2 SLIDE 2]")
    second.restore(*saved(first))
    second.run(StandingClock(0))
    assert second.graph.nodes["s@sequence"].promised == 2
