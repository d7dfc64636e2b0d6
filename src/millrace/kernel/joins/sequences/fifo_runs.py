"""A run of queues, and how several of them serve those who come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.sorting import dense, stable_order, starts
from millrace.kernel.elements import Mask, Microseconds, Times
from millrace.kernel.joins.sequences.one_to_one import turns
from millrace.kernel.progress.order import less
from millrace.kernel.stores.key_times import KeyTimes, contents_of
from millrace.kernel.stores.keyed_runs import Hashes, Places, spread
from millrace.kernel.stores.sorted_runs import concat_tables

ENTRY = "__entry"


class QueueRun:
    """Rows sorted by hash and then time, of which each hash has lost some from the front."""

    def __init__(self, number: int, table: pa.Table, index: KeyTimes, *, expires: bool) -> None:
        self.number = number
        self.table = table
        self.index = index
        self.entries: Places = table.column(ENTRY).to_numpy()
        self.firsts = index.begins.copy()
        """The first row of each distinct hash that is left."""
        self.gone = 0
        self._by_time = np.argsort(index.times) if expires else index.begins[:0]
        self._moments = index.times[self._by_time]
        self._expired = 0

    def __len__(self) -> int:
        return len(self.index)

    @property
    def left(self) -> int:
        """How many rows are left."""
        return len(self.index) - self.gone

    @property
    def nbytes(self) -> int:
        """The memory of the rows and of what finds them."""
        own = self.firsts.nbytes + self._by_time.nbytes + self._moments.nbytes
        return int(self.table.nbytes) + self.index.nbytes + int(own)

    def lose(self, places: Places) -> None:
        """Let go of rows, and of all before them in their queues."""
        codes = self.index.codes[places]
        touched = codes[starts(codes)] if len(codes) < 2 or bool((codes[1:] >= codes[:-1]).all()) else np.unique(codes)
        before = int(self.firsts[touched].sum())
        np.maximum.at(self.firsts, codes, places + 1)
        self.gone += int(self.firsts[touched].sum()) - before

    def mark(self, gone: Mask) -> None:
        """Let go of the rows where `gone` holds."""
        self.lose(np.flatnonzero(gone))

    def expire(self, oldest: Microseconds) -> None:
        """Let go of the rows before a time."""
        if self._expired < len(self._moments) and self._moments[self._expired] < oldest:
            end = int(np.searchsorted(self._moments, oldest))
            self.lose(np.sort(self._by_time[self._expired : end]))
            self._expired = end

    def pull(self, hashes: Hashes) -> pa.Table:
        """All rows that are left of some hashes, which are gone then."""
        codes, known = self.index.codes_of(np.unique(hashes))
        codes = codes[known]
        places = spread(self.firsts[codes], self.index.limits[codes] - self.firsts[codes])
        self.lose(places)
        return self.table.take(pa.array(places))

    def rest(self) -> pa.Table:
        """The rows that are left."""
        return self.table if not self.gone else self.table.take(pa.array(self._rest()))

    def rest_index(self) -> KeyTimes:
        """Where the rows that are left stand among each other."""
        if not self.gone:
            return self.index
        places = self._rest()
        return KeyTimes(self.index.hashes[self.index.codes[places]], self.index.times[places])

    def entries_gone(self) -> Places:
        """The numbers of the rows that are gone."""
        return self.entries[spread(self.index.begins, self.firsts - self.index.begins)]

    def _rest(self) -> Places:
        return spread(self.firsts, self.index.limits - self.firsts)


@dataclass(frozen=True, eq=False)
class Served:
    """Who is given a row, and which; and for each run the rows that are gone then, with those before them."""

    comers: Places
    table: pa.Table | None
    gone: list[tuple[QueueRun, Places]]

    def of(self, places: Places) -> Served:
        """The same, those who come being some out of more."""
        return replace(self, comers=places[self.comers])

    def take(self) -> list[Places]:
        """Let the rows go; their numbers, run by run."""
        for run, places in self.gone:
            run.lose(places)
        return [run.entries[places] for run, places in self.gone]


def serve(
    runs: Sequence[QueueRun], hashes: Hashes, times: Times, within: int | None, columns: Sequence[str] | None
) -> Served:
    """Give each of those who come, in their order, the first row of his hash that is left and in range.

    Rows of equal time are in order of entry, or of `columns` if there are some.
    """
    values, groups = dense(hashes)
    order = stable_order(groups)
    groups, times = groups[order], times[order]
    found = [(run, *run.index.codes_of(values)) for run in runs]
    limits, old = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    for run, codes, known in found:
        limits += _left_at(run, codes, known, groups, times)
        if within is not None:
            old += _left_at(run, codes, known, groups, less(times, within + 1))
    taken, used = turns(starts(groups), limits, None if within is None else old)
    last = np.append(groups[1:] != groups[:-1], True)[: len(groups)]
    return _given(found, _Wanted(order, groups, taken, used[last], times[last]), columns)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Comers group by group and the place of its queue that each takes; of each group how much is used, and until."""

    order: Places
    groups: Places
    taken: Places
    used: Places
    times: Times


def _left_at(run: QueueRun, codes: Places, known: Mask, groups: Places, times: Times) -> Places:
    """How many rows are left of each group at or before each time."""
    own = codes[groups]
    counts = run.index.ends(own, times) - run.firsts[own] if len(run) else own
    return np.where(known[groups], np.maximum(counts, 0), 0)


def _given(found: Sequence[tuple[QueueRun, Places, Mask]], wanted: _Wanted, columns: Sequence[str] | None) -> Served:
    """The rows that are wanted: no run has to give more of a queue than is used of it."""
    owners, groups, places = [], [], []
    for number, (run, codes, known) in enumerate(found):
        codes, used = codes[known], wanted.used[known]
        left = run.index.ends(codes, wanted.times[known]) - run.firsts[codes]
        counts = np.clip(left, 0, used)
        places.append(spread(run.firsts[codes], counts))
        groups.append(np.repeat(np.flatnonzero(known), counts))
        owners.append(np.full(len(places[-1]), number))
    if not sum([len(each) for each in places]):
        return Served(wanted.order[:0], None, [])
    runs = [run for run, _, _ in found]
    front = _Front(np.concatenate(owners), np.concatenate(groups), np.concatenate(places))
    return front.served(runs, wanted, columns)


@dataclass(frozen=True, eq=False)
class _Front:
    """The first rows of some queues, from several runs: whose they are, the queue, and the place in the run."""

    owners: Places
    groups: Places
    places: Places

    def served(self, runs: Sequence[QueueRun], wanted: _Wanted, columns: Sequence[str] | None) -> Served:
        """Put them in order, and give them out."""
        order = self._order(runs, columns)
        groups = self.groups[order]
        begins = np.searchsorted(groups, np.arange(len(wanted.used)))
        used = order[np.arange(len(order)) - begins[groups] < wanted.used[groups]]
        matched = np.flatnonzero(wanted.taken >= 0)
        rows = order[begins[wanted.groups[matched]] + wanted.taken[matched]]
        comers, tables, gone = [], [], []
        for number, run in enumerate(runs):
            gone.append((run, self.places[used[self.owners[used] == number]]))
            mine = np.flatnonzero(self.owners[rows] == number)
            if len(mine):
                comers.append(wanted.order[matched[mine]])
                tables.append(run.table.take(pa.array(self.places[rows[mine]])))
        if not tables:
            return Served(wanted.order[:0], None, gone)
        return Served(np.concatenate(comers), concat_tables(tables), gone)

    def _order(self, runs: Sequence[QueueRun], columns: Sequence[str] | None) -> Places:
        """By queue, time, and entry or contents."""
        mine = [(run, self.places[self.owners == number]) for number, run in enumerate(runs)]
        times = np.concatenate([run.index.times[places] for run, places in mine])
        if columns is None:
            return np.lexsort((np.concatenate([run.entries[places] for run, places in mine]), times, self.groups))
        rows = concat_tables([run.table.take(pa.array(places)) for run, places in mine])
        return np.lexsort((*reversed(contents_of(rows, columns)), times, self.groups))
