"""Fresh rows: the rows that came last, under entry numbers that follow each other, kept as they came.

So a row that comes alone costs little, and one that leaves soon is never written anywhere.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


class FreshRows:
    """At most `room` rows, with the entry numbers from `base` on."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.clear(0)

    def clear(self, base: int) -> None:
        """Let go of everything; the next row is entry `base`."""
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
        """Whether there is room for some more rows."""
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

    def release(self, entries: Numbers) -> None:
        """Let go of live entries, each named once."""
        places = entries - self.base
        assert bool(self._alive[places].all())
        self._alive[places] = False
        self.live -= len(entries)
        if not self.live:
            self.clear(self.following)

    def settled(self) -> tuple[pa.RecordBatch, Numbers] | None:
        """The live rows as one batch, with their entries; they are no longer here then."""
        found = self._together() if self.live else None
        self.clear(self.following)
        return found

    def _together(self) -> tuple[pa.RecordBatch, Numbers]:
        alive = self._alive[: self.following - self.base]
        begins = np.array(self._begins) - self.base
        useful = np.logical_or.reduceat(alive, begins)
        # Batches that are dead as a whole are not even put together: single rows often are.
        batches = [rows for rows, some in zip(self._batches, useful.tolist(), strict=True) if some]
        covered = np.repeat(useful, np.diff(begins, append=len(alive)))
        entries, alive = np.flatnonzero(covered) + self.base, alive[covered]
        rows = pa.concat_batches(batches) if len(batches) > 1 else compact(batches[0])
        return (rows, entries) if alive.all() else (rows.filter(pa.array(alive)), entries[alive])


def compact(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without the memory of others that they were cut from."""
    if rows.get_total_buffer_size() <= 2 * rows.nbytes:
        return rows
    return rows.take(pa.array(np.arange(rows.num_rows)))
