"""The rows of a window by keys, partition and rank, in runs that are searched and never changed.

Rules:
- A run is one segment, sorted by the hash of the keys, then by partition, then by rank. All rows of one hash and
  partition are a unit: what is in the window of them has ranks that follow each other, and is found by a range search.
- Rows that have left the window stay where they are until runs are merged, or until they are more than the others: so
  what a row costs does not depend on how many there are, and a save writes what changed.
- Different keys may share a hash: whoever reads compares the keys themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, OrderedPairs, ranges, starts
from millrace.kernel.elements import Mask, Times, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.keyed_runs import HASH
from millrace.kernel.stores.run_store import Run, RunStore

PARTITION = "__partition"
RANK = "__rank"

Span = Callable[[Integers, Times], tuple[Integers, Integers]]
"""The first rank that is in the window of a partition at a time, and the first behind it."""
Alive = Callable[[Integers, Integers], Mask]
"""Which rows, by partition and rank, are still in the window."""
Found = tuple[pa.Table, Integers, Integers]
"""Rows, which of those that look find one, and where it stands."""

_PAIRS = 2**18
"""Rows that are found at once."""
_SPARE = 2**8
"""Rows that may have left the window before runs are written anew for it."""


class WindowRun(Run):
    """Rows sorted by hash, partition and rank, with an index of their units."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        hashes, partitions = integers(table, HASH), integers(table, PARTITION)
        begins = starts(hashes) | starts(partitions)
        self.hashes: Hashes = hashes[begins]
        """The hash of each unit, and its partition."""
        self.partitions = partitions[begins]
        self.index = OrderedPairs(np.cumsum(begins) - 1, integers(table, RANK))
        """The unit and the rank of each row."""

    @cached_property
    def ranks(self) -> Integers:
        """All ranks, in order."""
        return np.sort(integers(self.table, RANK))


class WindowRuns:
    """Rows with columns `__hash`, `__partition` and `__rank`, found by them."""

    def __init__(self, span: Span, alive: Alive) -> None:
        self._span = span
        self._alive = alive
        self._store = RunStore(self._merged)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def nbytes(self) -> int:
        """The memory of the live segments."""
        return self._store.nbytes

    def tables(self) -> list[pa.Table]:
        """All rows, a table per run."""
        return [run.table for run in self._store.runs]

    def add(self, table: pa.Table) -> None:
        """Keep rows, in any order."""
        if table.num_rows:
            self._store.add(_sorted(table))

    def find(self, hashes: Hashes, times: Times) -> Iterator[Found]:
        """The rows with the hashes that somebody looks for who sees the window at some times, a part at a time."""
        for run in self._store.runs:
            lows = np.searchsorted(run.hashes, hashes)
            counts = np.searchsorted(run.hashes, hashes, side="right") - lows
            looking, units = np.repeat(np.arange(len(hashes)), counts), ranges(lows, counts)
            firsts, ends = self._span(run.partitions[units], times[looking])
            begins = run.index.before(units, firsts)
            sizes = run.index.before(units, ends) - begins
            for part in _parts(sizes):
                yield run.table, np.repeat(looking[part], sizes[part]), ranges(begins[part], sizes[part])

    def above(self, rank: int) -> int:
        """How many rows have at least a rank."""
        return sum([len(run) - int(np.searchsorted(run.ranks, rank)) for run in self._store.runs])

    def let_go(self, alive: int) -> None:
        """Of all rows so many are in the window; write those anew if they are few among the others."""
        if len(self) > 2 * alive + _SPARE:
            self._store.replace(self._store.runs)

    def clear(self) -> None:
        """Drop everything."""
        self._store.clear()

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._store.changes({})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._store.restore(changes, WindowRun)

    def _merged(self, runs: Sequence[WindowRun]) -> WindowRun | None:
        """The rows of some runs that are still in the window."""
        merged = concat_tables([run.table for run in runs])
        alive = merged.filter(pa.array(self._alive(integers(merged, PARTITION), integers(merged, RANK))))
        return _sorted(alive) if alive.num_rows else None


def _sorted(table: pa.Table) -> WindowRun:
    order = np.lexsort([integers(table, name) for name in (RANK, PARTITION, HASH)])
    return WindowRun(table.take(pa.array(order)).combine_chunks())


def integers(table: pa.Table | pa.RecordBatch, name: str) -> Integers:
    """A column of whole numbers."""
    found: Integers = table.column(name).to_numpy()
    return found


def _parts(sizes: Integers) -> Iterator[slice]:
    """Those that find something, in parts that find not too much at once."""
    total, place = np.cumsum(sizes), 0
    while place < len(sizes) and total[-1] > total[place] - sizes[place]:
        fitting = int(np.searchsorted(total, total[place] - sizes[place] + _PAIRS, side="right"))
        stop = max(fitting, place + 1)
        yield slice(place, stop)
        place = stop
