"""Several queries with queues share a processor so that all their keys together are as little stale as can be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from millrace.kernel.elements import ARRIVED, Microseconds
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.unit.kernel.graphs import ORDERED, Costly, at_least

MILLISECOND = 1_000
SCHEMA = pa.schema({"n": pa.int64(), "ts": pa.timestamp("us", tz="UTC"), ARRIVED: pa.int64()})


@dataclass(frozen=True)
class Load:
    """A query: how many keys it has, what work on an update costs, and how often a key is updated."""

    name: str
    keys: int
    cost: Microseconds
    every: Microseconds = 100 * MILLISECOND


LOADS = (
    Load("a", 10, 8 * MILLISECOND),
    Load("b", 20, 4 * MILLISECOND),
    Load("c", 40, 2 * MILLISECOND),
    Load("d", 80, 1 * MILLISECOND),
)
"""Together they would need 3.2 processors."""


class InTurn(UpdateQueue):
    """A queue that is as urgent as any other, so that they take turns."""

    def urgency(self, now: Microseconds) -> float:
        return 0.0


class Bench:
    """Queries at work on one processor for a while, from one arrival to the next."""

    def __init__(self, loads: Sequence[Load], kind: type[UpdateQueue], slower: int = 1) -> None:
        graph = Graph()
        self.queues: dict[str, UpdateQueue] = {}
        prices = {f"queue_{load.name}": 0 for load in loads} | {
            f"work_{load.name}": load.cost * slower for load in loads
        }
        for load in loads:
            queue = self.queues[load.name] = kind(["n"], QueueSettings("inplace"))
            place = graph.operator(f"queue_{load.name}", queue, [graph.source(load.name, ORDERED)])
            graph.sink(f"out_{load.name}", graph.operator(f"work_{load.name}", at_least(0), [place]))
        self.executor = Executor(graph, rows_per_step=1)
        self.clock = Costly(**prices)

    def run(self, arrivals: Sequence[tuple[Microseconds, str, int]], until: Microseconds) -> None:
        """Let updates (time, query, key) come in their time."""
        at = 0
        while self.clock.time < until:
            while at < len(arrivals) and arrivals[at][0] <= self.clock.time:
                time, name, key = arrivals[at]
                rows = pa.record_batch([[key], [time], [time]], schema=SCHEMA)
                self.executor.push(name, rows, self.clock.time)
                at += 1
            if not self.executor.step(self.clock):
                self.clock.time = arrivals[at][0] if at < len(arrivals) else until
            self.executor.take(self.clock.time)

    def staleness(self) -> float:
        """The mean application staleness of each key, summed over all keys of all queries."""
        seen = [queue.queue_metrics(self.clock.time) for queue in self.queues.values()]
        return sum(each.application_mean * each.keys for each in seen)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def arrivals() -> list[tuple[Microseconds, str, int]]:
    numbers = random.Random(7)
    return sorted(
        (time, load.name, key)
        for load in LOADS
        for key in range(load.keys)
        for time in range(numbers.randrange(load.every), _UNTIL, load.every)
    )


_UNTIL = 2_000 * MILLISECOND


def staleness_of(
    arrivals: Sequence[tuple[Microseconds, str, int]], loads: Sequence[Load], kind: type[UpdateQueue], slower: int = 1
) -> float:
    bench, names = Bench(loads, kind, slower), {load.name for load in loads}
    bench.run([each for each in arrivals if each[1] in names], _UNTIL)
    return bench.staleness()


def test_queries_together_are_less_stale_than_in_turns_or_with_a_share_each(
    arrivals: list[tuple[Microseconds, str, int]],
) -> None:
    """Work in proportion to what it gains: a key is served every so often, in proportion to the root of its cost.

    Then the sum over keys is (sum of n * sqrt(c))^2, against sum of n^2 * sum of c in turns, and of 4 * sum of n^2 * c
    with a quarter of the processor each: as 42 to 128 to 48.
    """
    together = staleness_of(arrivals, LOADS, UpdateQueue)
    in_turns = staleness_of(arrivals, LOADS, InTurn)
    apart = sum(staleness_of(arrivals, [load], UpdateQueue, slower=len(LOADS)) for load in LOADS)
    assert together < 0.6 * in_turns
    assert together < 0.95 * apart
