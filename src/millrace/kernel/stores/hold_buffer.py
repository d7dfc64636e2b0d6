"""The hold buffer: rows that wait for a bound, and leave in order of time (003 section 5).

Rows are gathered as they come and sorted when they are looked at, so that single rows cost little and rows that leave
at once are never kept. Rows of equal time leave in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Microseconds, concat, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_GATHERED = 2**16
"""So many rows are gathered at most before they are sorted."""


class HoldBuffer:
    """Rows in order of their time, which stands in the column `key` of the tables that `kept` makes of batches.

    >>> held = HoldBuffer()
    >>> held.add(Batch(pa.record_batch({"v": ["b", "a"], TIME: [7, 5]})))
    >>> held.least, len(held)
    (5, 2)
    >>> held.release(6).rows.column("v").to_pylist(), held.release(6)
    (['a'], None)
    """

    def __init__(self, key: str = TIME, kept: Callable[[Batch], pa.Table] | None = None) -> None:
        self.least: Microseconds | None = None
        """The least time of all rows; None when there are none."""
        self._kept = kept
        self._sorted = SortedRuns(key, concat_tables)
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
        if self._rows >= _GATHERED:
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

    def release(self, last: Microseconds) -> Batch | None:
        """Release the rows whose time is at most `last`, in order; None when there are none."""
        if self.least is None or self.least > last:
            return None
        if self._kept is None and not len(self._sorted) and self._greatest <= last:
            return self.release_all()
        released = Batch(concat_tables(self.between(None, last)).to_batches()[0])
        self.drop(last)
        return released.sorted_by_time()

    def release_all(self) -> Batch | None:
        """Release all rows, in order; any may follow. None when there are none."""
        if self.least is None:
            return None
        if len(self._sorted):
            rows = Batch(concat_tables(self.between(None, END_OF_TIME)).to_batches()[0])
            self._sorted.clear()
        else:
            rows = concat(self._gathered)
        self._gathered, self._rows, self.least = [], 0, None
        return rows.sorted_by_time()

    def between(self, first: Microseconds | None, last: Microseconds) -> list[pa.Table]:
        """The rows with first <= time <= last (first None: from the least on), a table per run."""
        self._settle()
        return self._sorted.between(first, last)

    def drop(self, last: Microseconds) -> None:
        """Release the rows with time <= last without giving them."""
        self._settle()
        self._sorted.drop(last)
        self.least = self._sorted.least()

    def least_from(self, first: Microseconds) -> Microseconds | None:
        """The least time from `first` on; None when there is none."""
        found = [table.column(self._sorted.key)[0].as_py() for table in self.between(first, END_OF_TIME)]
        return min(found, default=None)

    def least_after(self, count: int) -> Microseconds | None:
        """The least time when `count` rows have been released; None when none is left."""
        self._settle()
        return self._sorted.least_after(count)

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        return self._sorted.changes()

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments and the note of the last save."""
        self._sorted.restore(changes)
        self.least = self._sorted.least()

    def _settle(self) -> None:
        """Keep what has been gathered as one sorted run."""
        if self._gathered:
            batch = concat(self._gathered)
            self._sorted.add(pa.Table.from_batches([batch.rows]) if self._kept is None else self._kept(batch))
            self._gathered, self._rows = [], 0
