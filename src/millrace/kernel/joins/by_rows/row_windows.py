"""The windows of a join by rows: the last rows of a side, or those of the last while.

Rules:
- A row has a rank: its number in its partition, in order of time, or its time itself. What is in a window at some
  instant has ranks that follow each other.
- Rows are taken up in order of time, all of one time together; then rows of the other side look at the window as it
  was at their times; then the bound passes them all.
- A run is sorted by the hash of the keys, then by partition, then by rank. All rows of one hash and partition are a
  unit: a range search finds those of them that are in the window.
- Rows that have left the window stay where they are until runs are merged, or until they are more than the others. So
  the cost of a row does not depend on how many are held, and a save writes what changed.
- Different keys may share a hash: the reader compares the keys themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, OrderedPairs, grown, ranges, stable_order, starts
from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Mask,
    Microseconds,
    Times,
    concat_tables,
    integer_column,
)
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.stores.keyed_runs import HASH
from millrace.kernel.stores.run_store import RowRun, RunStore

_NONE = np.empty(0, np.int64)
PARTITION = "__partition"
RANK = "__rank"

Found = tuple[pa.Table, Integers, Integers]
"""Rows, which of those that look find one, and where it stands."""

_PAIRS = 2**18
"""Rows that are found at once."""
_SPARE = 2**8
"""Rows that may have left the window before runs are written anew for it."""


class WindowRun(RowRun):
    """Rows sorted by hash, partition and rank, with an index of their units."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        hashes, partitions = integer_column(table, HASH), integer_column(table, PARTITION)
        begins = starts(hashes) | starts(partitions)
        self.hashes: Hashes = hashes[begins]
        """The hash of each unit, and its partition."""
        self.partitions = partitions[begins]
        self.index = OrderedPairs(np.cumsum(begins) - 1, integer_column(table, RANK))
        """The unit and the rank of each row."""

    @cached_property
    def ranks(self) -> Integers:
        """All ranks, in order."""
        return np.sort(integer_column(self.table, RANK))


class RowWindow:
    """Rows, found by the hash of their keys and the times of rows that look for them."""

    def __init__(self) -> None:
        self._store = RunStore(self._merged)

    def __len__(self) -> int:
        """How many rows are in the window."""
        raise AssertionError("a window says how many rows are in it")

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._store.nbytes

    def take(self, rows: pa.RecordBatch, hashes: Hashes) -> Mask:
        """Keep rows, sorted by time, of which there are some; which of them are in the window at their own time."""
        partitions, ranks = self._ranked(rows)
        table = pa.Table.from_batches([rows])
        for name, column in ((HASH, hashes), (PARTITION, partitions), (RANK, ranks)):
            table = table.append_column(name, pa.array(column))
        self._store.add(_sorted(table))
        mask: Mask = ranks >= self._span(partitions, integer_column(rows, TIME))[0]
        return mask

    def find(self, hashes: Hashes, times: Times) -> Iterator[Found]:
        """The rows with some hashes that are in the window at some times, a part at a time."""
        for run in self._store.runs:
            lows = np.searchsorted(run.hashes, hashes)
            counts = np.searchsorted(run.hashes, hashes, side="right") - lows
            looking, units = np.repeat(np.arange(len(hashes)), counts), ranges(lows, counts)
            firsts, ends = self._span(run.partitions[units], times[looking])
            begins = run.index.before(units, firsts)
            sizes = run.index.before(units, ends) - begins
            for part in _parts(sizes):
                yield run.table, np.repeat(looking[part], sizes[part]), ranges(begins[part], sizes[part])

    def passed(self, until: Microseconds) -> None:
        """No row will look at the window as it was before a bound."""
        if until == END_OF_TIME:
            self._store.clear()
        elif len(self._store) > 2 * len(self) + _SPARE:
            self._store.replace(self._store.runs)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._store.changes({})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._store.restore(changes, WindowRun)

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        """Each row's partition and rank."""
        raise AssertionError("a window says how its rows are ranked")

    def _span(self, partitions: Integers, times: Times) -> tuple[Integers, Integers]:
        """The first rank that is in the window of each partition at a time, and the first behind it."""
        raise AssertionError("a window says what is in it")

    def _alive(self, partitions: Integers, ranks: Integers) -> Mask:
        """Which rows are in the window after the last bound."""
        raise AssertionError("a window says what has left it")

    def _merged(self, runs: Sequence[WindowRun]) -> WindowRun | None:
        """The rows of some runs that are still in the window."""
        merged = concat_tables([run.table for run in runs])
        alive = merged.filter(pa.array(self._alive(integer_column(merged, PARTITION), integer_column(merged, RANK))))
        return _sorted(alive) if alive.num_rows else None


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
        return min(self._held, len(self._store))

    @property
    def nbytes(self) -> int:
        return self._store.nbytes + self._partitions.nbytes + int(self._counts.nbytes)

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        self._settle()
        partitions = self._partitions.numbers(rows)
        self._counts = grown(self._counts, len(self._partitions), 0)
        order = stable_order(partitions)
        ordered = partitions[order]
        begins = np.flatnonzero(starts(ordered))
        counts = np.diff(begins, append=len(ordered))
        self._fresh = OrderedPairs(ordered, integer_column(rows, TIME)[order])
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
        return combined([super().changes(), self._partitions.changes()], {})

    def restore(self, changes: Changes) -> None:
        rows, partitions = separated(changes)
        super().restore(rows)
        self._partitions.restore(partitions)
        # The last row of a partition is always there, so its rank says how many there were.
        self._counts = grown(_NONE, len(self._partitions), 0)
        for run in self._store.runs:
            np.maximum.at(self._counts, integer_column(run.table, PARTITION), integer_column(run.table, RANK) + 1)
        self._held = int(np.minimum(self._counts, self.rows).sum())


class LastWhile(RowWindow):
    """The rows that are at most `range` old; the rank of a row is its time."""

    def __init__(self, range: Microseconds) -> None:
        super().__init__()
        self.range = range
        self._floor = NO_BOUND
        """The least time of a row that a later row may still see."""

    def __len__(self) -> int:
        return sum([len(run) - int(np.searchsorted(run.ranks, self._floor)) for run in self._store.runs])

    def _ranked(self, rows: pa.RecordBatch) -> tuple[Integers, Integers]:
        return np.zeros(rows.num_rows, np.int64), integer_column(rows, TIME)

    def _span(self, partitions: Integers, times: Times) -> tuple[Integers, Integers]:
        return np.maximum(times, NO_BOUND + self.range) - self.range, times + 1

    def _alive(self, partitions: Integers, ranks: Integers) -> Mask:
        mask: Mask = ranks >= self._floor
        return mask

    def passed(self, until: Microseconds) -> None:
        self._floor = max(until, NO_BOUND + self.range) - self.range
        super().passed(until)

    def changes(self) -> Changes:
        return self._store.changes({"floor": self._floor})

    def restore(self, changes: Changes) -> None:
        super().restore(changes)
        self._floor = changes.note["floor"]


def _sorted(table: pa.Table) -> WindowRun:
    order = np.lexsort([integer_column(table, name) for name in (RANK, PARTITION, HASH)])
    return WindowRun(table.take(pa.array(order)).combine_chunks())


def _parts(sizes: Integers) -> Iterator[slice]:
    """Those that find something, in parts that find not too much at once."""
    total, place = np.cumsum(sizes), 0
    while place < len(sizes) and total[-1] > total[place] - sizes[place]:
        fitting = int(np.searchsorted(total, total[place] - sizes[place] + _PAIRS, side="right"))
        stop = max(fitting, place + 1)
        yield slice(place, stop)
        place = stop
