"""Row blocks: rows under entry numbers, taken and released in any order.

Rules:
- An entry number is never used again; it is good until the entry is released, wherever its row stands by then.
- A block is one segment: rows in the order of their entries, with the entries as a column. It is never changed.
- Rows that come a few at a time are gathered before they become a block, so that those that leave soon are in none.
- A block of which nothing is live is dropped whole. When more rows are dead than live, the blocks of mostly dead rows
  are rewritten, neighbours together; small blocks are merged as they are made. So a row is copied a logarithmic number
  of times, memory is about twice what lives, and a save writes what changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.elements import Mask
from millrace.kernel.state import Changes, Segments
from millrace.kernel.stores.fresh_rows import FreshRows, compact
from millrace.kernel.stores.row_gather import gathered, parts_of

Numbers = npt.NDArray[np.int64]

ENTRY = "__entry"
"""The column of a saved block that holds the entry numbers."""
ENOUGH = 2**12
"""This many rows become a block; blocks of fewer live rows are rewritten with their neighbours."""
MOST = 2**16
"""Blocks are not merged into ones of more rows than this."""


@dataclass(eq=False)
class _Block:
    number: int
    rows: pa.RecordBatch
    entries: Numbers
    alive: Mask
    live: int

    @property
    def dead(self) -> int:
        return len(self.entries) - self.live

    def places(self, entries: Numbers) -> Numbers:
        """Where some of its entries stand."""
        first, count = int(self.entries[0]), len(self.entries)
        if int(self.entries[-1]) - first == count - 1:
            return entries - first
        return np.searchsorted(self.entries, entries)

    def kept(self) -> tuple[pa.RecordBatch, Numbers]:
        """The live rows and their entries."""
        if not self.dead:
            return self.rows, self.entries
        return self.rows.filter(pa.array(self.alive)), self.entries[self.alive]


class RowBlocks:
    """Rows of one schema, each under its entry number.

    >>> blocks = RowBlocks()
    >>> entries = blocks.add(pa.record_batch({"name": ["a", "b", "c"]}))
    >>> blocks.release(entries[:1])
    >>> blocks.take(entries[[2, 1]]).column("name").to_pylist(), len(blocks)
    (['c', 'b'], 2)
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._firsts: list[int] = []
        """The first entry of each block, in order."""
        self._fresh = FreshRows(ENOUGH)
        """The rows that are in no block yet."""
        self._segments = Segments()
        self._live = 0
        self._dead = 0
        """How many rows of blocks are not live."""
        self._schema = pa.schema([])

    def __len__(self) -> int:
        return self._live

    @property
    def nbytes(self) -> int:
        """The memory of all rows, dead ones among them, and of their entries."""
        blocks = sum(int(block.rows.nbytes + block.entries.nbytes + block.alive.nbytes) for block in self._blocks)
        return blocks + self._fresh.nbytes

    def add(self, rows: pa.RecordBatch) -> Numbers:
        """Keep rows; their entry numbers."""
        count = rows.num_rows
        if count and not self._fresh.fits(count):
            self._settle()
        entries = np.arange(self._fresh.following, self._fresh.following + count)
        self._live += count
        self._schema = rows.schema
        if count > ENOUGH:
            self._append(compact(rows), entries)
            self._fresh.clear(self._fresh.following + count)
        elif count:
            self._fresh.add(rows)
        return entries

    def take(self, entries: Numbers) -> pa.RecordBatch:
        """The rows of some live entries, in the order in which they are named."""
        if not len(entries):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        found = self._span(entries)
        if found is not None:
            return found
        if int(entries.max()) >= self._fresh.base:
            self._settle()
        order, parts = parts_of(entries, np.array(self._firsts))
        pieces = [(self._blocks[owner].rows, self._blocks[owner].places(some)) for owner, some in parts]
        return gathered(pieces, order)

    def release(self, entries: Numbers) -> None:
        """Let go of live entries, each named once."""
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
        return self._segments.changes({"next": self._segments.following, "entry": self._fresh.following})

    def restore(self, changes: Changes, live: Numbers) -> None:
        """Go on from saved segments (all of them, as `added`), the note of the last save, and the entries that live."""
        self._segments.restore(changes.added, changes.note["next"])
        self._fresh.clear(changes.note["entry"])
        live = np.sort(live)
        self._put([_restored(number, table, live) for number, table in self._segments.live.items()])
        self._live = sum(block.live for block in self._blocks)
        self._schema = self._blocks[-1].rows.schema if self._blocks else pa.schema([])
        assert self._live == len(live)

    def _span(self, entries: Numbers) -> pa.RecordBatch | None:
        """The rows of entries that follow each other in one place, without a copy; None if they do not."""
        first, last, count = int(entries[0]), int(entries[-1]), len(entries)
        if last - first != count - 1 or not (count == 1 or bool((entries[1:] > entries[:-1]).all())):
            return None
        if first >= self._fresh.base:
            return self._fresh.span(first, count)
        block = self._blocks[bisect_right(self._firsts, first) - 1]
        if last > block.entries[-1]:
            return None
        return block.rows.slice(int(block.places(entries[:1])[0]), count)

    def _release(self, entries: Numbers) -> None:
        """Mark entries in blocks as dead, and let go of what is no longer worth its memory."""
        for owner, some in parts_of(entries, np.array(self._firsts))[1]:
            block = self._blocks[owner]
            places = block.places(some)
            assert bool(block.alive[places].all())
            block.alive[places] = False
            block.live -= len(some)
        self._dead += len(entries)
        if not all(block.live for block in self._blocks):
            self._put(self._blocks)
        if self._dead > self._live + ENOUGH:
            self._rewrite()

    def _put(self, blocks: Sequence[_Block]) -> None:
        """Have these blocks, in any order, without those of which nothing lives."""
        for block in blocks:
            if not block.live:
                self._segments.remove(block.number)
        self._blocks = sorted([block for block in blocks if block.live], key=lambda block: int(block.entries[0]))
        self._firsts = [int(block.entries[0]) for block in self._blocks]
        self._dead = sum(block.dead for block in self._blocks)

    def _settle(self) -> None:
        """Make a block of the fresh rows."""
        settled = self._fresh.settled()
        if settled is not None:
            self._append(*settled)

    def _append(self, rows: pa.RecordBatch, entries: Numbers) -> None:
        """Add a block behind all others, merged with the small ones that stand last."""
        parts, count = [(rows, entries)], len(entries)
        while self._blocks and self._blocks[-1].live <= min(2 * count, MOST - count):
            block = self._blocks.pop()
            self._firsts.pop()
            self._segments.remove(block.number)
            self._dead -= block.dead
            parts.insert(0, block.kept())
            count += block.live
        self._blocks.append(self._made(parts))
        self._firsts.append(int(self._blocks[-1].entries[0]))

    def _made(self, parts: Sequence[tuple[pa.RecordBatch, Numbers]]) -> _Block:
        """A block of some rows and their entries, in order."""
        rows = parts[0][0] if len(parts) == 1 else pa.concat_batches([rows for rows, _ in parts])
        entries = np.concatenate([entries for _, entries in parts])
        table = pa.Table.from_batches([rows]).append_column(ENTRY, pa.array(entries))
        return _Block(self._segments.add(table), rows, entries, np.ones(len(entries), np.bool_), len(entries))

    def _rewrite(self) -> None:
        """Write the live rows of blocks that are mostly dead anew, together with small neighbours."""
        blocks: list[_Block] = []
        group: list[_Block] = []
        for block in self._blocks:
            thin = block.dead >= block.live or block.live < ENOUGH
            if group and (not thin or sum(each.live for each in group) + block.live > MOST):
                blocks.append(self._rewritten(group))
                group = []
            (group if thin else blocks).append(block)
        if group:
            blocks.append(self._rewritten(group))
        self._put(blocks)

    def _rewritten(self, group: Sequence[_Block]) -> _Block:
        if len(group) == 1 and group[0].dead < group[0].live:
            return group[0]
        for block in group:
            self._segments.remove(block.number)
        return self._made([block.kept() for block in group])


def _restored(number: int, table: pa.Table, live: Numbers) -> _Block:
    entries: Numbers = table.column(ENTRY).to_numpy()
    rows = table.drop_columns([ENTRY]).combine_chunks().to_batches()[0]
    at = np.minimum(np.searchsorted(live, entries), max(len(live) - 1, 0))
    alive = live[at] == entries if len(live) else np.zeros(len(entries), np.bool_)
    return _Block(number, rows, entries, alive, int(alive.sum()))
