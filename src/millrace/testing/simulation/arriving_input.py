"""The rows of a simulated stream: each arrives at its time, and is read in batches of any size."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import Chunk, Position
from millrace.kernel.elements import Microseconds, Times
from millrace.plan.nodes.endpoints import Stream
from millrace.testing.simulation.simulated_clock import SimulatedClock

_SIZES = (1, 1, 2, 3, 7, 20, 1_000)


class Arrivals:
    """A feed whose rows arrive in true time, in order of their arrival."""

    def __init__(self, rows: pa.Table, times: Times) -> None:
        self.rows, self.times = rows, times
        self.read = 0
        """How many rows the present run has read, with those that earlier runs had committed."""
        self.clock: SimulatedClock | None = None
        """None if all rows have arrived."""
        self.random = Random(0)

    def __iter__(self) -> Iterator[pa.Table]:
        yield self.rows

    def arrived(self) -> int:
        """How many rows have arrived by now."""
        return len(self.times) if self.clock is None else int(self.times.searchsorted(self.clock.time, side="right"))

    @property
    def due(self) -> Microseconds | None:
        """When the next row arrives; None if all have."""
        place = self.arrived()
        return int(self.times[place]) if place < len(self.times) else None

    def open(self, stream: Stream, schema: pa.Schema, position: Position | None) -> ArrivingInput:
        """The input at a position."""
        return ArrivingInput(self, stream, schema, int(position["rows"]) if position else 0)


class ArrivingInput:
    """Gives the rows that have arrived, some at a time."""

    pending = False
    more = True

    def __init__(self, feed: Arrivals, stream: Stream, schema: pa.Schema, given: int) -> None:
        self._feed, self._stream, self._schema = feed, stream, schema
        self._given = feed.read = given

    @property
    def finished(self) -> bool:
        """True if all rows have been given."""
        return self._given >= len(self._feed.times)

    def read(self) -> Chunk | None:
        """Some of the rows that have arrived; None if there are none."""
        count = min(self._feed.arrived() - self._given, self._feed.random.choice(_SIZES))
        if count <= 0:
            return None
        rows = as_rows(self._feed.rows.slice(self._given, count), self._schema, self._stream.name)
        self._given += count
        self._feed.read = self._given
        return Chunk(rows)

    def again(self, schema: pa.Schema, position: Position) -> ArrivingInput:
        """The same rows with other columns, from a position."""
        after = copy(self)
        after._schema, after._given = schema, int(position["rows"])
        return after

    def position(self) -> dict[str, Any]:
        """How many rows have been given."""
        return {"rows": self._given}


def earliest(feeds: list[Arrivals]) -> Microseconds | None:
    """When the next row of any stream arrives."""
    return min((due for each in feeds if (due := each.due) is not None), default=None)


def arrivals_of(times: list[int]) -> Times:
    """Times of arrival, which never go back."""
    found: Times = np.maximum.accumulate(np.array(times, np.int64)) if times else np.empty(0, np.int64)
    return found
