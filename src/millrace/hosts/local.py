"""The local host: one process, the machine's clock, milliseconds.

It reads a chunk of each stream in turn, lets the kernel run, and hands results on. With a checkpoint folder every
epoch is committed as a whole: state, positions in the input, and result files (see checkpoint.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from millrace.connectors.inputs import Chunk, Input, open_input
from millrace.errors import MillraceError
from millrace.hosts.checkpoint import Checkpoint, Resumed
from millrace.hosts.outputs import Outputs, publish
from millrace.hosts.paced import PacedInput, start_together
from millrace.hosts.report import Ending, Listeners, Report
from millrace.kernel.elements import ARRIVED
from millrace.kernel.executor import Executor
from millrace.kernel.metrics import Metrics
from millrace.plan.nodes import Network, Stream
from millrace.plan.stages import physical

_NAP = 0.02
"""Seconds between two looks at sources that had nothing."""


class SystemClock:
    """The machine's clock; work costs what it costs."""

    def now(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1_000

    def spend(self, node: str, rows: int) -> None:
        """Nothing: real work takes real time."""


class LocalRun:
    """A network at work in this process."""

    def __init__(
        self,
        network: Network,
        *,
        ending: Ending = "stopped",
        checkpoint: Path | None = None,
        feeds: Mapping[str, Iterable[Any]] | None = None,
        listeners: Listeners | None = None,
        interval: float = 1.0,
    ) -> None:
        plan = physical(network)
        self.ending = ending
        self.interval = interval
        self._clock = SystemClock()
        self._listeners = listeners or Listeners()
        self._stop = Event()
        self._executor = Executor(plan.whole())
        self._checkpoint = Checkpoint(checkpoint, plan) if checkpoint is not None else None
        resumed = self._checkpoint.load() if self._checkpoint is not None else None
        positions = resumed.positions if resumed else {}
        self._inputs: dict[str, Input] = {}
        for stream in network.streams():
            columns, feed = plan.columns_read(stream.name), (feeds or {}).get(stream.name)
            self._inputs[stream.name] = _open(stream, columns, feed, positions.get(stream.name))
        start_together((each for each in self._inputs.values() if isinstance(each, PacedInput)), self._clock.now)
        self.outputs = Outputs(network.queries, self._listeners, fresh=resumed is None)
        self._epoch = 0
        self._results = {query.name: 0 for query in network.queries}
        self._earlier = 0
        self._started = time.monotonic()
        self._committed = self._started
        self._silent: set[str] = set()
        if resumed is not None:
            self._resume(resumed)

    def _resume(self, resumed: Resumed) -> None:
        publish(resumed.staged)
        self.outputs.sweep(resumed.staged)
        self._executor.restore(resumed.control, resumed.segments)
        self._epoch = resumed.epoch + 1
        self._results.update(resumed.results)
        self._earlier = sum(ingress.received for ingress in self._executor.ingress.values())

    def run(self) -> Report:
        """Work until the run ends in its way, or is stopped."""
        while not self._stop.is_set():
            if not self._turn():
                if self._over():
                    break
                self._rest()
            if time.monotonic() - self._committed >= self.interval:
                self._commit()
        if self.ending == "end" and not self._stop.is_set():
            self._end()
        self._commit()
        return self.report()

    def _over(self) -> bool:
        """Whether nothing will come that this run waits for."""
        if self.ending == "stopped":
            return all(source.finished for source in self._inputs.values())
        return not any(source.pending for source in self._inputs.values())

    def stop(self) -> None:
        """Let the run end after its present turn; everything so far is committed."""
        self._stop.set()

    def _turn(self) -> bool:
        """One chunk of every stream that has one; False when none had."""
        some = False
        for name, source in self._inputs.items():
            chunk = self._read(source)
            if chunk is None:
                self._silent.add(name)
                continue
            some = True
            self._silent.discard(name)
            self._executor.reject(name, chunk.malformed)
            rows = chunk.rows.drop_columns([ARRIVED]) if ARRIVED in chunk.rows.schema.names else chunk.rows
            self._executor.push(name, rows, self._clock.now())
            self._work()
        return some

    def _read(self, source: Input) -> Chunk | None:
        try:
            return source.read()
        except MillraceError:
            # The graph is at rest: all that came before the fault is worth keeping.
            self._commit()
            raise

    def _work(self) -> None:
        # What a bounded run has not read yet is unread, not silent: only a live run speaks for its sources.
        self._executor.run(self._clock, self._silent if self.ending == "stopped" else ())
        results = self._executor.take(self._clock.now())
        for name, batches in results.items():
            self._results[name] += sum(map(len, batches))
        self.outputs.deliver(results)

    def _rest(self) -> None:
        self._work()
        self._stop.wait(_NAP)

    def _end(self) -> None:
        for name in self._inputs:
            self._executor.end(name)
        self._work()

    def _commit(self) -> None:
        staged = self.outputs.stage(self._epoch)
        if self._checkpoint is not None:
            positions = {name: source.position() for name, source in self._inputs.items()}
            self._checkpoint.save(self._epoch, self._executor.save(), positions, staged, self._results)
        publish(staged)
        self._epoch += 1
        self._committed = time.monotonic()
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
        elapsed = time.monotonic() - self._started
        return Report.of(self._executor.metrics(), dict(self._results), elapsed, self._epoch, self._earlier)


def _open(stream: Stream, columns: list[str], feed: Iterable[Any] | None, position: Any) -> Input:
    if stream.replay is None:
        return open_input(stream, columns, feed, position)
    inner, given = (position["inner"], position["given"]) if position else (None, 0)
    return PacedInput(stream, open_input(stream, columns, feed, inner), given)
