"""Partials by group and time, and what is folded over a span of them. A point is all rows of one group and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.aggregates.span_folds import folded, in_panes, leaves
from millrace.kernel.columns.grouping import groups_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.elements import NO_BOUND, Batch, Microseconds, Times, concat_tables
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns


@dataclass(frozen=True, eq=False)
class TimePartials:
    """The partials of points, by group and time, and how many rows each point has."""

    codes: Integers
    times: Times
    counts: Integers
    partials: pa.Table
    """With the keys and their hash."""

    @property
    def hashes(self) -> Hashes:
        """The hash of each point's keys."""
        hashes: Hashes = self.partials.column(HASH).to_numpy()
        return hashes

    @cached_property
    def begins(self) -> Integers:
        """The first point of each group."""
        return np.flatnonzero(starts(self.codes))

    @cached_property
    def ends(self) -> Integers:
        """The place behind the last point of each group."""
        return np.append(self.begins[1:], len(self.codes))

    def at(self, places: Integers) -> TimePartials:
        """Some of them."""
        rows = self.partials.take(pa.array(places))
        return TimePartials(self.codes[places], self.times[places], self.counts[places], rows)

    def holding(self, fold: pa.Table) -> TimePartials:
        """The same points with other partials."""
        made = self.partials
        for place, name in enumerate(made.schema.names):
            if name in fold.schema.names:
                made = made.set_column(place, name, fold.column(name))
        return TimePartials(self.codes, self.times, self.counts, made)


def partial_inputs(partials: Partials, further: Sequence[str] = ()) -> Callable[[Batch], pa.Table]:
    """What a hold buffer keeps of batches: the columns partials read, the time as pane, the hash of the keys.

    `further` names columns that are kept too.
    """

    def kept(batch: Batch) -> pa.Table:
        rows = in_panes(pa.Table.from_batches([partials.tagged(batch)]), batch.times)
        for name in further:
            if name not in rows.schema.names:
                rows = rows.append_column(name, batch.rows.column(name))
        return rows.append_column(HASH, pa.array(hashes_of(rows, partials.keys)))

    return kept


def points_of(partials: Partials, rows: pa.Table) -> TimePartials:
    """The points of rows, whose time is their pane."""
    codes, times = groups_of(rows, partials.keys), rows.column(PANE).to_numpy()
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    cuts = starts(codes) | starts(times)
    panes = np.empty(len(order), np.int64)
    panes[order] = np.cumsum(cuts) - 1
    made = leaves(partials, rows, panes).drop_columns([PANE])
    made = made.append_column(HASH, rows.column(HASH).take(pa.array(order[cuts])))
    return TimePartials(codes[cuts], times[cuts], np.bincount(panes), made)


def within(partials: Partials, points: TimePartials, range: int, since: Microseconds) -> Iterator[TimePartials]:
    """The points from `since` on, each with what its group has from `range` before it up to it."""
    distinct, ranks = np.unique(points.times, return_inverse=True)
    base = points.codes * len(distinct)
    firsts = np.searchsorted(base + ranks, base + np.searchsorted(distinct, points.times - range))
    places = np.flatnonzero(points.times >= since)
    for part, fold in folded(partials, points.partials, firsts[places], places + 1):
        yield points.at(places[part]).holding(fold)


def running(partials: Partials, points: TimePartials, groups: KeyedRuns) -> Iterator[TimePartials]:
    """The points, each with all that its group has up to it.

    `groups` holds what was before them, one row of partials per group, and afterwards what was up to the last of them.
    """
    points = _behind(partials, points, groups.get(points.hashes))
    firsts = np.repeat(points.begins, points.ends - points.begins)
    last = np.append(starts(points.codes)[1:], True)
    kept = []
    for part, fold in folded(partials, points.partials, firsts, np.arange(len(firsts)) + 1):
        found = points.at(np.arange(part.start, part.stop)).holding(fold)
        kept.append(found.partials.filter(pa.array(last[part])))
        if found.counts.any():
            yield found.at(np.flatnonzero(found.counts))
    groups.put(points.hashes, concat_tables(kept))


def _behind(partials: Partials, points: TimePartials, held: list[pa.Table]) -> TimePartials:
    """The points, each group's after what is held of it: a point of no rows, before all others."""
    if not held:
        return points
    made = concat_tables([*held, points.partials])
    before = made.num_rows - len(points.codes)
    codes = groups_of(made, partials.keys)
    times = np.concatenate([np.full(before, NO_BOUND), points.times])
    counts = np.concatenate([np.zeros(before, np.int64), points.counts])
    order = np.lexsort((times, codes))
    return TimePartials(codes[order], times[order], counts[order], made.take(pa.array(order)))
