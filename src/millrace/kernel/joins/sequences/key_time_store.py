"""Rows by key and time, in runs: what the stores of the as-of join and of the chronicle join have in common.

Rules:
- A run is sorted by the hash of the keys and then by time. Of rows at the same time the order is that of entry, or
  else that of their columns.
- Nothing is asked for below the floor. Rows that are not needed any more are left out when runs are merged; a run of
  which more than half is not needed is written anew by itself. So a row costs the same however many are held.
- Different keys may share a hash: what is found is compared, and where it is of another key, all rows of the hash are
  looked at by the keys themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.comparison import canonical, ordinals, with_whole_keys
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers, dense, distinct, stable_order, starts
from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Mask,
    Microseconds,
    Times,
    concat_tables,
    integer_column,
)
from millrace.kernel.state import Changes
from millrace.kernel.stores.recent_rows import RecentRows
from millrace.kernel.stores.run_store import RowRun, RunStore

ENOUGH = 2**12
"""Runs of fewer rows are not written anew for what they have lost."""

_CELLS = 2**62
"""More cells than this are too many for the numbers that there are."""


class KeyTimes:
    """The distinct hashes of sorted rows, where the rows of each begin, and how far they go up to a time.

    A hash and a time make one number, a cell: so one search looks a whole batch of keys and times up.
    """

    def __init__(self, hashes: Hashes, times: Times) -> None:
        first = starts(hashes)
        self.begins: Integers = np.flatnonzero(first)
        self.hashes = hashes[self.begins]
        self.times = times
        self.codes: Integers = np.cumsum(first) - 1
        """The number of each row's hash among the distinct ones."""
        self._low, self._high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        self._width = self._high - self._low + 1
        self._moments: Times | None = None
        if self._width * len(self.begins) > _CELLS:
            self._moments = distinct(times)
            self._width = len(self._moments)
        self._cells = self.codes * self._width + self._offsets(times)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return int(self._cells.nbytes + self.codes.nbytes + self.begins.nbytes + self.hashes.nbytes)

    @property
    def limits(self) -> Integers:
        """Behind the last row of each distinct hash."""
        return np.append(self.begins[1:], len(self.times))

    def codes_of(self, hashes: Hashes) -> tuple[Integers, Mask]:
        """The number of each hash among the distinct ones, and where it is there; elsewhere the number is void."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
        codes = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return codes, self.hashes[codes] == hashes

    def ends(self, codes: Integers, times: Times) -> Integers:
        """Behind the last row of each numbered hash that is at or before each time; where it begins if none is."""
        return np.searchsorted(self._cells, codes * self._width + self._offsets(times), side="right")

    def _offsets(self, times: Times) -> Integers:
        """Each time's place in the row of cells of a hash; -1 before all."""
        if self._moments is not None:
            return np.searchsorted(self._moments, times, side="right") - 1
        offsets: Integers = np.minimum(np.maximum(times, self._low - 1), self._high) - self._low
        return offsets


class KeyTimeRun(RowRun):
    """Rows sorted by hash and then time."""

    def __init__(self, table: pa.Table, index: KeyTimes) -> None:
        super().__init__(table)
        self.index = index

    @property
    def nbytes(self) -> int:
        """The memory of the rows and of what finds them."""
        return super().nbytes + self.index.nbytes

    @property
    def times(self) -> Times:
        """The time of each row."""
        return self.index.times

    def take(self, places: Integers) -> pa.Table:
        """The rows at some places."""
        return self.table.take(pa.array(places))

    def live(self) -> tuple[pa.Table, KeyTimes]:
        """The live rows, and where they stand among each other."""
        return self.table, self.index

    def is_spent(self, floor: Microseconds) -> bool:
        """True if more than half of the rows are not needed any more."""
        raise AssertionError("a run says what is not needed of it")


class RecentKeyTimes(RecentRows):
    """Recent rows with the hashes of their keys and their times."""

    def __init__(self) -> None:
        super().__init__(np.int64, np.int64)
        self.least: Microseconds = END_OF_TIME
        """The least time of a row."""

    def add(self, rows: pa.RecordBatch, *numbers: Integers | bool) -> None:
        """Keep rows, with their hashes and times."""
        super().add(rows, *numbers)
        self.least = min(self.least, int(self.times[-rows.num_rows :].min()))

    @property
    def hashes(self) -> Hashes:
        """The hash of each row's keys."""
        return self.numbers(0)

    @property
    def times(self) -> Times:
        """The time of each row."""
        return self.numbers(1)

    def take(self, places: Integers) -> pa.Table:
        """The rows at some places."""
        return pa.Table.from_batches([self.rows.take(pa.array(places))])

    def latest(self, hashes: Hashes, times: Times) -> Integers:
        """The latest row of each hash at or before each time, the last of equal ones; -1 for none."""
        eligible = (self.hashes == hashes[:, None]) & (self.times <= times[:, None])
        when = np.where(eligible, self.times, NO_BOUND)[:, ::-1]
        return np.where(eligible.any(axis=1), len(self) - 1 - np.argmax(when, axis=1), -1)


AnyKeyTimeRun = TypeVar("AnyKeyTimeRun", bound=KeyTimeRun)


class KeyTimeStore(Generic[AnyKeyTimeRun]):
    """Rows by their columns `keys` and their time; none is wanted more than `within` before the time asked for.

    Rows at the same time are told apart by entry, or by `columns` if there are some.
    """

    gather = ENOUGH
    """So many recent rows are put in order without waiting for a look at them."""

    def __init__(self, keys: Sequence[str], columns: Sequence[str] | None, within: int | None) -> None:
        self.keys = list(keys)
        self.columns = None if columns is None else list(columns)
        self.within = within
        self.floor: Microseconds = NO_BOUND
        self._recent = RecentKeyTimes()
        self._store: RunStore[AnyKeyTimeRun] = RunStore(self._merged)

    def __len__(self) -> int:
        return len(self._store) + len(self._recent)

    @property
    def nbytes(self) -> int:
        """The memory of all rows and of what finds them."""
        return self._store.nbytes + self._recent.nbytes

    def add(self, batch: Batch) -> None:
        """Keep rows; those with a null key are never found."""
        batch = with_whole_keys(batch, self.keys)
        if len(batch) and self.floor < END_OF_TIME:
            self._recent.add(batch.rows, hashes_of(batch.rows, self.keys), batch.times)
            if len(self._recent) >= self.gather:
                self.settle()

    def raise_floor(self, floor: Microseconds) -> None:
        """From now on nothing is asked for a time below `floor`."""
        if floor == self.floor:
            return
        self.floor = floor
        if floor == END_OF_TIME:
            self._recent = RecentKeyTimes()
            self._store.clear()
        else:
            self._rewrite_spent()

    def settle(self) -> None:
        """Make a run of the recent rows."""
        if len(self._recent):
            recent, self._recent = self._recent, RecentKeyTimes()
            self._keep(pa.Table.from_batches([recent.rows]), recent.hashes, recent.times)

    def compact(self) -> None:
        """Drop all rows that are not needed."""
        self.settle()

    def changes(self) -> Changes:
        """What changed since the last save."""
        self.settle()
        return self._store.changes({"floor": self.floor})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self.floor = changes.note["floor"]
        self._store.restore(changes, self._restored)

    def _run(self, table: pa.Table, index: KeyTimes) -> AnyKeyTimeRun:
        """A run of rows in order."""
        raise AssertionError("a store says what its runs are")

    def _needed(self, table: pa.Table, order: Integers, index: KeyTimes) -> Mask:
        """Which rows may still be found; `index` is over the table in that order."""
        raise AssertionError("a store says what it needs")

    def _keep(self, table: pa.Table, hashes: Hashes, times: Times) -> None:
        """Keep rows as a run."""
        run = self._made(table, order_of(hashes, times), hashes, times)
        if run is not None:
            self._store.add(run)

    def _restored(self, table: pa.Table) -> AnyKeyTimeRun:
        return self._run(table, KeyTimes(hashes_of(table, self.keys), integer_column(table, TIME)))

    def _rewrite_spent(self) -> None:
        """Write the runs anew that have lost more than half of their rows."""
        spent = [run for run in self._store.runs if run.is_spent(self.floor)]
        for run in spent:
            self._store.replace([run])
        if spent:
            self._store.merge_similar()

    def _merged(self, runs: Sequence[AnyKeyTimeRun]) -> AnyKeyTimeRun | None:
        """The live rows of one run, or of two."""
        tables, parts = zip(*(run.live() for run in runs), strict=True)
        order = merged_order(*parts) if len(parts) > 1 else np.arange(len(parts[0]))
        hashes = np.concatenate([part.hashes[part.codes] for part in parts])
        return self._made(concat_tables(tables), order, hashes, np.concatenate([part.times for part in parts]))

    def _made(self, table: pa.Table, order: Integers, hashes: Hashes, times: Times) -> AnyKeyTimeRun | None:
        """A run of the needed rows of a table; `order` is that of hashes and times."""
        order = self._tied(table, order, hashes, times)
        index = KeyTimes(hashes[order], times[order])
        needed = self._needed(table, order, index)
        if not needed.all():
            order = order[needed]
            index = KeyTimes(hashes[order], times[order])
        return self._run(table.take(pa.array(order)), index) if len(order) else None

    def _tied(self, table: pa.Table, order: Integers, hashes: Hashes, times: Times) -> Integers:
        """The order of hashes and times, with ties told apart as they must be."""
        if self.columns is None:
            return order
        hashes, times = hashes[order], times[order]
        same = np.append(False, (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1]))[: len(order)]
        return by_contents(table, order, same, self.columns)

    def _by_keys(self, keys: Sequence[pa.Array], near: pa.Table) -> tuple[Integers, AnyKeyTimeRun]:
        """Some keys as numbers that differ where they do, and a run of rows of the same hashes by such numbers."""
        count, times = len(keys[0]), integer_column(near, TIME)
        columns = [
            canonical(pa.concat_arrays([key, near.column(name).combine_chunks()]))
            for key, name in zip(keys, self.keys, strict=True)
        ]
        codes, _ = codes_of(columns, count + near.num_rows)
        others = codes[count:]
        order = self._tied(near, order_of(others, times), others, times)
        return codes[:count], self._run(near.take(pa.array(order)), KeyTimes(others[order], times[order]))


def order_of(hashes: Hashes, times: Times) -> Integers:
    """The places of rows by hash and then time; those of equal time keep their order."""
    _, codes = dense(hashes)
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return stable_order(codes)
    by_time = np.argsort(times, kind="stable")
    return by_time[stable_order(codes[by_time])]


def merged_order(older: KeyTimes, newer: KeyTimes) -> Integers:
    """The places of sorted rows and other ones behind them, by hash and then time; of equal ones the older first."""
    codes = np.searchsorted(older.hashes, newer.hashes)
    at = np.append(older.begins, len(older))[codes]
    known = np.append(older.hashes, 0)[codes] == newer.hashes
    known[codes == len(older.hashes)] = False
    before = at[newer.codes]
    among = known[newer.codes]
    before[among] = older.ends(codes[newer.codes[among]], newer.times[among])
    places = before + np.arange(len(newer))
    order = np.empty(len(older) + len(newer), np.int64)
    rest = np.ones(len(order), np.bool_)
    rest[places] = False
    order[places] = np.arange(len(older), len(order))
    order[rest] = np.arange(len(older))
    return order


def by_contents(rows: pa.Table, order: Integers, same: Mask, columns: Sequence[str]) -> Integers:
    """The order with ties told apart by contents; `same` says which places tie with the one before them."""
    tied = same.copy()
    tied[:-1] |= same[1:]
    places = np.flatnonzero(tied)
    if not len(places):
        return order
    contents = contents_of(rows.take(pa.array(order[places])), columns)
    groups = np.cumsum(~same)[places]
    found = order.copy()
    found[places] = order[places][np.lexsort([*reversed(contents), groups])]
    return found


def contents_of(rows: pa.Table, columns: Sequence[str]) -> list[Integers]:
    """Whole numbers in the order of the values of each column, nulls first."""
    return [ordinals(rows.column(name).combine_chunks()) for name in columns]
