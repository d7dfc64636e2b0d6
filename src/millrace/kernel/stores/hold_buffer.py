"""Rows that leave in order of time, each when a bound has reached it (the hold buffer of 003 section 5)."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Microseconds, concat, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_FEW = 2**16
"""Rows are gathered until there are as many, so that single rows cost little, and what leaves at once is not kept."""


class HoldBuffer:
    """Rows in order of their time.

    >>> held = HoldBuffer()
    >>> held.add(Batch(pa.record_batch({"v": ["b", "a"], TIME: [7, 5]})))
    >>> held.least, len(held)
    (5, 2)
    >>> held.release(6).rows.column("v").to_pylist(), held.release(6)
    (['a'], None)
    """

    def __init__(self) -> None:
        self.least: Microseconds | None = None
        """The least time of all rows; None when there are none."""
        self._sorted = SortedRuns(TIME, concat_tables)
        self._gathered: list[Batch] = []
        self._rows = 0
        self._greatest: Microseconds = 0
        """The rows that have not been sorted yet: how many, and their greatest time."""

    def __len__(self) -> int:
        return self._rows + len(self._sorted)

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._sorted.nbytes + sum(int(batch.rows.nbytes) for batch in self._gathered)

    def add(self, batch: Batch) -> None:
        """Keep rows, in any order."""
        if self._rows >= _FEW:
            self._settle()
        times = batch.times
        least = greatest = int(times[0])
        if len(times) > 1:
            least, greatest = int(times.min()), int(times.max())
        if self.least is None or least < self.least:
            self.least = least
        if not self._gathered or greatest > self._greatest:
            self._greatest = greatest
        self._gathered.append(batch)
        self._rows += len(batch)

    def release(self, until: Microseconds) -> Batch | None:
        """Let go of the rows whose time is at most `until`, in order; later rows at that time may be released too."""
        if self.least is None or self.least > until:
            return None
        if not len(self._sorted) and self._greatest <= until:
            return self.release_all()
        self._settle()
        tables = self._sorted.between(None, until)
        self._sorted.drop(until)
        self.least = self._sorted.least()
        return Batch(concat_tables(tables).to_batches()[0]).sorted_by_time()

    def release_all(self) -> Batch | None:
        """Let go of all rows, in order; any may follow."""
        if self.least is None:
            return None
        if len(self._sorted):
            self._settle()
            rows = Batch(concat_tables(self._sorted.between(None, END_OF_TIME)).to_batches()[0])
            self._sorted.clear()
        else:
            rows = concat(self._gathered)
        self._gathered, self._rows, self.least = [], 0, None
        return rows.sorted_by_time()

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        return self._sorted.changes()

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments and the note of the last save."""
        self._sorted.restore(changes)
        self.least = self._sorted.least()

    def _settle(self) -> None:
        """Keep what has been gathered as one sorted run."""
        if self._gathered:
            self._sorted.add(pa.Table.from_batches([concat(self._gathered).rows]))
            self._gathered, self._rows = [], 0
