"""Replayed streams in scaled real time: each row is admitted when its arrival time has come.

Rules:
- All replayed streams of a run have one pace: the earliest arrival among them comes when the run begins, so that they
  keep their skew. A stream that is opened later takes the same pace.
- A row carries the moment at which it was due: its latency counts from there.
- The ETS of a replayed stream are made by the replayed time: see `Ingress.clock`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from millrace.connectors.stream_input import Chunk, StreamInput
from millrace.hosts.arrivals import arrivals, stamped
from millrace.kernel.clock import ReplayClock
from millrace.kernel.elements import NO_BOUND, Microseconds, Times
from millrace.kernel.progress.quarantine import UnreadRows
from millrace.plan.nodes.endpoints import Stream

Now = Callable[[], Microseconds]


class PacedInput:
    """An input that holds rows back until the clock, at the stream's speed, has reached their arrival."""

    def __init__(self, stream: Stream, source: StreamInput, now: Now, position: Any = None) -> None:
        self.stream = stream
        self.source = source
        self.clock: ReplayClock | None = None
        """The replayed time; None until it has started."""
        self._now = now
        self._chunk: Chunk | None = None
        self._times: Times = np.empty(0, np.int64)
        self._due: Times = np.empty(0, np.int64)
        self._unread: UnreadRows | None = None
        self._given = 0
        self._before = source.position()
        self._hold(position)

    def start(self, pace: ReplayClock) -> None:
        """Begin to admit rows, at a pace and the stream's own speed."""
        assert self.stream.replay is not None
        self.clock = replace(pace, speed=self.stream.replay.speed)
        self._due = self.clock.due(self._times)

    @property
    def first(self) -> Microseconds | None:
        """The arrival of the next row."""
        return int(self._times[self._given]) if self._chunk is not None and self._given < len(self._times) else None

    @property
    def due(self) -> Microseconds | None:
        """When there is something to read, by the clock; None when nothing is held back."""
        if self._chunk is None:
            return None
        return int(self._due[self._given]) if self._given < len(self._due) and not self._unread else self._now()

    @property
    def finished(self) -> bool:
        """True if all rows have been read and none will follow."""
        return self.source.finished and not self.pending

    @property
    def pending(self) -> bool:
        """True if rows are held back, or will come."""
        return self._chunk is not None or self.source.pending

    @property
    def more(self) -> bool:
        """True if another read may give more rows."""
        return self.source.more

    def read(self, limit: int | None = None) -> Chunk | None:
        """The rows that are due, or so many of them, each with the moment at which it was."""
        if self._chunk is None and not self._hold():
            return None
        now, due = self._now(), self.due
        if due is None or due > now:
            return None
        assert self._chunk is not None
        begin, end = self._given, int(self._due.searchsorted(now, side="right"))
        end = end if limit is None else min(end, begin + limit)
        chunk = self._chunk.part(begin, end)
        unread, self._unread = self._unread, None
        self._given = end
        if end == self._chunk.rows.num_rows:
            self._chunk = None
        return replace(chunk, rows=stamped(chunk.rows, self._due[begin:end]), unread=unread)

    def _hold(self, position: Any = None) -> bool:
        """Read the next chunk, without the rows of it that were read before."""
        self._before = self.source.position()
        chunk = self.source.read()
        if chunk is None:
            return False
        times = arrivals(self.stream, chunk.rows, int(self._times[-1]) if len(self._times) else NO_BOUND)
        assert times is not None
        self._times = times
        self._due = self.clock.due(times) if self.clock is not None else times
        self._given = position["given"] if position else 0
        self._unread = None if position and position["counted"] else chunk.unread
        self._chunk = chunk if self._given < chunk.rows.num_rows or self._unread else None
        return self._chunk is not None

    def position(self) -> dict[str, Any]:
        """Where the present chunk begins, how many rows of it were read, and if its malformed rows were counted."""
        if self._chunk is None:
            return {"inner": self.source.position(), "given": 0, "counted": False}
        return {"inner": self._before, "given": self._given, "counted": not self._unread}
