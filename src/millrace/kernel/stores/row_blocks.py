"""Row blocks: rows under entry numbers, taken and released in any order.

Rules:
- An entry number is never used again; it is good until the entry is released, wherever its row stands by then.
- A block is one segment: rows in the order of their entries, with the entries as a column. It is never changed.
- Rows that come a few at a time are gathered before they become a block, so that those that leave soon are in none.
- A block of which nothing is live is dropped whole. When more rows are dead than live, the blocks of mostly dead rows
  are rewritten, neighbours together. So memory is about twice what lives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_gather import compact, gathered, parts_of
from millrace.kernel.stores.run_store import RowRun, RunStore

ENTRY = "__entry"
"""The column of a saved block that holds the entry numbers."""
ENOUGH = 2**12
"""This many rows become a block; blocks of fewer live rows are rewritten with their neighbours."""
MOST = 2**16
"""Blocks are not merged into ones of more rows than this."""


class RowBlock(RowRun):
    """Rows in order of their entries, of which some are alive; all are at first."""

    def __init__(self, table: pa.Table, rows: pa.RecordBatch, entries: Integers, alive: Mask | None = None) -> None:
        super().__init__(table)
        self.rows = rows
        self.entries = entries
        self.first = int(entries[0])
        self.alive: Mask = np.ones(len(entries), np.bool_) if alive is None else alive
        self.live = len(entries) if alive is None else int(alive.sum())

    def __len__(self) -> int:
        return self.live

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.entries.nbytes + self.alive.nbytes)

    @property
    def dead(self) -> int:
        """How many rows are not alive."""
        return len(self.entries) - self.live

    def places(self, entries: Integers) -> Integers:
        """Where some of its entries stand."""
        if int(self.entries[-1]) - self.first == len(self.entries) - 1:
            return entries - self.first
        return np.searchsorted(self.entries, entries)

    def kept(self) -> tuple[pa.RecordBatch, Integers]:
        """The live rows and their entries."""
        if not self.dead:
            return self.rows, self.entries
        return self.rows.filter(pa.array(self.alive)), self.entries[self.alive]


class FreshRows:
    """The rows that came last, at most `room`, kept as they came, under entry numbers from `base` on.

    So a row that comes alone costs little, and one that leaves soon is never written anywhere.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.clear(0)

    def clear(self, base: int) -> None:
        """Drop everything; the next row is entry `base`."""
        self.base = base
        self.following = base
        """The entry of the next row."""
        self.live = 0
        self._batches: list[pa.RecordBatch] = []
        self._begins: list[int] = []
        """The first entry of each batch."""
        self._alive = np.ones(self.room, np.bool_)

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return sum(int(rows.nbytes) for rows in self._batches)

    def fits(self, count: int) -> bool:
        """True if there is room for some more rows."""
        return self.following + count - self.base <= self.room

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep rows that fit."""
        self._batches.append(rows)
        self._begins.append(self.following)
        self.following += rows.num_rows
        self.live += rows.num_rows

    def span(self, first: int, count: int) -> pa.RecordBatch | None:
        """Rows that follow each other, if they came together; without a copy."""
        owner = bisect_right(self._begins, first) - 1
        rows, start = self._batches[owner], first - self._begins[owner]
        return rows.slice(start, count) if start + count <= rows.num_rows else None

    def release(self, entries: Integers) -> None:
        """Release live entries, each named once."""
        places = entries - self.base
        assert bool(self._alive[places].all())
        self._alive[places] = False
        self.live -= len(entries)
        if not self.live:
            self.clear(self.following)

    def settled(self) -> tuple[pa.RecordBatch, Integers] | None:
        """The live rows as one batch, with their entries; they are no longer here then."""
        found = self._together() if self.live else None
        self.clear(self.following)
        return found

    def _together(self) -> tuple[pa.RecordBatch, Integers]:
        alive = self._alive[: self.following - self.base]
        begins = np.array(self._begins) - self.base
        useful = np.logical_or.reduceat(alive, begins)
        # Batches that are dead as a whole are not even put together: single rows often are.
        batches = [rows for rows, some in zip(self._batches, useful.tolist(), strict=True) if some]
        covered = np.repeat(useful, np.diff(begins, append=len(alive)))
        entries, alive = np.flatnonzero(covered) + self.base, alive[covered]
        rows = pa.concat_batches(batches) if len(batches) > 1 else compact(batches[0])
        return (rows, entries) if alive.all() else (rows.filter(pa.array(alive)), entries[alive])


class RowBlocks:
    """Rows of one schema, each under its entry number.

    >>> blocks = RowBlocks()
    >>> entries = blocks.add(pa.record_batch({"name": ["a", "b", "c"]}))
    >>> blocks.release(entries[:1])
    >>> blocks.take(entries[[2, 1]]).column("name").to_pylist(), len(blocks)
    (['c', 'b'], 2)
    """

    def __init__(self) -> None:
        self._store = RunStore(self._merged, whole=True, most=MOST)
        """The blocks, in order of their entries."""
        self._fresh = FreshRows(ENOUGH)
        """The rows that are in no block yet."""
        self._live = 0
        self._schema = pa.schema([])

    def __len__(self) -> int:
        return self._live

    @property
    def nbytes(self) -> int:
        """The memory of all rows, dead ones among them, and of their entries."""
        return self._store.nbytes + self._fresh.nbytes

    def add(self, rows: pa.RecordBatch) -> Integers:
        """Keep rows; their entry numbers."""
        count = rows.num_rows
        if count and not self._fresh.fits(count):
            self._settle()
        entries = np.arange(self._fresh.following, self._fresh.following + count)
        self._live += count
        self._schema = rows.schema
        if count > ENOUGH:
            self._store.add(_block(compact(rows), entries))
            self._fresh.clear(self._fresh.following + count)
        elif count:
            self._fresh.add(rows)
        return entries

    def take(self, entries: Integers) -> pa.RecordBatch:
        """The rows of some live entries, in the order in which they are named."""
        if not len(entries):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        found = self._span(entries)
        if found is not None:
            return found
        if int(entries.max()) >= self._fresh.base:
            self._settle()
        order, parts = self._by_block(entries)
        return gathered([(block.rows, block.places(some)) for block, some in parts], order)

    def release(self, entries: Integers) -> None:
        """Release live entries, each named once."""
        if not len(entries):
            return
        self._live -= len(entries)
        old = entries < self._fresh.base
        if not old.all():
            self._fresh.release(entries[~old])
        if old.any():
            self._release(entries[old])

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        return self._store.changes({"entry": self._fresh.following})

    def restore(self, changes: Changes, live: Integers) -> None:
        """Continue from saved segments (all of them, as `added`), the note of the last save, and the live entries."""
        live = np.sort(live)
        self._store.restore(changes, lambda table: _restored(table, live))
        self._fresh.clear(changes.note["entry"])
        self._remove_dead()
        self._live = len(self._store)
        self._schema = self._store.runs[-1].rows.schema if self._store.runs else pa.schema([])
        assert self._live == len(live)

    def _span(self, entries: Integers) -> pa.RecordBatch | None:
        """The rows of entries that follow each other in one place, without a copy; None if they do not."""
        first, last, count = int(entries[0]), int(entries[-1]), len(entries)
        if last - first != count - 1 or not (count == 1 or bool((entries[1:] > entries[:-1]).all())):
            return None
        if first >= self._fresh.base:
            return self._fresh.span(first, count)
        blocks = self._store.runs
        block = blocks[bisect_right(blocks, first, key=attrgetter("first")) - 1]
        if last > block.entries[-1]:
            return None
        return block.rows.slice(int(block.places(entries[:1])[0]), count)

    def _by_block(self, entries: Integers) -> tuple[Integers | None, list[tuple[RowBlock, Integers]]]:
        """Entries in order, by block; and that order, if they are not in it."""
        blocks = self._store.runs
        order, parts = parts_of(entries, np.array([block.first for block in blocks]))
        return order, [(blocks[owner], some) for owner, some in parts]

    def _release(self, entries: Integers) -> None:
        """Mark entries in blocks as dead, and drop what is no longer worth its memory."""
        for block, some in self._by_block(entries)[1]:
            places = block.places(some)
            assert bool(block.alive[places].all())
            block.alive[places] = False
            block.live -= len(some)
        self._remove_dead()
        if sum([block.dead for block in self._store.runs]) > self._live + ENOUGH:
            self._rewrite()

    def _remove_dead(self) -> None:
        for block in [block for block in self._store.runs if not block.live]:
            self._store.remove(block)

    def _settle(self) -> None:
        """Make a block of the fresh rows."""
        settled = self._fresh.settled()
        if settled is not None:
            self._store.add(_block(*settled))

    def _rewrite(self) -> None:
        """Write the live rows of blocks that are mostly dead anew, together with small neighbours."""
        groups: list[list[RowBlock]] = [[]]
        for block in self._store.runs:
            thin = block.dead >= block.live or block.live < ENOUGH
            if not thin or sum(map(len, groups[-1])) + block.live > MOST:
                groups.append([])
            if thin:
                groups[-1].append(block)
        for group in groups:
            if len(group) > 1 or (group and group[0].dead >= group[0].live):
                self._store.replace(group)

    def _merged(self, blocks: Sequence[RowBlock]) -> RowBlock:
        parts = [block.kept() for block in blocks]
        rows = parts[0][0] if len(parts) == 1 else pa.concat_batches([rows for rows, _ in parts])
        return _block(rows, np.concatenate([entries for _, entries in parts]))


def _block(rows: pa.RecordBatch, entries: Integers) -> RowBlock:
    """A block of rows with their entries, in order."""
    return RowBlock(pa.Table.from_batches([rows]).append_column(ENTRY, pa.array(entries)), rows, entries)


def _restored(table: pa.Table, live: Integers) -> RowBlock:
    entries: Integers = table.column(ENTRY).to_numpy()
    rows = table.drop_columns([ENTRY]).combine_chunks().to_batches()[0]
    at = np.minimum(np.searchsorted(live, entries), max(len(live) - 1, 0))
    alive = live[at] == entries if len(live) else np.zeros(len(entries), np.bool_)
    return RowBlock(table, rows, entries, alive)
