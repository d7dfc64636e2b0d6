"""The reading of streams: rows are taken from inputs, and pushed into the kernel with their arrival.

Rules:
- All that there is of a stream is read at once, at most a chunk. A stream whose rows still wait for the kernel is not
  read, and not silent.
- Where functions of a user run, a stream is read only as far as they keep up (see kernel/graph/step_size.py), so that
  a commit, a change and other queries need not wait for them.
- Pushed rows arrive when they are pushed: latency and staleness count from there, and that is their internal time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from millrace.connectors.partitioned_input import PartitionedInput
from millrace.connectors.push_pull import PolledInput
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk
from millrace.errors import MillraceError
from millrace.hosts.arrivals import stamped
from millrace.hosts.checkpoint.checkpoint import has_ended
from millrace.hosts.local.intake import RunInput
from millrace.hosts.local.pace import Now, PacedInput
from millrace.kernel.elements import ARRIVED, END_OF_TIME, PARTITION, Batch, integer_column
from millrace.kernel.graph.executor import Executor

_MOMENT = 10_000
"""Microseconds for which one stream is read, if its rows come in small pieces."""
_FEW = 1_024
"""Rows of a stream that a turn reads before it reads the next one, if they come in small pieces."""


class StreamReader:
    """Reads streams for an executor; `keep` is called before a fault of an input is raised.

    Inputs are read inside `waiting`: their rows may be long in coming.
    """

    def __init__(
        self,
        executor: Executor,
        now: Now,
        keep: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        live: bool,
    ) -> None:
        self.executor = executor
        self.silent: dict[str, int] = {}
        """The streams that had nothing when they were last read, and when that was."""
        self.dry: set[str] = set()
        """Those that had not even an empty chunk."""
        self.chunks = 0
        """How many chunks have been pushed."""
        self._now, self._keep, self._waiting, self._live = now, keep, waiting, live
        self._expected: dict[str, int] = {}
        """How many partitions of its source each stream waits for."""

    def forget_all_but(self, streams: Container[str]) -> None:
        """Keep what is known of these streams alone."""
        self.silent = {name: looked for name, looked in self.silent.items() if name in streams}

    def take_all(self, name: str, source: RunInput) -> bool:
        """Push what there is of a stream, small pieces at most for a moment; True if it held rows, or may hold some."""
        limit = self.executor.step_size.allowance(name)
        if limit == 0 or self.executor.edges.backlog(name) > CHUNK_ROWS:
            self.silent.pop(name, None)
            return True
        ingress, until = self.executor.ingress[name], self._now() + _MOMENT
        most = ingress.received + (_FEW if limit is None else min(_FEW, limit))
        some = taken = self.take(name, source, limit)
        while taken and source.more and self._now() < until and ingress.received < most:
            taken = self.take(name, source, None if limit is None else most - ingress.received)
        return some

    def take(self, name: str, source: RunInput, limit: int | None = None) -> bool:
        """Push the next chunk of a stream, or so many rows of it; True if it held rows."""
        looked = self._now()
        chunk = self._read(source, limit)
        if isinstance(source, PartitionedInput):
            self._expect(name, source)
        (self.dry.add if chunk is None else self.dry.discard)(name)
        if chunk is None or not (chunk.rows.num_rows or chunk.malformed):
            self._note_silence(name, source.settled if isinstance(source, PartitionedInput) else looked)
            return False
        self.silent.pop(name, None)
        self.chunks += 1
        if chunk.rows.num_rows and self.executor.ingress[name].bound == END_OF_TIME:
            raise has_ended(name, f"{chunk.rows.num_rows} rows more")
        if chunk.unread:
            self.executor.edges.reject(name, chunk.unread, looked)
        self._push(name, chunk, paced=isinstance(source, PacedInput))
        if self._live and (ingress := self.executor.ingress[name]).contract.partitions:
            # Rows that are pushed come in the order of their arrival; other sources are as far as their rows say.
            arrived = chunk.arrived
            if isinstance(source, PartitionedInput):
                ingress.read_until = source.settled
            else:
                ingress.read_until = (
                    ingress.reached(looked) if arrived is None or not len(arrived) else int(arrived[-1]) - 1
                )
        return True

    def _expect(self, name: str, source: PartitionedInput) -> None:
        """Let the bound of a stream wait for all partitions of its source."""
        known, partitions = self._expected.get(name, 0), source.partitions
        if len(partitions) > known and self.executor.ingress[name].contract.partitions == (PARTITION,):
            self.executor.ingress[name].order.expect((partition,) for partition in partitions)
            self._expected[name] = len(partitions)

    def _note_silence(self, name: str, looked: int | None) -> None:
        """A stream had nothing to read; nothing is known of its silence where its source cannot say."""
        if looked is None:
            self.silent.pop(name, None)
        else:
            self.silent[name] = looked

    def take_begun(self, inputs: Mapping[str, RunInput]) -> None:
        """Push the rest of what a source gave at once and cannot give again."""
        for name, source in inputs.items():
            chunk = source.read_begun() if isinstance(source, PolledInput) else None
            if chunk is not None:
                self._push(name, chunk, paced=False)

    def _push(self, name: str, chunk: Chunk, *, paced: bool) -> None:
        """Push rows with their arrival, which those of a paced input have already."""
        now, rows, ingress = self._now(), chunk.rows, self.executor.ingress[name]
        if not paced:
            rows = stamped(rows, np.full(rows.num_rows, now) if chunk.arrived is None else chunk.arrived)
        elif rows.num_rows and ingress.clock is not None:
            # Silence counts from when the last row was due, not from when the host came to read it.
            now = int(integer_column(rows, ARRIVED)[-1])
        if chunk.arrived is None or ingress.contract.kind == "external":
            self.executor.push(name, rows, now, chunk.locate)
        else:
            stamped_ahead = Batch(ingress.stamped_ahead(rows, chunk.arrived))
            self.executor.edges.push_stamped_ahead(name, stamped_ahead, now, chunk.locate)

    def _read(self, source: RunInput, limit: int | None) -> Chunk | None:
        try:
            with self._waiting():
                return source.read(limit)
        except MillraceError:
            # All that came before the fault is worth keeping.
            self._keep()
            raise
