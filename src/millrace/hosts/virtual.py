"""The virtual host: discrete events, exact and fast.

Rows arrive at the times their stream says (see arrivals.py); an operator's work takes `cost` per row; the clock jumps
from one event to the next. Everything that happens is a function of the input, so a run can be repeated exactly.
With a `tick` all rows of a tick arrive together at its end: coarser, and faster by as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.inputs import open_input
from millrace.errors import RequestError
from millrace.hosts.arrivals import arrivals
from millrace.hosts.outputs import Outputs, publish
from millrace.hosts.report import Ending, Listeners, Report
from millrace.kernel.elements import ARRIVED, NO_BOUND, Microseconds, Times, user_table
from millrace.kernel.executor import Executor
from millrace.kernel.metrics import Metrics
from millrace.plan.nodes import Network, Stream
from millrace.plan.stages import physical

Cost = Callable[[str, int], Microseconds]
"""What it costs a node to take so many rows (0: a punctuation)."""


@dataclass
class VirtualClock:
    """A clock that moves by the cost of work and by jumps."""

    cost: Cost
    time: Microseconds = 0

    def now(self) -> Microseconds:
        """Where it stands."""
        return self.time

    def spend(self, node: str, rows: int) -> None:
        """Move by the cost of the work done."""
        self.time += self.cost(node, rows)


@dataclass(frozen=True)
class Delivery:
    """Results of one query that came out at one moment."""

    now: Microseconds
    query: str
    rows: pa.Table


class _Arriving:
    """The rows of one stream in order of arrival."""

    def __init__(self, stream: Stream, columns: list[str], feed: Iterable[Any] | None, tick: int) -> None:
        self.stream = stream
        self.tick = tick
        self._source = open_input(stream, columns, feed, None)
        self._rows: pa.RecordBatch | None = None
        self._times: Times = np.empty(0, np.int64)
        self._at = 0
        self.malformed = 0

    def next_time(self) -> Microseconds | None:
        """When the next row arrives; None when none will."""
        while self._rows is None or self._at >= self._rows.num_rows:
            chunk = self._source.read()
            if chunk is None:
                return None
            self._load(chunk.rows)
            self.malformed += chunk.malformed
        return int(self._times[self._at])

    def _load(self, rows: pa.RecordBatch) -> None:
        times = arrivals(self.stream, rows, int(self._times[-1]) if len(self._times) else NO_BOUND)
        if times is None:
            raise RequestError(
                f'stream "{self.stream.name}" does not say when its rows arrive',
                hint="Add REPLAY BY column after FROM, or use FROM generate.",
            )
        if ARRIVED not in rows.schema.names:
            rows = rows.append_column(ARRIVED, pa.array(times))
        if self.tick:
            times = -(-times // self.tick) * self.tick
        self._rows, self._times, self._at = rows, times, 0

    def take(self, until: Microseconds) -> pa.RecordBatch:
        """The rows at hand that have arrived by `until`."""
        assert self._rows is not None
        end = int(np.searchsorted(self._times, until, side="right"))
        rows = self._rows.slice(self._at, end - self._at)
        self._at = end
        return rows


class VirtualRun:
    """A network at work in virtual time, from the first arrival to the end of its input."""

    def __init__(
        self,
        network: Network,
        *,
        ending: Ending = "end",
        feeds: Mapping[str, Iterable[Any]] | None = None,
        listeners: Listeners | None = None,
        cost: Cost = lambda node, rows: 0,
        rows_per_step: int | None = None,
        tick: Microseconds = 0,
    ) -> None:
        plan = physical(network)
        self.ending = ending
        self.clock = VirtualClock(cost)
        self.deliveries: list[Delivery] = []
        self._listeners = listeners or Listeners()
        self._executor = Executor(plan.whole(), rows_per_step=rows_per_step)
        self._streams = {
            stream.name: _Arriving(stream, plan.columns_read(stream.name), (feeds or {}).get(stream.name), tick)
            for stream in network.streams()
        }
        self.outputs = Outputs(network.queries, self._listeners, fresh=True)
        self._stopped = False
        self._events = 0
        self._started = self._reported = time.monotonic()

    def run(self) -> Report:
        """Work through all events."""
        first = self._next_arrival()
        self.clock.time = first if first is not None else 0
        while not self._stopped and self._event():
            self._events += 1
            self._report_now_and_then()
        if self.ending == "end" and not self._stopped:
            for name in self._streams:
                self._executor.end(name)
            self._settle()
        publish(self.outputs.stage(0))
        self._listeners.progress(self.report())
        return self.report()

    def stop(self) -> None:
        """End after the present event."""
        self._stopped = True

    def _event(self) -> bool:
        """Let in what has arrived and work one step, or jump to the next event; False when there is none."""
        silent = self._let_in()
        if self._executor.step(self.clock, silent):
            self._deliver()
            return True
        coming = [time for time in (self._next_arrival(), self._wake()) if time is not None]
        if not coming:
            return False
        self.clock.time = max(self.clock.time, min(coming))
        return True

    def _let_in(self) -> set[str]:
        """Push what has arrived by now; the sources that have nothing more at this moment."""
        now = self.clock.time
        for name, arriving in self._streams.items():
            while (due := arriving.next_time()) is not None and due <= now:
                self._executor.push(name, arriving.take(now), now)
            self._executor.reject(name, arriving.malformed)
            arriving.malformed = 0
        return set(self._streams)

    def _next_arrival(self) -> Microseconds | None:
        times = [due for each in self._streams.values() if (due := each.next_time()) is not None]
        return min(times, default=None)

    def _wake(self) -> Microseconds | None:
        """When an ETS would help; without further arrivals only a run that is not ended by its input waits for it."""
        return self._executor.wake_at(self._streams) if self._next_arrival() is not None else None

    def _settle(self) -> None:
        self._executor.run(self.clock)
        self._deliver()

    def _deliver(self) -> None:
        results = self._executor.take(self.clock.time)
        for name, batches in results.items():
            rows = user_table(batches)
            self.deliveries.append(Delivery(self.clock.time, name, rows))
        self.outputs.deliver(results)

    def _report_now_and_then(self) -> None:
        if time.monotonic() - self._reported > 1:
            self._reported = time.monotonic()
            self._listeners.progress(self.report())

    def close(self) -> None:
        """Nothing is held outside this process."""

    @property
    def memory(self) -> dict[str, list[pa.Table]]:
        """The results so far of queries with a memory sink."""
        return self.outputs.memory

    def metrics(self) -> Metrics:
        """The kernel's counts."""
        return self._executor.metrics()

    def report(self) -> Report:
        """The run at this moment."""
        metrics = self._executor.metrics()
        results = {name: sink.rows for name, sink in metrics.sinks.items()}
        return Report.of(metrics, results, time.monotonic() - self._started, self._events)
