"""The rows that windows need: those of the committed window that have not left, and those of windows that wait.

Rules:
- The enqueue buffer holds the rows from `floor` on: of the window that waits and of later ones. The dequeue buffer
  holds what has not left of the committed window. They are one buffer: a row may be in both, and leaves it when neither
  needs it. So all rows that are held are needed, and a save need not list them.
- A row leaves for every commitment that it is in, and counts as released once. One that is dropped without ever having
  left counts as superseded.
- State: rows in blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import TIME, Mask, Times
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_blocks import ENTRY, RowBlocks
from millrace.kernel.updates.row_counts import SUPERSEDED, RowCounts
from millrace.kernel.updates.windows.window_buffers import BufferedRows, WindowBuffers
from millrace.kernel.updates.windows.window_cells import OPEN, WindowCells

PORT = "__port"
"""The input that a row came by, where there are several."""
_NOTHING = (np.empty(0, np.int64),) * 4


class WindowRows:
    """Rows in a window buffer per key."""

    def __init__(self, cells: WindowCells, counts: RowCounts) -> None:
        self.buffers = WindowBuffers()
        self.blocks = RowBlocks()
        self._cells = cells
        self._counts = counts
        self._forgotten: dict[int, tuple[int, int]] = {}
        """Entries that made room for a source of truth, with their keys and times, while a window might need them."""

    def __len__(self) -> int:
        return self.buffers.rows

    # Which rows

    def inside(self, owners: Integers, times: Times) -> Mask:
        """Which rows are in the window that their key committed to last."""
        inside: Mask = (times >= self._cells.start[owners]) & (times < self._cells.end[owners])
        return inside

    def pending(self, owners: Integers, times: Times, entries: Integers) -> Mask:
        """Which rows have not left for the committed window."""
        cells = self._cells
        pending = self.inside(owners, times) & (entries >= cells.progress[owners])
        return pending & (cells.opened[owners] == OPEN)

    def needed(self, owners: Integers, times: Times, entries: Integers) -> Mask:
        """Which rows are in a window that waits, or have not left for the committed one."""
        needed: Mask = (times >= self._cells.floor[owners]) | self.pending(owners, times, entries)
        return needed

    def left(self, owners: Integers, times: Times, entries: Integers) -> Mask:
        """Which rows have left at least once: for the committed window, or for the one before it."""
        left: Mask = self.inside(owners, times) & (entries < self._cells.progress[owners])
        return left | (times < self._cells.before[owners])

    # What becomes of them

    def store(self, port: int, keys: Integers, times: Times, rows: pa.RecordBatch) -> tuple[Integers, Mask]:
        """Keep the rows that some window needs: their keys, and which of them are in an open committed window."""
        cells = self._cells
        joins = self.inside(keys, times) & (cells.opened[keys] == OPEN)
        kept = (times >= cells.floor[keys]) | joins
        if not kept.all():
            self._counts.add(SUPERSEDED, port, int((~kept).sum()))
            keys, times, joins = keys[kept], times[kept], joins[kept]
            rows = rows.filter(pa.array(kept))
        self.buffers.append(keys, self.blocks.add(rows), times, np.full(len(keys), port))
        np.add.at(cells.pending, keys[joins], 1)
        return keys, joins

    def store_one(self, port: int, key: int, time: int, row: pa.RecordBatch) -> bool:
        """Keep one row if some window needs it; True if it is in an open committed window."""
        cells = self._cells
        joins = bool(cells.opened[key] == OPEN) and cells.start.item(key) <= time < cells.end.item(key)
        if not joins and time < cells.floor.item(key):
            self._counts.add(SUPERSEDED, port, 1)
            return False
        self.buffers.append_one(key, int(self.blocks.add(row)[0]), time, port)
        if joins:
            cells.pending[key] += 1
        return joins

    def sweep(self, keys: Integers, held: BufferedRows | None = None) -> None:
        """Drop the rows of keys that no window needs."""
        if not len(keys):
            return
        held = self.buffers.held(keys) if held is None else held
        owners = held.owners
        needed = self.needed(owners, held.times, held.entries)
        if needed.all():
            return
        gone = ~needed
        unseen = gone & ~self.left(owners, held.times, held.entries)
        self._counts.add_all(SUPERSEDED, held.ports[unseen])
        self.blocks.release(held.entries[gone])
        self.buffers.keep(held, needed)

    def can_yield(self, keys: Integers) -> Mask:
        """Of which keys the rows at their newest time can make room: none of them has left."""
        none_left: Mask = self._cells.last[keys] > self._cells.gone[keys]
        return none_left

    def yield_to(self, port: int, keys: Integers) -> None:
        """Drop the rows of other inputs at the newest time of some keys, all of which can make room."""
        if not len(keys):
            return
        held = self.buffers.held(keys)
        owners = held.owners
        same = (held.times == self._cells.last[owners]) & (held.ports != port)
        self._counts.add_all(SUPERSEDED, held.ports[same])
        self.blocks.release(held.entries[same])
        waits = same & self.inside(owners, held.times) & (self._cells.opened[owners] == OPEN)
        np.subtract.at(self._cells.pending, owners[waits], 1)
        named = zip(owners[same].tolist(), held.times[same].tolist(), strict=True)
        self._forgotten.update(zip(held.entries[same].tolist(), named, strict=True))
        self.buffers.keep(held, ~same)

    # State

    def note(self) -> list[list[int]]:
        """The forgotten entries that blocks may still hold and windows would need."""
        least = np.minimum(self._cells.floor, self._cells.start)
        self._forgotten = {entry: (key, time) for entry, (key, time) in self._forgotten.items() if time >= least[key]}
        return [[entry, key, time] for entry, (key, time) in self._forgotten.items()]

    def restore(self, saved: Changes, forgotten: Any, numbers: Callable[[pa.RecordBatch], Integers]) -> None:
        """Go on from saved rows, with the cells restored; `numbers` gives the key of each row."""
        self.buffers.grow(self._cells.count)
        self._forgotten = {entry: (key, time) for entry, key, time in forgotten}
        found = [self._live(batch, numbers) for table in saved.added.values() for batch in table.to_batches()]
        keys, entries, times, ports = (np.concatenate(each) for each in zip(*[_NOTHING, *found], strict=True))
        order = np.argsort(entries)
        self.blocks.restore(saved, entries[order])
        self.buffers.append(keys[order], entries[order], times[order], ports[order])

    def _live(self, batch: pa.RecordBatch, numbers: Callable[[pa.RecordBatch], Integers]) -> tuple[Integers, ...]:
        """The rows of a saved block that windows need: keys, entries, times, inputs."""
        keys, entries, times = numbers(batch), batch.column(ENTRY).to_numpy(), batch.column(TIME).to_numpy()
        ports = batch.column(PORT).to_numpy() if PORT in batch.schema.names else np.zeros(len(keys), np.int64)
        live = self.needed(keys, times, entries) & ~np.isin(entries, list(self._forgotten))
        return keys[live], entries[live], times[live], ports[live]
