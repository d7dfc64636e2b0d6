"""The state of a chronicle join: the rows of each key in the order of their times, taken from the front.

Rules:
- What is taken or too old is the front of its queue, and what comes later stands behind it. So of the rows of a key in
  a run only the first that is left is remembered.
- Which rows of a run have been taken is saved as their numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import same_keys, without_null
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers
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
from millrace.kernel.joins.sequences.fifo_runs import ENTRY, FifoRun, Served, serve
from millrace.kernel.joins.sequences.key_time_store import ENOUGH, KeyTimes, KeyTimeStore
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.sorted_runs import SortedRuns


class KeyedFifo(KeyTimeStore[FifoRun]):
    """Rows by their columns `keys`, taken by keys and time, at most `within` before it.

    Of equal times the row that was added first is the first, or else the least by its `columns`.
    """

    gather = 2**16

    def __init__(
        self, keys: Sequence[str], columns: Sequence[str], within: int | None = None, *, by_entry: bool = True
    ) -> None:
        super().__init__(keys, None if by_entry else columns, within)
        self._entered = 0
        self._taken = SortedRuns(ENTRY, concat_tables)
        """The numbers of rows that have been taken, but stand in a segment."""
        self._unsaved: list[Integers] = []
        self._expired_until: Microseconds = NO_BOUND

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._taken.nbytes

    def take(self, keys: Sequence[pa.Array], times: Times) -> tuple[Integers, pa.Table | None]:
        """The first row left for each of some keys and times, in their order, as its place in a table; -1 for none.

        The rows that ask (the comers) are in order of time, also from one call to the next.
        """
        if len(self._recent) and self._recent.least <= int(times.max()):
            self.settle()
        valid = without_null(keys)
        comers = np.arange(len(times)) if valid is None else np.flatnonzero(valid)
        hashes = hashing.hashes(keys, len(times)).view(np.int64)
        served = self._serve(hashes, times, comers)
        wrong = self._of_other_keys(served, keys)
        alike = np.isin(hashes[comers], hashes[wrong]) if len(wrong) else np.zeros(len(comers), np.bool_)
        if len(wrong):
            served = self._serve(hashes, times, comers[~alike])
        self._unsaved += served.take()
        parts = [served, self._parted(keys, hashes, times, comers[alike])] if len(wrong) else [served]
        self._rewrite_spent()
        return _together(parts, len(times))

    def changes(self) -> Changes:
        self.settle()
        taken = sum([run.gone for run in self._store.runs])
        unsaved = sum([len(each) for each in self._unsaved])
        if len(self._taken) + unsaved > 2 * taken + ENOUGH:
            self._taken.clear()
            self._unsaved = [run.entries_gone() for run in self._store.runs]
        if self._unsaved:
            self._taken.add(pa.table({ENTRY: np.concatenate(self._unsaved)}))
            self._unsaved = []
        note = {"floor": self.floor, "entered": self._entered}
        return combined([self._store.changes(note), self._taken.changes()], {})

    def restore(self, changes: Changes) -> None:
        rows, taken = separated(changes)
        super().restore(rows)
        self._entered = rows.note["entered"]
        self._taken.restore(taken)
        numbers = [integer_column(table, ENTRY) for table in self._taken.between(None, END_OF_TIME)]
        for run in self._store.runs:
            if numbers:
                run.lose(np.flatnonzero(np.isin(run.entries, np.concatenate(numbers))))
            run.expire(self._oldest)

    def _serve(self, hashes: Hashes, times: Times, comers: Integers) -> Served:
        return serve(self._store.runs, hashes[comers], times[comers], self.within, self.columns).of(comers)

    def _of_other_keys(self, served: Served, keys: Sequence[pa.Array]) -> Integers:
        """The comers that would be given a row which only shares the hash of their keys."""
        if served.table is None:
            return served.comers
        own = [key.take(pa.array(served.comers)) for key in keys]
        same = same_keys(own, [served.table.column(name) for name in self.keys])
        return served.comers[:0] if same is None else served.comers[~same]

    def _parted(self, keys: Sequence[pa.Array], hashes: Hashes, times: Times, comers: Integers) -> Served:
        """Serve those whose keys share a hash with others: by the keys themselves, in queues of their own."""
        near = concat_tables([run.pull(hashes[comers]) for run in self._store.runs])
        self._unsaved.append(integer_column(near, ENTRY))
        own, run = self._by_keys([key.take(pa.array(comers)) for key in keys], near)
        served = serve([run], own, times[comers], self.within, self.columns).of(comers)
        served.take()
        rest = run.live()[0].drop_columns([ENTRY])
        # They get new numbers, for under the old ones they have been taken.
        self._keep(rest, hashes_of(rest, self.keys), integer_column(rest, TIME))
        return served

    @property
    def _oldest(self) -> Microseconds:
        """Rows before this time are too old for all that may come."""
        return NO_BOUND if self.within is None else max(self.floor - self.within, NO_BOUND)

    def _keep(self, table: pa.Table, hashes: Hashes, times: Times) -> None:
        """Keep rows as a run, numbered as they stand."""
        entries = np.arange(self._entered, self._entered + len(times))
        self._entered += len(times)
        super()._keep(table.append_column(ENTRY, pa.array(entries)), hashes, times)

    def _run(self, table: pa.Table, index: KeyTimes) -> FifoRun:
        return FifoRun(table, index, expires=self.within is not None)

    def _needed(self, table: pa.Table, order: Integers, index: KeyTimes) -> Mask:
        needed: Mask = index.times >= self._oldest
        return needed

    def _rewrite_spent(self) -> None:
        oldest = self._oldest
        if oldest > self._expired_until:
            self._expired_until = oldest
            for run in self._store.runs:
                run.expire(oldest)
        super()._rewrite_spent()


def _together(parts: Sequence[Served], count: int) -> tuple[Integers, pa.Table | None]:
    """What all have been given, as places in one table."""
    places, tables = np.full(count, -1, np.int64), []
    before = 0
    for part in parts:
        if part.table is not None:
            places[part.comers] = before + np.arange(len(part.comers))
            tables.append(part.table)
            before += part.table.num_rows
    return places, concat_tables(tables) if tables else None
