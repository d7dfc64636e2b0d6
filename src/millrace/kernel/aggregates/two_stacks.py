"""Look back over a range at a cost that does not depend on how many rows lie in it: a queue made of two stacks.

Rules:
- At a flip, at time F, each point of a range before F gets the fold of its group from it up to F: its suffix.
- From then on what a group has from F on is folded as it comes. What a point from F up to F + range looks back to is
  one suffix, and what its group has from F up to it.
- A point beyond F + range needs another flip. So a row is in at most two flips, and nothing has ever to be undone.
- None of it is saved: it can be made again of the rows in range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.functions import partial_bytes
from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.aggregates.span_folds import merged, suffixes
from millrace.kernel.aggregates.time_partials import TimePartials, points_of, running
from millrace.kernel.columns.grouping import groups_of
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import Microseconds, Times, concat_tables
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns

_SMALL = 64
"""Up to this many bytes of a partial it pays to keep one for each row."""


def small(partials: Partials) -> bool:
    """True if these partials are small whatever they hold, so that one may be kept for each row."""
    return partials.mergeable and all(partial_bytes(each.function, ()) <= _SMALL for each in partials.calls)


class TwoStacks:
    """What groups have from `range` before a point up to it, for points from the flip on.

    `before` are the rows of all groups from `range` before the flip up to it.
    """

    def __init__(self, partials: Partials, range: int, flip: Microseconds, before: Sequence[pa.Table]) -> None:
        self.partials = partials
        self.range = range
        self.flip = flip
        self._suffixes = _Suffixes(partials, points_of(partials, concat_tables(before))) if before else None
        self._since = KeyedRuns()

    def reach(self, time: Microseconds) -> bool:
        """True if a point at some time can be answered without another flip."""
        return time <= self.flip + self.range

    def looked_back(self, points: TimePartials) -> Iterator[TimePartials]:
        """The points, each with all that it looks back to; they follow those of the call before."""
        for found in running(self.partials, points, self._since):
            yield found if self._suffixes is None else self._suffixes.before(found, found.times - self.range)

    @property
    def nbytes(self) -> int:
        """The memory of both stacks."""
        return self._since.nbytes + (0 if self._suffixes is None else self._suffixes.nbytes)


class _Suffixes:
    """For each of some points, the fold of its group from it on."""

    def __init__(self, partials: Partials, points: TimePartials) -> None:
        self.partials = partials
        named = [*partials.keys, HASH]
        self._folds = suffixes(partials, points.partials.drop_columns(named), points.codes)
        self._distinct, ranks = np.unique(points.times, return_inverse=True)
        self._order = points.codes * len(self._distinct) + ranks
        self._ends = points.ends
        heads = points.at(points.begins)
        by_hash = np.argsort(heads.hashes)
        self._numbers, self._hashes = heads.codes[by_hash], heads.hashes[by_hash]
        self._heads = heads.partials.select(named).take(pa.array(by_hash))

    @property
    def nbytes(self) -> int:
        """The memory of the folds and of what they are found by."""
        arrays = [self._distinct, self._order, self._ends, self._numbers, self._hashes]
        return int(self._folds.nbytes + self._heads.nbytes + sum(each.nbytes for each in arrays))

    def before(self, points: TimePartials, firsts: Times) -> TimePartials:
        """The points with what is held here of their group in front, each from its time in `firsts` on."""
        places = self._places(points, firsts)
        some = np.flatnonzero(places >= 0)
        if not len(some):
            return points
        held = points.partials.select(self._folds.schema.names)
        both = concat_tables([self._folds.take(pa.array(places[some])), held])
        return points.holding(merged(self.partials, both, np.append(some, np.arange(len(places)))))

    def _places(self, points: TimePartials, firsts: Times) -> Integers:
        """The first place of each point's group that is not before some time; -1 where there is none."""
        groups = self._groups(points)
        ranks = np.searchsorted(self._distinct, firsts)
        places = np.searchsorted(self._order, groups * len(self._distinct) + ranks)
        return np.where((groups >= 0) & (places < self._ends[groups]), places, -1)

    def _groups(self, points: TimePartials) -> Integers:
        """The number that the group of each point has here; -1 where there is none."""
        hashes = np.unique(points.hashes)
        begins = np.searchsorted(self._hashes, hashes)
        counts = np.searchsorted(self._hashes, hashes, side="right") - begins
        chosen = ranges(begins, counts)
        # Groups may share a hash, so their keys are compared.
        heads = self._heads.take(pa.array(chosen))
        codes = groups_of(concat_tables([heads, points.partials.select(heads.schema.names)]), self.partials.keys)
        numbers = np.full(len(codes), -1)
        numbers[codes[: len(chosen)]] = self._numbers[chosen]
        return numbers[codes[len(chosen) :]]
