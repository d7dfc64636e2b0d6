"""The newest window of each key under update semantics (002 section 6.2): LAZY and EAGER.

Rules:
- EAGER: a row that starts a window makes its key wait, and empties the enqueue buffer of what is before the window.
  LAZY: a window that closes makes its key wait. Keys that are READY are served first; only when there is none the next
  key in line is committed.
- No row of a window that may still be committed is ever dropped: what is released of a window is all that was accepted.
- One row alone takes a way of its own, without arrays, to the same effect: columns cost as much for one row as for a
  hundred, and a query that is fed row by row would take a quarter longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Mask, Microseconds, Times
from millrace.kernel.state import Changes
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.row_counts import RowCounts
from millrace.kernel.updates.staleness import WindowStaleness
from millrace.kernel.updates.windows.commitments import Commitments, Release
from millrace.kernel.updates.windows.waiting_line import WaitingLine
from millrace.kernel.updates.windows.window_cells import OPEN, WindowCells
from millrace.kernel.updates.windows.window_closings import WindowClosings, firsts
from millrace.kernel.updates.windows.window_rows import WindowRows

_FEW = 2**12
"""Among so many keys the least is always looked for at once."""


class NewestWindows:
    """Rows by key, a line of keys that wait, and commitments; `tick` is None where the bound closes windows."""

    def __init__(self, geometry: WindowGeometry, counts: RowCounts, *, eager: bool, tick: int | None) -> None:
        self.geometry = geometry
        self.counts = counts
        self.eager = eager
        self.cells = WindowCells()
        self.staleness = WindowStaleness(self.cells)
        self.rows = WindowRows(self.cells, counts)
        self.line = WaitingLine(self.cells, geometry.slide)
        self.commitments = Commitments(geometry, self.cells, self.staleness, self.rows, counts, eager=eager)
        self.closings = WindowClosings(
            geometry, self.cells, self.rows, self.line, self.commitments, eager=eager, tick=tick
        )
        self._low = END_OF_TIME
        self._released = 0
        """Where the least window starts, and how many rows have left since it was looked for."""

    @property
    def due(self) -> bool:
        """True if something could leave now."""
        return bool(self.commitments) or len(self.line) > 0

    @property
    def bound(self) -> Microseconds:
        """The bound of the stream."""
        return self.closings.bound

    @property
    def wanted(self) -> Microseconds | None:
        """The least bound of the stream that may close something."""
        return self.closings.wanted

    @property
    def locations(self) -> tuple[int, int]:
        """How many locations are set aside, and how many are in use."""
        return self.rows.buffers.allocated, len(self.rows)

    @property
    def nbytes(self) -> int:
        """The memory of rows and cells."""
        return self.rows.blocks.nbytes + self.rows.buffers.nbytes + self.cells.nbytes

    def configure(self, policy: str, keep: float | None) -> None:
        """Follow another order of keys."""
        self.line.policy = policy

    def grow(self, keys: int) -> None:
        """Have room for this number of keys."""
        self.cells.grow(keys)
        self.rows.buffers.grow(keys)

    def can_yield(self, keys: Integers) -> Mask:
        """Of which keys the rows at their newest time can make room."""
        return self.rows.can_yield(keys)

    def yield_to(self, port: int, keys: Integers) -> None:
        """Drop the rows of other inputs at the newest time of some keys."""
        self.rows.yield_to(port, keys)

    # Enqueue

    def take(
        self, port: int, keys: Integers, times: Times, arrivals: Times, rows: pa.RecordBatch, cost: float | None
    ) -> None:
        """Rows of one input, all of them accepted; a row costs so much downstream, if that is known."""
        self.line.cost = cost
        if len(keys) == 1 and self.line.policy != "update_fifo":
            self._take_one(port, int(keys[0]), int(times[0]), int(arrivals[0]), rows)
            return
        cells, newest = self.cells, self.geometry.newest_starts(times)
        cells.note(port, keys, times, arrivals)
        self._low = min(self._low, int(times.min()))
        self.closings.note(keys, times, newest)
        if self.eager:
            self._start(keys, newest, arrivals)
        kept, joins = self.rows.store(port, keys, times, rows)
        self.commitments.make_ready(kept[firsts(kept, np.flatnonzero(joins & (cells.turn[kept] == NONE)))])
        if self.closings.tick is not None:
            self.closings.close_own(keys, times + self.closings.tick, arrivals)

    def _start(self, keys: Integers, newest: Times, arrivals: Times) -> None:
        """EAGER: rows that start a window make their key wait, and empty its enqueue buffer."""
        cells = self.cells
        starters = firsts(keys, np.flatnonzero((newest > cells.start[keys]) & (cells.place[keys] == NONE)))
        self.line.wait(keys[starters], arrivals[starters])
        owners = np.unique(keys) if len(keys) > 1 else keys
        before = cells.floor[owners]
        np.maximum.at(cells.floor, keys, newest)
        emptied = owners[cells.floor[owners] > before]
        if self.line.policy == "update_fifo":
            renewed = (newest == cells.floor[keys]) & np.isin(keys, emptied)
            self.line.renew(keys[firsts(keys, np.flatnonzero(renewed))])
        self.rows.sweep(emptied[self.rows.buffers.counts[emptied] > 0])

    def _take_one(self, port: int, key: int, time: int, arrival: Microseconds, row: pa.RecordBatch) -> None:
        cells = self.cells
        cells.touch(key)
        if cells.first[key] == NONE:
            cells.first[key] = arrival
        cells.updates[key] += 1
        cells.last[key] = max(time, cells.last.item(key))
        cells.port[key] = port
        self._low = min(self._low, time)
        newest = time - (time - self.geometry.origin) % self.geometry.slide
        self.closings.note_one(key, time, newest)
        if self.eager:
            self._start_one(key, newest, arrival)
        if self.rows.store_one(port, key, time, row) and cells.turn[key] == NONE:
            self.commitments.make_ready(np.array([key]))
        if self.closings.tick is not None:
            self.closings.close_one(key, time + self.closings.tick, arrival)

    def _start_one(self, key: int, newest: int, arrival: Microseconds) -> None:
        cells = self.cells
        if cells.place[key] == NONE and newest > cells.start.item(key):
            self.line.wait(np.array([key]), np.array([arrival]))
        if newest > cells.floor.item(key):
            cells.floor[key] = newest
            if self.rows.buffers.counts[key]:
                self.rows.sweep(np.array([key]))

    def close(self, until: Microseconds, moment: Microseconds, cost: float | None) -> None:
        """The bound of the stream has advanced; windows that close by it do so at a moment."""
        self.line.cost = cost
        self.closings.close(until, moment)

    # Dequeue

    def release(self, rows: int, now: Microseconds) -> Release | None:
        """Rows of one kind of step, at most `rows`: of committed windows, or of those that are committed now."""
        commitments = self.commitments
        if commitments.finishing:
            return commitments.finished()
        if not rows:
            return None
        if not commitments.ready:
            commitments.commit(self.line.take(self._worth(rows)), now)
        if not commitments.ready:
            return None
        found, marks, served = commitments.serve(rows)
        self._released += len(marks)
        self.line.released += len(marks)
        return commitments.release(found, marks, served[self.closings.closed(served)])

    def _worth(self, rows: int) -> int:
        """How many keys in line may fit into this number of rows: every window has at least one."""
        mean = len(self.rows) / max(len(self.line), 1)
        return max(1, min(rows, int(rows / max(mean, 1))))

    def rest(self, now: Microseconds) -> None:
        """All that was released has been processed downstream."""
        if self.commitments.under_way:
            self.line.stand(self.commitments.deliver(now))

    # What is known

    def low(self) -> Microseconds:
        """A bound on the rows that may still leave, and so on results made of them: the stream's bound, or less."""
        count = self.cells.count
        if self._low < self.bound and (not self.due or count <= _FEW or 2 * self._released > count):
            self._low, self._released = self._least_start(), 0
        return min(self.bound, self._low)

    def _least_start(self) -> Microseconds:
        """Where the first of the windows starts that are under processing, wait, or have begun."""
        cells, some = self.cells, slice(self.cells.count)
        waits = cells.place[some] != NONE
        starts = [cells.start[some][cells.opened[some] == OPEN]]
        if self.eager:
            starts.append(cells.floor[some][waits])
        else:
            begun = cells.following[some]
            starts += [cells.ready[some][waits], begun[begun != END_OF_TIME] - self.geometry.range]
        return min([int(each.min()) for each in starts if len(each)], default=END_OF_TIME)

    def next_wait(self, now: Microseconds) -> tuple[float, float, int]:
        """For how long the next key has waited, the time between two updates of it, and the rows of its window."""
        cells, ready = self.cells, self.commitments.ready
        key = ready[0] if ready else self.line.first()
        if key is None:
            return 0, 0, 0
        moments = (int(cells.queue_since[key]), int(cells.application_since[key]))
        waited = max([now - since for since in moments if since != NONE], default=0)
        interval = float(self.line.intervals(np.array([key]), now)[0])
        return waited, interval, int(cells.pending[key] or self.rows.buffers.counts[key])

    def check(self, most: int | None = None) -> None:
        """Assert what always holds, and, with `most`, that no window buffer holds more than `most` rows."""
        cells, keys, rows = self.cells, np.arange(self.cells.count), self.rows
        held = rows.buffers.held(keys)
        owned = held.owners, held.times, held.entries
        assert rows.needed(*owned).all(), "a row is held that no window needs"
        assert len(rows.blocks) == len(held.entries) == len(rows), "rows and locations differ"
        left = rows.left(*owned)
        assert int((~left).sum()) == self.counts.whole().waiting, "rows are not accounted for"
        assert (held.times <= cells.gone[held.owners])[left].all(), "a row has left that is newer than those that have"
        pending = np.bincount(held.places[rows.pending(*owned)], minlength=len(keys))
        assert (pending == cells.pending[keys]).all(), "pending rows differ"
        assert most is None or int(rows.buffers.counts.max()) <= most, f"a window buffer holds more than {most} rows"

    # State

    def note(self) -> dict[str, Any]:
        """What is saved besides cells and rows."""
        return {
            "bound": self.bound,
            "line": self.line.note(),
            "commitments": self.commitments.note(),
            "forgotten": self.rows.note(),
            "low": self._low,
            "left": self._released,
            "least": self.closings.least,
        }

    def changes(self) -> list[Changes]:
        """What changed since the last save: cells, rows."""
        return [self.cells.changes(), self.rows.blocks.changes()]

    def restore(
        self, stores: list[Changes], note: Mapping[str, Any], numbers: Callable[[pa.RecordBatch], Integers]
    ) -> None:
        """Go on from what was saved; `numbers` gives the key of each row."""
        cells, rows = stores
        self.cells.restore(cells)
        self.rows.restore(rows, note["forgotten"], numbers)
        self.commitments.restore(note["commitments"])
        self.line.restore(note["line"])
        # As they were known, not as they are: what is asked for and promised by them must be the same again.
        self.closings.bound, self.closings.least = note["bound"], note["least"]
        self._low, self._released = note["low"], note["left"]
