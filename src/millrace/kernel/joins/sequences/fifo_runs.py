"""Runs of the keyed FIFO, and how they serve a batch of comers: each takes the first row of its key that is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, dense, ranges, stable_order, starts
from millrace.kernel.elements import Mask, Microseconds, Times, concat_tables
from millrace.kernel.joins.sequences.key_time_store import ENOUGH, KeyTimeRun, KeyTimes, contents_of
from millrace.kernel.progress.order import less

ENTRY = "__entry"


class FifoRun(KeyTimeRun):
    """Rows sorted by hash and then time, of which each hash has lost some from the front."""

    def __init__(self, table: pa.Table, index: KeyTimes, *, expires: bool) -> None:
        super().__init__(table, index)
        self.entries: Integers = table.column(ENTRY).to_numpy()
        self.firsts = index.begins.copy()
        """The first row of each distinct hash that is left."""
        self.gone = 0
        self._by_time = np.argsort(index.times) if expires else index.begins[:0]
        self._moments = index.times[self._by_time]
        self._expired = 0

    def __len__(self) -> int:
        return len(self.index) - self.gone

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.firsts.nbytes + self._by_time.nbytes + self._moments.nbytes)

    def is_spent(self, floor: Microseconds) -> bool:
        return self.gone == len(self.index) or 2 * self.gone > max(len(self.index), ENOUGH)

    def lose(self, places: Integers) -> None:
        """Drop rows, and all before them in their queues."""
        codes = self.index.codes[places]
        touched = codes[starts(codes)] if len(codes) < 2 or bool((codes[1:] >= codes[:-1]).all()) else np.unique(codes)
        before = int(self.firsts[touched].sum())
        np.maximum.at(self.firsts, codes, places + 1)
        self.gone += int(self.firsts[touched].sum()) - before

    def expire(self, oldest: Microseconds) -> None:
        """Drop the rows before a time."""
        if self._expired < len(self._moments) and self._moments[self._expired] < oldest:
            end = int(np.searchsorted(self._moments, oldest))
            self.lose(np.sort(self._by_time[self._expired : end]))
            self._expired = end

    def pull(self, hashes: Hashes) -> pa.Table:
        """All rows that are left of some hashes, which are gone then."""
        codes, known = self.index.codes_of(np.unique(hashes))
        codes = codes[known]
        places = ranges(self.firsts[codes], self.index.limits[codes] - self.firsts[codes])
        self.lose(places)
        return self.take(places)

    def live(self) -> tuple[pa.Table, KeyTimes]:
        if not self.gone:
            return self.table, self.index
        places = ranges(self.firsts, self.index.limits - self.firsts)
        index = KeyTimes(self.index.hashes[self.index.codes[places]], self.index.times[places])
        return self.take(places), index

    def entries_gone(self) -> Integers:
        """The numbers of the rows that are gone."""
        return self.entries[ranges(self.index.begins, self.firsts - self.index.begins)]


@dataclass(frozen=True, eq=False)
class Served:
    """The comers that get a row, and which; for each run the rows that are gone then, with those before them."""

    comers: Integers
    table: pa.Table | None
    gone: list[tuple[FifoRun, Integers]]

    def of(self, places: Integers) -> Served:
        """The same, where the comers are some out of more."""
        return replace(self, comers=places[self.comers])

    def take(self) -> list[Integers]:
        """Drop the rows that are given; their numbers, run by run."""
        for run, places in self.gone:
            run.lose(places)
        return [run.entries[places] for run, places in self.gone]


def serve(
    runs: Sequence[FifoRun], hashes: Hashes, times: Times, within: int | None, columns: Sequence[str] | None
) -> Served:
    """Give each comer, in their order, the first row of its hash that is left and in range.

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
    taken, used = places_taken(starts(groups), limits, None if within is None else old)
    last = np.append(groups[1:] != groups[:-1], True)[: len(groups)]
    return _given(found, _Wanted(order, groups, taken, used[last], times[last]), columns)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Comers group by group and the place of its queue that each takes; of each group how much is used, and until."""

    order: Integers
    groups: Integers
    taken: Integers
    used: Integers
    times: Times


def _left_at(run: FifoRun, codes: Integers, known: Mask, groups: Integers, times: Times) -> Integers:
    """How many rows are left of each group at or before each time."""
    own = codes[groups]
    counts = run.index.ends(own, times) - run.firsts[own] if len(run.index) else own
    return np.where(known[groups], np.maximum(counts, 0), 0)


def _given(found: Sequence[tuple[FifoRun, Integers, Mask]], wanted: _Wanted, columns: Sequence[str] | None) -> Served:
    """The rows that are wanted: no run has to give more of a queue than is used of it."""
    owners, groups, places = [], [], []
    for number, (run, codes, known) in enumerate(found):
        codes, used = codes[known], wanted.used[known]
        left = run.index.ends(codes, wanted.times[known]) - run.firsts[codes]
        counts = np.clip(left, 0, used)
        places.append(ranges(run.firsts[codes], counts))
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

    owners: Integers
    groups: Integers
    places: Integers

    def served(self, runs: Sequence[FifoRun], wanted: _Wanted, columns: Sequence[str] | None) -> Served:
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
                tables.append(run.take(self.places[rows[mine]]))
        if not tables:
            return Served(wanted.order[:0], None, gone)
        return Served(np.concatenate(comers), concat_tables(tables), gone)

    def _order(self, runs: Sequence[FifoRun], columns: Sequence[str] | None) -> Integers:
        """By queue, time, and entry or contents."""
        mine = [(run, self.places[self.owners == number]) for number, run in enumerate(runs)]
        times = np.concatenate([run.index.times[places] for run, places in mine])
        if columns is None:
            return np.lexsort((np.concatenate([run.entries[places] for run, places in mine]), times, self.groups))
        rows = concat_tables([run.take(places) for run, places in mine])
        return np.lexsort((*reversed(contents_of(rows, columns)), times, self.groups))


def places_taken(first: Mask, limits: Integers, old: Integers | None = None) -> tuple[Integers, Integers]:
    """The place of its queue that each comer takes, -1 for none, and how much of the queue is used up after it.

    `first` says where the comers of another queue begin. A comer may take places up to a limit of its own, but none
    that is too old for it; neither goes back from one comer to the next. So after a comer a queue is used up to
    `min(max(before, old) + 1, limit)`. Such functions, applied one after another, are again a sum kept between two
    bounds: all queues are served in as many steps as the longest line of comers has doublings. Where nothing is too
    old a running minimum suffices.

    >>> taken, used = places_taken(np.array([True, False, False]), np.array([1, 1, 3]))
    >>> taken.tolist(), used.tolist()
    ([0, -1, 1], [1, 1, 2])
    """
    if not len(first):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    begins = np.flatnonzero(first)
    places = np.arange(len(first)) - np.repeat(begins, np.diff(begins, append=len(first)))
    used = _counted(first, places, limits) if old is None else _clamped(places, limits, old)
    before = np.where(first, 0, np.roll(used, 1))
    left = before if old is None else np.maximum(before, old)
    return np.where(left < limits, left, -1), used


def _counted(first: Mask, places: Integers, limits: Integers) -> Integers:
    """How much is used up after each when nothing is too old."""
    count = places + 1
    # Each queue lies below the one before it, by more than anything can differ: so the running minimum begins anew.
    below = (np.cumsum(first) - 1) * (len(first) + 1)
    missed: Integers = np.minimum.accumulate(np.minimum(limits - count, 0) - below) + below
    return count + missed


def _clamped(places: Integers, limits: Integers, old: Integers) -> Integers:
    """How much is used up after each: from what one comer adds and the bounds it sets, then two, four, and so on."""
    more, high = np.ones(len(places), np.int64), limits.copy()
    low = np.minimum(old + 1, limits)
    step, longest = 1, int(places.max())
    while step <= longest:
        at = np.flatnonzero(places >= step)
        before, mine, lowest, highest = at - step, more[at], low[at], high[at]
        # All of the step before is read before any of it is replaced.
        added = more[before] + mine
        lower = np.clip(low[before] + mine, lowest, highest)
        higher = np.clip(high[before] + mine, lowest, highest)
        more[at], low[at], high[at] = added, lower, higher
        step *= 2
    return np.clip(more, low, high)
