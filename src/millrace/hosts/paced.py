"""Replayed streams in scaled real time: each row is let in when its arrival has come.

All replayed streams of a run share one origin, the earliest arrival among them, so that they keep their skew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.inputs import Chunk, Input
from millrace.hosts.arrivals import arrivals
from millrace.kernel.elements import NO_BOUND, Times
from millrace.plan.nodes import Stream


class PacedInput:
    """An input that holds rows back until the clock, at the stream's speed, has reached their arrival."""

    def __init__(self, stream: Stream, source: Input, given: int = 0) -> None:
        assert stream.replay is not None
        self.stream = stream
        self.speed = stream.replay.speed
        self._source = source
        self._rows: pa.RecordBatch | None = None
        self._malformed = 0
        self._times: Times = np.empty(0, np.int64)
        self._before = source.position()
        self._given = 0
        self._due: Callable[[], int] = lambda: NO_BOUND
        self._hold(given)

    def start(self, due: Callable[[], int]) -> None:
        """Begin to let rows in; `due` is the arrival that has come by now."""
        self._due = due

    @property
    def first(self) -> int | None:
        """The arrival of the next row."""
        return int(self._times[self._given]) if self._rows is not None else None

    @property
    def finished(self) -> bool:
        """Whether all rows have been let in and none will follow."""
        return self._source.finished and not self.pending

    @property
    def pending(self) -> bool:
        """Whether rows are held back."""
        return self._rows is not None

    def read(self) -> Chunk | None:
        """The rows that are due."""
        if self._rows is None and not self._hold(0):
            return None
        assert self._rows is not None
        due = max(self._given, int(np.searchsorted(self._times, self._due(), side="right")))
        rows = self._rows.slice(self._given, due - self._given)
        malformed, self._malformed = self._malformed, 0
        self._given = due
        if due == self._rows.num_rows:
            self._rows = None
        return Chunk(rows, malformed) if rows.num_rows or malformed else None

    def _hold(self, given: int) -> bool:
        """Take the next chunk to hand, less what was given of it before."""
        self._before = self._source.position()
        chunk = self._source.read()
        if chunk is None:
            return False
        times = arrivals(self.stream, chunk.rows, int(self._times[-1]) if len(self._times) else NO_BOUND)
        assert times is not None
        self._times, self._given = times, given
        self._malformed = 0 if given else chunk.malformed
        self._rows = chunk.rows if given < chunk.rows.num_rows else None
        return self._rows is not None

    def position(self) -> dict[str, Any]:
        """Where the chunk at hand begins, and how many rows of it have been given."""
        if self._rows is None:
            return {"inner": self._source.position(), "given": 0}
        return {"inner": self._before, "given": self._given}


def start_together(inputs: Iterable[PacedInput], now: Callable[[], int]) -> None:
    """Start replayed streams at one origin."""
    inputs = list(inputs)
    began = now()
    origin = min((first for each in inputs if (first := each.first) is not None), default=began)
    for each in inputs:
        each.start(partial(_due, origin, began, now, each.speed))


def _due(origin: int, began: int, now: Callable[[], int], speed: float) -> int:
    return origin + int((now() - began) * speed)
