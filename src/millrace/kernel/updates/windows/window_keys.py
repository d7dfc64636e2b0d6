"""The rows of keys whose windows are committed to: which of them some window needs, and their state.

Rules:
- A row is needed while it may be in a window that waits, or has not left for the committed one. What is not needed is
  dropped at once, so what is held is what is needed, and a save need not say which rows these are.
- A row leaves for every commitment that it is in, and counts as let go once. One that is dropped without ever having
  left counts as superseded.
- State: cells that changed, newest wins; rows in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import TIME, Mask, Times
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_blocks import ENTRY, RowBlocks
from millrace.kernel.updates.policies.row_counts import SUPERSEDED, Counts
from millrace.kernel.updates.windows.window_buffers import Held, WindowBuffers
from millrace.kernel.updates.windows.window_cells import OPEN, WindowCells
from millrace.kernel.updates.windows.window_spans import Spans

PORT = "__port"
"""The input that a row came by, where there are several."""


class WindowKeys:
    """Keys with a window buffer each."""

    def __init__(self, spans: Spans, counts: Counts, buffers: WindowBuffers) -> None:
        self.spans = spans
        self.counts = counts
        self.buffers = buffers
        self.cells = WindowCells()
        self.rows = RowBlocks()
        self._forgotten: dict[int, tuple[int, int]] = {}
        """Entries that made room for a source of truth, with their keys and times, while a window might need them."""

    def inside(self, owners: Integers, times: Times) -> Mask:
        """Which rows are in the window that their key committed to last."""
        inside: Mask = (times >= self.cells.start[owners]) & (times < self.cells.end[owners])
        return inside

    def needed(self, owners: Integers, times: Times, entries: Integers) -> Mask:
        """Which rows are in a window that waits, or have not left for the committed one."""
        cells = self.cells
        pending = self.inside(owners, times) & (entries >= cells.progress[owners]) & (cells.opened[owners] == OPEN)
        needed: Mask = (times >= cells.floor[owners]) | pending
        return needed

    def left(self, owners: Integers, times: Times, entries: Integers) -> Mask:
        """Which rows have left at least once: for the committed window, or for the one before it."""
        left: Mask = self.inside(owners, times) & (entries < self.cells.progress[owners])
        return left | (times < self.cells.before[owners])

    def sweep(self, keys: Integers, held: Held | None = None) -> None:
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
        self.counts.add_all(SUPERSEDED, held.ports[unseen])
        self.rows.release(held.entries[gone])
        self.buffers.keep(held, needed)

    def can_yield(self, keys: Integers) -> Mask:
        """Of which keys the rows at their newest time can make room: none of them has left."""
        none_left: Mask = self.cells.last[keys] > self.cells.gone[keys]
        return none_left

    def yield_to(self, port: int, keys: Integers) -> None:
        """Drop the rows of other inputs at the newest time of some keys, all of which can make room."""
        if not len(keys):
            return
        held = self.buffers.held(keys)
        owners = held.owners
        same = (held.times == self.cells.last[owners]) & (held.ports != port)
        self.counts.add_all(SUPERSEDED, held.ports[same])
        self.rows.release(held.entries[same])
        waits = same & self.inside(owners, held.times) & (self.cells.opened[owners] == OPEN)
        np.subtract.at(self.cells.pending, owners[waits], 1)
        named = zip(owners[same].tolist(), held.times[same].tolist(), strict=True)
        self._forgotten.update(zip(held.entries[same].tolist(), named, strict=True))
        self.buffers.keep(held, ~same)

    # State

    def changes(self) -> list[Changes]:
        """What changed since the last save: cells, rows."""
        return [self.cells.changes(), self.rows.changes()]

    def forgotten(self) -> list[list[int]]:
        """The forgotten entries that blocks may still hold and windows would need, to be saved."""
        least = np.minimum(self.cells.floor, self.cells.start)
        self._forgotten = {entry: (key, time) for entry, (key, time) in self._forgotten.items() if time >= least[key]}
        return [[entry, key, time] for entry, (key, time) in self._forgotten.items()]

    def restore_keys(
        self, cells: Changes, rows: Changes, note: Mapping[str, Any], numbers: Callable[[pa.RecordBatch], Integers]
    ) -> None:
        """Go on from saved cells and rows; `numbers` gives the key of each row."""
        self.cells.restore(cells)
        self.buffers.grow(len(self.cells))
        self._forgotten = {entry: (key, time) for entry, key, time in note["forgotten"]}
        found = [self._live(batch, numbers) for table in rows.added.values() for batch in table.to_batches()]
        keys, entries, times, ports = (np.concatenate(each) for each in zip(*[_NOTHING, *found], strict=True))
        order = np.argsort(entries)
        self.rows.restore(rows, entries[order])
        self.buffers.append(keys[order], entries[order], times[order], ports[order])

    def _live(self, batch: pa.RecordBatch, numbers: Callable[[pa.RecordBatch], Integers]) -> tuple[Integers, ...]:
        """The rows of a saved block that windows need: keys, entries, times, inputs."""
        keys, entries, times = numbers(batch), batch.column(ENTRY).to_numpy(), batch.column(TIME).to_numpy()
        ports = batch.column(PORT).to_numpy() if PORT in batch.schema.names else np.zeros(len(keys), np.int64)
        live = self.needed(keys, times, entries) & ~np.isin(entries, list(self._forgotten))
        return keys[live], entries[live], times[live], ports[live]


_NOTHING = (np.empty(0, np.int64),) * 4
