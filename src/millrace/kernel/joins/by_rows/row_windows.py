"""What a side of a join by rows keeps: its last rows, or those of the last while.

Rules:
- A row has a rank: its number in its partition, in order of time, or its time itself. What is in a window at some
  instant has ranks that follow each other.
- Rows are taken up in order of time, all of one time together; then others look at the window as it was at their
  times; then the bound passes them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, OrderedPairs, grown, stable_order, starts
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Mask, Microseconds, Times
from millrace.kernel.joins.by_rows.window_runs import PARTITION, RANK, Found, WindowRuns, integers
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.stores.keyed_runs import HASH

_NONE = np.empty(0, np.int64)


class RowWindow:
    """Rows, found by the hash of their keys and the time of those who look for them."""

    def __init__(self) -> None:
        self._rows = WindowRuns(self._span, self._alive)

    def __len__(self) -> int:
        raise AssertionError("a window says how many rows are in it")

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._rows.nbytes

    def take(self, rows: pa.RecordBatch, hashes: Hashes) -> Mask:
        """Keep rows, sorted by time, of which there are some; which of them are in the window at their own time."""
        partitions, ranks = self._ranked(rows)
        table = pa.Table.from_batches([rows])
        for name, column in ((HASH, hashes), (PARTITION, partitions), (RANK, ranks)):
            table = table.append_column(name, pa.array(column))
        self._rows.add(table)
        mask: Mask = ranks >= self._span(partitions, integers(rows, TIME))[0]
        return mask

    def find(self, hashes: Hashes, times: Times) -> Iterator[Found]:
        """The rows with some hashes that are in the window at some times."""
        return self._rows.find(hashes, times)

    def passed(self, until: Microseconds) -> None:
        """Nobody will look at the window as it was before a bound."""
        if until == END_OF_TIME:
            self._rows.clear()
        self._rows.let_go(len(self))

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._rows.changes()

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        self._rows.restore(changes)

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        """Each row's partition and rank."""
        raise AssertionError("a window says how its rows are ranked")

    def _span(self, partitions: Integers, times: Times) -> tuple[Integers, Integers]:
        """The first rank that is in the window of each partition at a time, and the first behind it."""
        raise AssertionError("a window says what is in it")

    def _alive(self, partitions: Integers, ranks: Integers) -> Mask:
        """Which rows are in the window after the last bound."""
        raise AssertionError("a window says what has left it")


class LastRows(RowWindow):
    """The last `rows` rows of each partition; the rank of a row is its number in its partition."""

    def __init__(self, rows: int, partition: Sequence[str] = ()) -> None:
        super().__init__()
        self.rows = rows
        self._partitions = KeyTable(partition)
        self._counts = _NONE
        """How many rows each partition had before the last ones were taken up."""
        self._held = 0
        """How many rows are in the window."""
        self._fresh = OrderedPairs(_NONE, _NONE)
        """The partitions and times of the last ones, and how many of these each partition has."""
        self._added: tuple[Integers, Integers] = (_NONE, _NONE)

    def __len__(self) -> int:
        return min(self._held, len(self._rows))

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._partitions.nbytes + int(self._counts.nbytes)

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        self._settle()
        partitions = self._partitions.numbers(rows)
        self._counts = grown(self._counts, len(self._partitions), 0)
        order = stable_order(partitions)
        ordered = partitions[order]
        begins = np.flatnonzero(starts(ordered))
        counts = np.diff(begins, append=len(ordered))
        self._fresh = OrderedPairs(ordered, integers(rows, TIME)[order])
        self._added = ordered[begins], counts
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) + np.repeat(self._counts[ordered[begins]] - begins, counts)
        return partitions, ranks

    def _span(self, partitions: Integers, times: Times) -> tuple[Integers, Integers]:
        before = self._fresh.before(partitions, np.full(len(times), NO_BOUND))
        ends = self._counts[partitions] + self._fresh.before(partitions, times + 1) - before
        return ends - self.rows, ends

    def _alive(self, partitions: Integers, ranks: Integers) -> Mask:
        mask: Mask = ranks >= self._counts[partitions] - self.rows
        return mask

    def passed(self, until: Microseconds) -> None:
        self._settle()
        super().passed(until)

    def _settle(self) -> None:
        """Count the rows that were taken up last."""
        partitions, added = self._added
        counts = self._counts[partitions]
        self._held += int((np.minimum(counts + added, self.rows) - np.minimum(counts, self.rows)).sum())
        self._counts[partitions] += added
        self._fresh, self._added = OrderedPairs(_NONE, _NONE), (_NONE, _NONE)

    def changes(self) -> Changes:
        self._settle()
        return combined([self._rows.changes(), self._partitions.changes()], {})

    def restore(self, changes: Changes) -> None:
        rows, partitions = separated(changes)
        self._rows.restore(rows)
        self._partitions.restore(partitions)
        # The last row of a partition is always there, so its rank says how many there were.
        self._counts = grown(_NONE, len(self._partitions), 0)
        for table in self._rows.tables():
            np.maximum.at(self._counts, integers(table, PARTITION), integers(table, RANK) + 1)
        self._held = int(np.minimum(self._counts, self.rows).sum())


class LastWhile(RowWindow):
    """The rows that are at most `range` old; the rank of a row is its time."""

    def __init__(self, range: Microseconds) -> None:
        super().__init__()
        self.range = range
        self._floor = NO_BOUND
        """The least time of a row that somebody may still see."""

    def __len__(self) -> int:
        return self._rows.above(self._floor)

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        return np.zeros(rows.num_rows, np.int64), integers(rows, TIME)

    def _span(self, partitions: Integers, times: Times) -> tuple[Integers, Integers]:
        return np.maximum(times, NO_BOUND + self.range) - self.range, times + 1

    def _alive(self, partitions: Integers, ranks: Integers) -> Mask:
        mask: Mask = ranks >= self._floor
        return mask

    def passed(self, until: Microseconds) -> None:
        self._floor = max(until, NO_BOUND + self.range) - self.range
        super().passed(until)

    def changes(self) -> Changes:
        changes = self._rows.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "floor": self._floor})

    def restore(self, changes: Changes) -> None:
        self._rows.restore(changes)
        self._floor = changes.note["floor"]
