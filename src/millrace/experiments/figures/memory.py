"""How much memory a query takes while rows come in: real operators and real bytes, with the clock moved by hand.

What it does is counted, too: work costs what the case says, and the clock is put right when the next rows come.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.experiment import Outcome
from millrace.hosts.virtual.host import Costs, VirtualClock
from millrace.kernel.graph.executor import Executor
from millrace.kernel.metrics import Latency
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import TIMESTAMP
from millrace.plan.physical.stages import Physical, physical

_SECOND = 1_000_000
_WIDE = 256
"""Groups are pairs of a `src` and one of so many `dst`; of many groups there are as many of one as of the other."""


@dataclass(frozen=True)
class Feed:
    """A stream in order of time: how many rows a second, and how many seconds after its own time a row arrives."""

    name: str
    rate: int
    delay: float = 0.0

    @property
    def statement(self) -> str:
        """Its declaration."""
        return (
            f"CREATE STREAM {self.name} (src BIGINT, dst BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM generate;"
        )

    def rows(self, begin: float, end: float, groups: int) -> pa.RecordBatch:
        """The rows of a span of its own time, evenly spaced, each of some group."""
        numbers = np.arange(round(begin * self.rate), round(end * self.rate))
        times = numbers * _SECOND // self.rate
        # A seed for each span: what comes must not depend on the steps of other streams.
        random = np.random.default_rng([*self.name.encode(), round(begin * 1000)])
        pairs = random.integers(0, groups, len(times))
        wide = max(_WIDE, isqrt(groups))
        columns = [pa.array(pairs // wide), pa.array(pairs % wide), pa.array(times).cast(TIMESTAMP)]
        return pa.RecordBatch.from_arrays(columns, names=["src", "dst", "ts"])


@dataclass(frozen=True)
class MemoryCase:
    """A query over feeds for `seconds` of their own time; rows arrive every `step` seconds."""

    query: str
    feeds: tuple[Feed, ...]
    seconds: float
    step: float
    groups: int = 1
    costs: Costs = Costs()

    def outcome(self) -> Outcome:
        """The most bytes in buffers and operators at a time, what came out and how soon, and what work it was."""
        text = "\n".join([*(feed.statement for feed in self.feeds), self.query])
        plan = physical(parse_network(text))
        executor, clock = Executor(plan.whole()), VirtualClock(self.costs)
        peak, seconds = 0, 0.0
        latency = Latency()
        for now, arriving in self._arrivals(plan):
            for name, rows in arriving.items():
                executor.push(name, rows, now)
            waiting = sum(rows.nbytes for rows in arriving.values())
            peak = max(peak, _state_bytes(executor) + waiting)
            clock.time, began = now, time.process_time()
            _work(executor, clock, latency)
            seconds += time.process_time() - began
            peak = max(peak, _state_bytes(executor))
        for feed in self.feeds:
            executor.end(feed.name)
        _work(executor, clock, Latency())
        operators = [node.operator for node in executor.graph.operators() if node.operator is not None]
        return Outcome(
            results=sum(sink.rows for sink in executor.metrics().sinks.values()),
            latency=latency.mean / _SECOND,
            memory=peak,
            turned_away=sum(operator.turned_away for operator in operators),
            seconds=seconds,
        )

    def _arrivals(self, plan: Physical) -> Iterator[tuple[int, dict[str, pa.RecordBatch]]]:
        """What arrives at each step, by stream: the columns that the query reads."""
        read = {feed.name: plan.columns_read(feed.name) for feed in self.feeds}
        steps = round((self.seconds + max(feed.delay for feed in self.feeds)) / self.step)
        for number in range(steps):
            now = number * self.step
            arriving = {
                feed.name: feed.rows(now - feed.delay, now - feed.delay + self.step, self.groups).select(
                    read[feed.name]
                )
                for feed in self.feeds
                if 0 <= now - feed.delay < self.seconds
            }
            yield round((now + self.step) * _SECOND), arriving


def _work(executor: Executor, clock: VirtualClock, latency: Latency) -> None:
    """Let the executor work to the end, and count how long after the rows at hand each result came out."""
    began = clock.time
    while executor.step(clock):
        found = sum(len(batch) for batches in executor.take(clock.time).values() for batch in batches)
        if found:
            latency.add(np.full(found, clock.time - began))


def _state_bytes(executor: Executor) -> int:
    return sum(node.operator.state_bytes for node in executor.graph.operators() if node.operator is not None)


def megabytes(outcome: Outcome) -> float:
    """The most memory at a time."""
    return outcome.memory / 1e6
