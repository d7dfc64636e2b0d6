"""The state of an as-of join: the latest row of each key at or before any time that may still be asked for.

Of the rows of a key that are not after the floor only the last one is needed, and of rows at the same time only one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import same_keys, without_null
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times, concat_tables
from millrace.kernel.joins.sequences.key_time_store import (
    ENOUGH,
    KeyTimeRun,
    KeyTimes,
    KeyTimeStore,
    RecentKeyTimes,
    order_of,
)
from millrace.kernel.progress.order import less, plus

_MANY = 2**10
"""So many are put in order before they are looked for."""
_PAIRS = 2**16
"""More pairs than this are not looked through: recent rows are put in order instead."""


class AsofRun(KeyTimeRun):
    """Rows by hash and time, of which some are not needed from certain floors on."""

    def __init__(self, table: pa.Table, index: KeyTimes, within: int | None) -> None:
        super().__init__(table, index)
        times = index.times
        ends = np.full(len(times), END_OF_TIME, np.int64)
        followed = np.flatnonzero(index.codes[1:] == index.codes[:-1])
        ends[followed] = times[followed + 1]
        self.ends: Times = np.sort(ends if within is None else np.minimum(ends, plus(times, within)))
        """The floors from which rows are not needed any more, in order."""

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.ends.nbytes)

    def is_spent(self, floor: Microseconds) -> bool:
        return 2 * int(np.searchsorted(self.ends, floor)) > max(len(self), ENOUGH)

    def latest(self, hashes: Hashes, times: Times) -> Integers:
        """The latest row of each hash at or before each time; -1 for none."""
        codes, known = self.index.codes_of(hashes)
        if not known.any():
            return np.full(len(hashes), -1, np.int64)
        places = self.index.ends(codes, times) - 1
        return np.where(known & (places >= self.index.begins[codes]), places, -1)

    def of_hashes(self, hashes: Hashes) -> pa.Table:
        """All rows of some hashes."""
        codes, known = self.index.codes_of(np.unique(hashes))
        begins, limits = self.index.begins[codes[known]], self.index.limits[codes[known]]
        return self.take(ranges(begins, limits - begins))


class AsofStore(KeyTimeStore[AsofRun]):
    """Rows by their columns `keys`, found by keys and time, at most `within` before it; `strict`: before it.

    Of equal times the row that was added last is the latest, or else the greatest by its `columns`.
    """

    def __init__(
        self,
        keys: Sequence[str],
        columns: Sequence[str],
        within: int | None = None,
        *,
        strict: bool = False,
        by_entry: bool = True,
    ) -> None:
        super().__init__(keys, None if by_entry else columns, within)
        self.strict = strict

    def find(self, keys: Sequence[pa.Array], times: Times) -> tuple[Integers, pa.Table | None]:
        """The latest row for each of some keys and times, as its place in a table; -1 for none."""
        hashes = hashing.hashes(keys, len(times)).view(np.int64)
        if self.columns is not None or len(self._recent) * len(times) > _PAIRS:
            self.settle()
        sources: list[AsofRun | RecentKeyTimes] = list(self._store.runs)
        if len(self._recent):
            sources.append(self._recent)
        valid = without_null(keys)
        rows, table = self._in_order(sources, hashes, times, np.ones(len(times), np.bool_) if valid is None else valid)
        places = np.full(len(times), -1, np.int64)
        places[rows] = np.arange(len(rows))
        if table is None:
            return places, None
        chosen = pa.array(rows)
        same = same_keys([key.take(chosen) for key in keys], [table.column(name) for name in self.keys])
        if same is None or same.all():
            return places, table
        return self._corrected(places, table, [key.take(chosen.filter(pa.array(~same))) for key in keys],
                               hashes, times, rows[~same])  # fmt: skip

    def compact(self) -> None:
        self.settle()
        while len(self._store.runs) > 1:
            self._store.replace(self._store.runs[-2:])
        self._store.replace(self._store.runs)

    def _in_order(
        self, sources: Sequence[AsofRun | RecentKeyTimes], hashes: Hashes, times: Times, wanted: Mask
    ) -> tuple[Integers, pa.Table | None]:
        """The same as `_best`: many are looked for in the order in which they stand, which is several times as fast."""
        if len(times) < _MANY:
            return self._best(sources, hashes, times, wanted)
        order = order_of(hashes, times)
        rows, table = self._best(sources, hashes[order], times[order], wanted[order])
        return order[rows], table

    def _best(
        self, sources: Sequence[AsofRun | RecentKeyTimes], hashes: Hashes, times: Times, wanted: Mask
    ) -> tuple[Integers, pa.Table | None]:
        """Which of the wanted are found, and the latest row of each, by hash alone."""
        at = np.maximum(times, NO_BOUND + 1) - 1 if self.strict else times
        found = [source.latest(hashes, at) for source in sources]
        if not found:
            return np.empty(0, np.int64), None
        when = [np.where(each >= 0, source.times[each], NO_BOUND) for source, each in zip(sources, found, strict=True)]
        best = when[0] if len(when) == 1 else np.maximum.reduce(when)
        wanted = wanted & (best > NO_BOUND)
        if self.within is not None:
            wanted &= best >= less(times, self.within)
        rows, tables = [], []
        # What was added last comes first, and so wins over what is as late.
        for source, places, moments in reversed(list(zip(sources, found, when, strict=True))):
            mine = np.flatnonzero(wanted & (moments == best))
            if len(mine):
                rows.append(mine)
                tables.append(source.take(places[mine]))
                if self.columns is None:
                    wanted[mine] = False
        return self._decided(rows, tables, len(times))

    def _decided(self, rows: list[Integers], tables: list[pa.Table], count: int) -> tuple[Integers, pa.Table | None]:
        """One row for each that is asked for, of rows of equal time from several runs."""
        if not rows:
            return np.empty(0, np.int64), None
        together, table = np.concatenate(rows), concat_tables(tables)
        if self.columns is None or len(rows) == 1:
            return together, table
        columns = [table.column(name).combine_chunks() for name in self.columns]
        chosen = Groups(together, count).chosen(*columns, greatest=True)
        return np.flatnonzero(chosen.is_valid().to_numpy(zero_copy_only=False)), table.take(chosen.drop_null())

    def _corrected(
        self, places: Integers, table: pa.Table, keys: Sequence[pa.Array], hashes: Hashes, times: Times, wrong: Integers
    ) -> tuple[Integers, pa.Table]:
        """What was found, but where the keys only share a hash: the latest of those that are equal."""
        places[wrong] = -1
        self.settle()
        near = concat_tables([run.of_hashes(hashes[wrong]) for run in self._store.runs])
        own, run = self._by_keys(keys, near)
        rows, found = self._best([run], own, times[wrong], np.ones(len(wrong), np.bool_))
        if found is None:
            return places, table
        places[wrong[rows]] = table.num_rows + np.arange(len(rows))
        return places, concat_tables([table, found])

    def _run(self, table: pa.Table, index: KeyTimes) -> AsofRun:
        return AsofRun(table, index, self.within)

    def _needed(self, table: pa.Table, order: Integers, index: KeyTimes) -> Mask:
        """Which rows may still be found; one that is followed by one of the same key up to the floor may not."""
        times, codes = index.times, index.codes
        highest = self.floor - 1 if self.strict and self.floor > NO_BOUND else self.floor
        behind = (codes[1:] == codes[:-1]) & ((times[1:] == times[:-1]) | (times[1:] <= highest))
        if behind.any() and self.keys:
            columns = [table.column(name).take(pa.array(order)) for name in self.keys]
            same = same_keys([each.slice(0, len(order) - 1) for each in columns], [each.slice(1) for each in columns])
            behind &= same
        needed = np.append(~behind, True)[: len(order)]
        if self.within is not None:
            needed &= times >= max(self.floor - self.within, NO_BOUND)
        return needed
