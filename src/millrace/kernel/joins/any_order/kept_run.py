"""A run that a join keeps as a segment, and what is known of its rows: which are still kept, and which were matched.

Rules:
- Rows are released by a bound, never one by one: what a run still holds follows from the bound alone.
- What was matched since the last save is saved as a small segment of its own. The run is never rewritten for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, dense, distinct
from millrace.kernel.elements import END_OF_TIME, Mask, Microseconds
from millrace.kernel.joins.any_order.match_run import MatchRows, MatchRun
from millrace.kernel.state import Segments
from millrace.kernel.stores.recent_rows import concat_rows

MATCHED = "__matched"
"""The column that says which rows had been matched when the run was made."""
RUN = "__run"
"""The column that a segment of matched rows has: the run that they are in."""
_PLACE = "__place"

_MARKS = 8
"""Segments of matched rows that a run may have; when there are more they are made one."""


class KeptRun(MatchRun):
    """A run under its segment's number.

    `numbered`: the distinct keys and each row's number, where they are known.
    """

    def __init__(
        self,
        segments: Segments,
        given: MatchRows,
        number: int | None = None,
        marks: Sequence[int] = (),
        numbered: tuple[Integers, Integers] | None = None,
    ) -> None:
        if isinstance(given, MatchRun):
            # It is in order, and what was computed of it holds.
            vars(self).update(vars(given))
        else:
            super().__init__(given, numbered)
        self._segments = segments
        self._marks = list(marks)
        self._news: list[Integers] = []
        """Rows that have been matched since the last save."""
        self._searched = 0
        """How many rows, in the order of release, are known to have been matched or released."""
        self.number = segments.add(self._segment()) if number is None else number

    def _segment(self) -> pa.Table:
        table = pa.Table.from_batches([self.rows])
        return table if self.matched is None else table.append_column(MATCHED, pa.array(self._flags))

    @property
    def _flags(self) -> Mask:
        assert self.matched is not None, "the side is an outer one"
        return self.matched

    # Releasing

    def count(self, bound: Microseconds) -> int:
        """How many rows are still kept."""
        return len(self) - self.gone(bound)

    def unmatched(self, before: Microseconds, bound: Microseconds) -> pa.RecordBatch | None:
        """The rows that nothing matched, of those that are released as one bound follows another."""
        start, stop = self.gone(before), self.gone(bound)
        if start == stop:
            return None
        leaving = self.leaving[1][start:stop]
        leaving = leaving[~self._flags[leaving]]
        return self.rows.take(pa.array(leaving)) if len(leaving) else None

    # What is kept

    def least_time(self, bound: Microseconds, unmatched: bool) -> Microseconds:
        """The least time of the rows that are still kept, or of those of them that nothing matched."""
        start = self._first_unmatched(bound) if unmatched else self.gone(bound)
        if start == len(self):
            return END_OF_TIME
        if start == 0 and not unmatched:
            return self.span[0]
        if unmatched and self.steady:
            return int(self.times[self.leaving[1][start]])
        return int(self.times[self._left(bound, unmatched)].min())

    def _left(self, bound: Microseconds, unmatched: bool) -> Mask:
        """The rows that are still kept, or those of them that nothing matched."""
        kept: Mask = self.untils >= bound
        return kept & ~self._flags if unmatched else kept

    def least_until(self, bound: Microseconds) -> Microseconds | None:
        """The last match of the row that is released first, of those that nothing matched yet."""
        start = self._first_unmatched(bound)
        return int(self.leaving[0][start]) if start < len(self) else None

    def last_until(self, before: Microseconds, bound: Microseconds, unmatched: bool) -> Microseconds | None:
        """The last match of all rows that are still kept and whose time is before another."""
        if self.span[0] >= before:
            return None
        untils = self.untils[self._left(bound, unmatched) & (self.times < before)]
        return int(untils.max()) if len(untils) else None

    def _first_unmatched(self, bound: Microseconds) -> int:
        """Where the first row that nothing matched stands in the order of release; looked for from the last on."""
        start, step = max(self._searched, self.gone(bound)), 16
        while start < len(self):
            left = np.flatnonzero(~self._flags[self.leaving[1][start : start + step]])
            if len(left):
                start += int(left[0])
                break
            start, step = min(start + step, len(self)), 2 * step
        self._searched = start
        return start

    # State

    def mark(self, rows: Integers) -> None:
        """Say that rows have been matched."""
        news = rows[~self._flags[rows]]
        if len(news):
            self._flags[news] = True
            self._news.append(news)

    def save(self) -> None:
        """Put what was matched since the last save in a segment."""
        if not self._news:
            return
        places = np.unique(np.concatenate(self._news))
        if len(self._marks) >= _MARKS:
            places = np.flatnonzero(self._flags)
            self._remove_marks()
        run = np.full(len(places), self.number)
        self._marks.append(self._segments.add(pa.table({RUN: run, _PLACE: places})))
        self._news = []

    def drop(self) -> None:
        """Remove all its segments."""
        self._segments.remove(self.number)
        self._remove_marks()

    def _remove_marks(self) -> None:
        for mark in self._marks:
            self._segments.remove(mark)
        self._marks = []


def marked(rows: pa.RecordBatch, marks: Sequence[pa.Table]) -> Mask:
    """Which rows of a saved run have been matched: before it was saved, or later, as its marks say."""
    matched: Mask = rows.column(MATCHED).to_numpy(zero_copy_only=False).copy()
    for mark in marks:
        matched[mark.column(_PLACE).to_numpy()] = True
    return matched


def merged(runs: Sequence[KeptRun], segments: Segments, bound: Microseconds) -> KeptRun | None:
    """One run of the rows of several that are still kept; None of none."""
    parts = [_live(kept, bound) for kept in runs]
    parts = [each for each in parts if len(each)]
    if not parts:
        return None
    flags = [each.matched for each in parts if each.matched is not None]
    rows = MatchRows(
        parts[0].reader,
        concat_rows([each.rows for each in parts]),
        np.concatenate([each.times for each in parts]),
        np.concatenate([each.untils for each in parts]),
        np.concatenate(flags) if flags else None,
    )
    return KeptRun(segments, rows, numbered=_numbered(parts))


def _numbered(parts: Sequence[MatchRows]) -> tuple[Integers, Integers]:
    """The distinct keys of all parts, and the number of each row's key."""
    known = [(each.distinct, each.codes) if isinstance(each, MatchRun) else dense(each.values) for each in parts]
    values = distinct(np.concatenate([own for own, _ in known]))
    return values, np.concatenate([np.searchsorted(values, own)[codes] for own, codes in known])


def _live(kept: KeptRun, bound: Microseconds) -> MatchRows:
    return kept if kept.count(bound) == len(kept) else kept.where(kept.untils >= bound)
