"""Commitments of keys to windows (002 section 6.2, the key transition graph).

Rules:
- A key that is taken from the line commits to its newest window: EAGER, that has started; LAZY, that has fully arrived.
- READY: the committed window has rows that have not left. Such keys are served in turn, each until it has none. IDLE:
  they have all left, but more may come; a row that is in the window makes the key READY again.
- DONE: the window is closed and all its rows have left. Its closer is released; the next commitment of the key waits
  until what was released has been processed downstream.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Mask, Microseconds, Times
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.row_counts import LET_GO, RowCounts
from millrace.kernel.updates.staleness import WindowStaleness
from millrace.kernel.updates.windows.window_cells import OPEN, SHUT, UNDER_WAY, WindowCells
from millrace.kernel.updates.windows.window_rows import WindowRows

_FINISHING = -2
"""The turn of the first key whose window has been closed after all its rows had left; those of later ones are below."""


@dataclass(frozen=True)
class Release:
    """Rows released, each with the number of its commitment; and the closers behind them, with the ends of windows."""

    rows: pa.RecordBatch | None
    marks: Integers
    closers: Integers
    ends: Times


class Commitments:
    """Keys under processing, from their commitment until its closer has been processed downstream."""

    def __init__(
        self,
        geometry: WindowGeometry,
        cells: WindowCells,
        staleness: WindowStaleness,
        rows: WindowRows,
        counts: RowCounts,
        *,
        eager: bool,
    ) -> None:
        self.geometry = geometry
        self.eager = eager
        self.ready: deque[int] = deque()
        """Keys that are READY, in turn."""
        self.finishing: list[int] = []
        """Keys whose window has closed while they were IDLE."""
        self.under_way: list[int] = []
        """Keys whose closer has been released."""
        self._cells = cells
        self._staleness = staleness
        self._rows = rows
        self._counts = counts
        self._next_mark = 0
        self._next_turn = 0

    def __bool__(self) -> bool:
        return bool(self.ready or self.finishing or self.under_way)

    def idle(self, keys: Integers | slice) -> Mask:
        """Which keys are IDLE."""
        idle: Mask = (self._cells.opened[keys] == OPEN) & (self._cells.turn[keys] == NONE)
        return idle

    def commit(self, keys: Integers, now: Microseconds) -> None:
        """Commit keys to their newest windows; they are READY."""
        if not len(keys):
            return
        cells, geometry = self._cells, self.geometry
        cells.touch(keys)
        self._staleness.commit(keys, now)
        cells.before[keys] = cells.end[keys]
        cells.start[keys] = geometry.newest_starts(cells.last[keys]) if self.eager else cells.ready[keys]
        cells.end[keys] = cells.start[keys] + geometry.range
        cells.floor[keys] = cells.start[keys] + geometry.slide
        cells.mark[keys] = np.arange(self._next_mark, self._next_mark + len(keys))
        self._next_mark += len(keys)
        cells.opened[keys], cells.progress[keys], cells.place[keys] = OPEN, 0, NONE
        cells.ahead[keys] = END_OF_TIME if self.eager else cells.following[keys]
        cells.ahead_since[keys] = NONE
        held = self._rows.buffers.held(keys)
        inside = self._rows.inside(held.owners, held.times)
        cells.pending[keys] = np.bincount(held.places[inside], minlength=len(keys))
        self.make_ready(keys)

    def make_ready(self, keys: Integers) -> None:
        """Keys are READY, in this order."""
        self._cells.turn[keys] = np.arange(self._next_turn, self._next_turn + len(keys))
        self._next_turn += len(keys)
        self.ready.extend(keys.tolist())

    def serve(self, rows: int) -> tuple[pa.RecordBatch, Integers, Integers]:
        """At most `rows` rows of the keys that are READY, key by key, with their marks; and the keys that are IDLE."""
        cells = self._cells
        keys = np.array(list(islice(self.ready, rows)), np.int64)
        keys = keys[: int(np.searchsorted(np.cumsum(cells.pending[keys]), rows)) + 1]
        cells.touch(keys)
        held = self._rows.buffers.held(keys)
        owners = held.owners
        inside = self._rows.inside(owners, held.times)
        leaving = np.flatnonzero(inside & (held.entries >= cells.progress[owners]))[:rows]
        owners, entries = owners[leaving], held.entries[leaving]
        self._counts.add_all(LET_GO, held.ports[leaving][held.times[leaving] >= cells.before[owners]])
        found = self._rows.blocks.take(entries)
        np.maximum.at(cells.progress, owners, entries + 1)
        np.subtract.at(cells.pending, owners, 1)
        np.maximum.at(cells.gone, owners, held.times[leaving])
        served = keys[cells.pending[keys] == 0]
        for _ in range(len(served)):
            self.ready.popleft()
        cells.turn[served] = NONE
        self._rows.sweep(keys, held)
        return found, cells.mark[owners], served

    def finish(self, keys: Integers) -> None:
        """The windows of keys that are IDLE have closed."""
        self._cells.turn[keys] = _FINISHING - np.arange(self._next_turn, self._next_turn + len(keys))
        self._next_turn += len(keys)
        self._cells.touch(keys)
        self.finishing.extend(keys.tolist())

    def finished(self) -> Release:
        """The closers of windows that have closed while their keys were IDLE."""
        keys = np.array(self.finishing, np.int64)
        self.finishing.clear()
        return self.release(None, np.empty(0, np.int64), keys)

    def release(self, rows: pa.RecordBatch | None, marks: Integers, keys: Integers) -> Release:
        """Rows, and the closers of keys, which are DONE once this has been processed downstream."""
        cells = self._cells
        cells.touch(keys)
        cells.opened[keys], cells.turn[keys] = UNDER_WAY, NONE
        self.under_way.extend(keys.tolist())
        return Release(rows, marks, cells.mark[keys], cells.end[keys])

    def deliver(self, now: Microseconds) -> Integers:
        """All that was released has been processed downstream; the keys that are DONE."""
        keys, cells = np.array(self.under_way, np.int64), self._cells
        self.under_way.clear()
        cells.touch(keys)
        self._staleness.deliver(keys, cells.ahead_since[keys], now)
        cells.delivered[keys], cells.due[keys] = cells.start[keys], cells.ahead[keys]
        cells.opened[keys] = SHUT
        return keys

    def note(self) -> dict[str, int]:
        """What is saved besides cells."""
        return {"mark": self._next_mark, "turn": self._next_turn}

    def restore(self, note: dict[str, int]) -> None:
        """Go on from a note, with the cells restored."""
        self._next_mark, self._next_turn = note["mark"], note["turn"]
        some = slice(self._cells.count)
        turn = self._cells.turn[some]
        turns = np.flatnonzero(turn >= 0)
        self.ready = deque(turns[np.argsort(turn[turns])].tolist())
        finishing = np.flatnonzero((turn <= _FINISHING) & (turn != NONE))
        self.finishing = finishing[np.argsort(-turn[finishing])].tolist()
        self.under_way = np.flatnonzero(self._cells.opened[some] == UNDER_WAY).tolist()
