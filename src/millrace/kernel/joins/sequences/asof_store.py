"""The latest row of each key at or before any time that may still be asked for.

Rules:
- Nobody asks for a time below the floor. So of the rows of a key that are not after the floor only the last one is
  needed, and of rows at the same time only one.
- A run is one segment, sorted by hash and then time. Runs of similar size are merged, and what is not needed any more
  is left out then; a run of which more than half is not needed is written anew by itself. So a row costs the same
  however many are held.
- Different keys may share a hash: what is found is compared, and where it is of another key all is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import canonical, same_keys, with_whole_keys, without_null
from millrace.kernel.columns.grouping import Groups, codes_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Mask, Microseconds, Times, concat_tables
from millrace.kernel.progress.order import less, plus
from millrace.kernel.state import Changes, Segments
from millrace.kernel.stores.key_times import KeyTimes, by_contents, merged_order, order_of
from millrace.kernel.stores.newcomers import ENOUGH, Newcomers

_MANY = 2**10
"""So many are put in order before they are looked for."""


@dataclass(frozen=True, eq=False)
class _Run:
    number: int
    table: pa.Table
    index: KeyTimes
    ends: Times
    """The floors from which rows are not needed any more, in order."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def times(self) -> Times:
        return self.index.times

    def latest(self, hashes: Hashes, times: Times) -> Integers:
        """The latest row of each hash at or before each time; -1 for none."""
        codes, known = self.index.codes_of(hashes)
        if not known.any():
            return np.full(len(hashes), -1, np.int64)
        places = self.index.ends(codes, times) - 1
        return np.where(known & (places >= self.index.begins[codes]), places, -1)

    def rows(self, places: Integers) -> pa.Table:
        return self.table.take(pa.array(places))


class Latest:
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
        self.keys = list(keys)
        self.columns = list(columns)
        self.within = within
        self.strict = strict
        self.by_entry = by_entry
        self.floor: Microseconds = NO_BOUND
        self._runs: list[_Run] = []
        self._new = Newcomers()
        self._segments = Segments()

    def __len__(self) -> int:
        return sum([len(run) for run in self._runs]) + len(self._new)

    @property
    def nbytes(self) -> int:
        """The memory of all rows and of what finds them."""
        runs = [int(run.table.nbytes) + run.index.nbytes + int(run.ends.nbytes) for run in self._runs]
        return sum(runs) + self._new.nbytes

    def add(self, batch: Batch) -> None:
        """Keep rows; those with a null key are never found."""
        batch = with_whole_keys(batch, self.keys)
        if len(batch) and self.floor < END_OF_TIME:
            self._new.add(batch.rows, hashes_of(batch.rows, self.keys), batch.times)
            if len(self._new) >= ENOUGH:
                self._settle()

    def raise_floor(self, floor: Microseconds) -> None:
        """From now on nobody asks for a time below `floor`."""
        if floor == self.floor:
            return
        self.floor = floor
        if floor == END_OF_TIME:
            self._clear()
            return
        spent = [run for run in self._runs if 2 * int(np.searchsorted(run.ends, floor)) > max(len(run), ENOUGH)]
        for run in spent:
            self._replace([run], run.table, np.arange(len(run)), run.index)
        if spent:
            self._merge_similar()

    def find(self, keys: Sequence[pa.Array], times: Times) -> tuple[Integers, pa.Table | None]:
        """The latest row for each of some keys and times, as its place in a table; -1 for none."""
        hashes = hashing.hashes(keys, len(times)).view(np.int64)
        if len(self._new) and not (self.by_entry and self._new.few(len(times))):
            self._settle()
        sources: list[_Run | Newcomers] = list(self._runs)
        if len(self._new):
            sources.append(self._new)
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

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        note = {"order": [run.number for run in self._runs], "floor": self.floor, "next": self._segments.following}
        return self._segments.changes(note)

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments (all of them, as `added`) and the note of the last save."""
        self._segments.restore(changes.added, changes.note["next"])
        self.floor = changes.note["floor"]
        tables = self._segments.live
        self._runs = [self._run(number, tables[number]) for number in changes.note["order"]]

    # Finding

    def _in_order(
        self, sources: Sequence[_Run | Newcomers], hashes: Hashes, times: Times, wanted: Mask
    ) -> tuple[Integers, pa.Table | None]:
        """The same as `_best`: many are looked for in the order in which they stand, which is several times as fast."""
        if len(times) < _MANY:
            return self._best(sources, hashes, times, wanted)
        order = order_of(hashes, times)
        rows, table = self._best(sources, hashes[order], times[order], wanted[order])
        return order[rows], table

    def _best(
        self, sources: Sequence[_Run | Newcomers], hashes: Hashes, times: Times, wanted: Mask
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
                tables.append(source.rows(places[mine]))
                if self.by_entry:
                    wanted[mine] = False
        return self._decided(rows, tables, len(times))

    def _decided(self, rows: list[Integers], tables: list[pa.Table], count: int) -> tuple[Integers, pa.Table | None]:
        """One row for each that is asked for, of rows of equal time from several runs."""
        if not rows:
            return np.empty(0, np.int64), None
        together, table = np.concatenate(rows), concat_tables(tables)
        if self.by_entry or len(rows) == 1:
            return together, table
        columns = [table.column(name).combine_chunks() for name in self.columns]
        chosen = Groups(together, count).chosen(*columns, greatest=True)
        return np.flatnonzero(chosen.is_valid().to_numpy(zero_copy_only=False)), table.take(chosen.drop_null())

    def _corrected(
        self, places: Integers, table: pa.Table, keys: Sequence[pa.Array], hashes: Hashes, times: Times, wrong: Integers
    ) -> tuple[Integers, pa.Table]:
        """What was found, but where the keys only share a hash: the latest of those that are equal."""
        places[wrong] = -1
        self._settle()
        near = concat_tables([_of_hashes(run, hashes[wrong]) for run in self._runs])
        columns = [
            canonical(pa.concat_arrays([key, near.column(name).combine_chunks()]))
            for key, name in zip(keys, self.keys, strict=True)
        ]
        codes, _ = codes_of(columns, len(wrong) + near.num_rows)
        own, others = codes[: len(wrong)], codes[len(wrong) :]
        order = order_of(others, _times(near))
        order = self._order(near, order, others[order])
        run = _Run(-1, near.take(pa.array(order)), KeyTimes(others[order], _times(near)[order]), _times(near)[:0])
        rows, found = self._best([run], own, times[wrong], np.ones(len(wrong), np.bool_))
        if found is None:
            return places, table
        places[wrong[rows]] = table.num_rows + np.arange(len(rows))
        return places, concat_tables([table, found])

    # Keeping

    def _settle(self) -> None:
        """Keep the newcomers as a run."""
        if not len(self._new):
            return
        table, hashes, times = self._new.take_all()
        order = order_of(hashes, times)
        self._replace([], table, order, KeyTimes(hashes[order], times[order]))
        self._merge_similar()

    def _merge_similar(self) -> None:
        for place in reversed(range(len(self._runs) - 1)):
            older, newer = self._runs[place : place + 2]
            if len(older) <= 2 * len(newer):
                self._merge(older, newer)

    def _merge(self, older: _Run, newer: _Run) -> None:
        order = merged_order(older.index, newer.index)
        hashes = np.concatenate([run.index.hashes[run.index.codes] for run in (older, newer)])[order]
        times = np.concatenate([older.times, newer.times])[order]
        self._replace([older, newer], concat_tables([older.table, newer.table]), order, KeyTimes(hashes, times))

    def compact(self) -> None:
        """Let go of all that is not needed."""
        self._settle()
        while len(self._runs) > 1:
            self._merge(*self._runs[-2:])
        for run in list(self._runs):
            self._replace([run], run.table, np.arange(len(run)), run.index)

    def _replace(self, runs: Sequence[_Run], table: pa.Table, order: Integers, index: KeyTimes) -> None:
        """Keep what is needed of a table instead of some neighbouring runs; `index` is over the table in order."""
        place = self._runs.index(runs[0]) if runs else len(self._runs)
        hashes = index.hashes[index.codes]
        order = self._order(table, order, hashes)
        kept = self._needed(table, order, index)
        for run in runs:
            self._runs.remove(run)
            self._segments.remove(run.number)
        if not kept.all():
            order, index = order[kept], KeyTimes(hashes[kept], index.times[kept])
        if len(order):
            rows = table.take(pa.array(order))
            self._runs.insert(place, _Run(self._segments.add(rows), rows, index, self._ends(index)))

    def _order(self, table: pa.Table, order: Integers, hashes: Hashes) -> Integers:
        """The order of rows by hash and time, with ties told apart as they must be; `hashes` are in order already."""
        if self.by_entry:
            return order
        times = _times(table)[order]
        same = np.append(False, (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1]))[: len(order)]
        return by_contents(table, order, same, self.columns)

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

    def _run(self, number: int, table: pa.Table) -> _Run:
        index = KeyTimes(hashes_of(table, self.keys), _times(table))
        return _Run(number, table, index, self._ends(index))

    def _ends(self, index: KeyTimes) -> Times:
        times = index.times
        ends = np.full(len(times), END_OF_TIME, np.int64)
        followed = np.flatnonzero(index.codes[1:] == index.codes[:-1])
        ends[followed] = times[followed + 1]
        return np.sort(ends if self.within is None else np.minimum(ends, plus(times, self.within)))

    def _clear(self) -> None:
        self._new.clear()
        for run in self._runs:
            self._segments.remove(run.number)
        self._runs = []


def _times(table: pa.Table) -> Times:
    times: Times = table.column(TIME).to_numpy()
    return times


def _of_hashes(run: _Run, hashes: Hashes) -> pa.Table:
    """All rows of some hashes."""
    codes, known = run.index.codes_of(np.unique(hashes))
    begins, limits = run.index.begins[codes[known]], run.index.limits[codes[known]]
    return run.rows(ranges(begins, limits - begins))
