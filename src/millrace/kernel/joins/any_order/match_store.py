"""The rows of one input of a join that others may still match.

Rules:
- A row is kept until the bound of every other input has passed the last time that may match it, its `until`.
- Rows that came last are few and are looked through. Others stand in runs, each a segment with an index.
- A run holds rows that are released at about the same time, within a slice of the time that rows are kept. Runs of a
  slice are merged when there are several of similar size. A run is dropped whole, and never rewritten otherwise.
- However long rows are kept there are few runs: where there would be many, slices become wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.comparison import without_null
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Mask, Microseconds, Times
from millrace.kernel.joins.any_order.kept_run import MATCHED, RUN, KeptRun, marked, merged
from millrace.kernel.joins.any_order.match_keys import KeyReader, same
from millrace.kernel.joins.any_order.match_run import FEW, MatchRows, MatchRun, Questions, shifted
from millrace.kernel.joins.sides import Side
from millrace.kernel.state import Changes, Segments
from millrace.kernel.stores.recent_rows import RecentRows, concat_rows

ROOM = 1024
"""Recent rows, above which a run is made of them."""
_MANY = 12
"""Runs, above which slices become wider."""
_SIMILAR = 3
"""Runs of a slice that are left as they are."""
_LOOKED_THROUGH = 2**16
"""Pairs of rows that are looked through rather than searched."""


class RecentMatches(RecentRows):
    """Recent rows with their times, the last times that may match them, their keys as numbers, and what was matched."""

    def __init__(self, reader: KeyReader) -> None:
        super().__init__(np.int64, np.int64, np.int64, np.bool_)
        self.reader = reader

    @property
    def times(self) -> Times:
        """Each row's time."""
        return self.numbers(0)

    @property
    def untils(self) -> Times:
        """The last time that may match each row."""
        return self.numbers(1)

    @property
    def values(self) -> Integers:
        """Each row's key as a number."""
        return self.numbers(2)

    @property
    def matched(self) -> Mask:
        """Which rows have been matched."""
        return self.numbers(3)

    def keep(self, given: MatchRows) -> None:
        """Keep rows, of which there are some."""
        matched = False if given.matched is None else given.matched
        self.add(given.rows, given.times, given.untils, given.values, matched)

    def mark(self, rows: Integers) -> None:
        """Say that rows have been matched."""
        self.matched[rows] = True

    def all(self) -> MatchRows:
        """All of them as rows like others."""
        return MatchRows(self.reader, self.rows, self.times, self.untils, self.matched, self.values)

    def answers(self, asked: Questions) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of a question and a row that answers it, if there are any; see `Run.answers`."""
        values, own = asked.of(asked.source.values), self.values
        if len(asked) == 1:
            rows = np.flatnonzero(
                (own == values[0]) & (self.times <= asked.upper[0]) & (self.untils >= asked.latest[0])
            )
            questions = np.zeros(len(rows), np.int64)
        else:
            every = own == values[:, None]
            every &= self.times <= asked.upper[:, None]
            every &= self.untils >= asked.latest[:, None]
            questions, rows = np.nonzero(every)
        if len(rows) and not self.reader.exact:
            equal = same(asked.source.columns, asked.rows(questions), self.reader.columns(self.rows), rows)
            questions, rows = questions[equal], rows[equal]
        if len(rows):
            yield questions, rows


Holder = MatchRows | RecentMatches


class MatchStore:
    """The rows of one input, kept while they may match."""

    def __init__(self, side: Side, schema: pa.Schema, reach: int | None) -> None:
        self.side = side
        self.reader = KeyReader(side.keys, schema)
        self.bound: Microseconds = NO_BOUND
        """Rows whose last match is below it have been released."""
        self._width = None if reach is None else max(reach // 4, 1)
        self._level = 0
        """How many times the width of slices has been doubled."""
        self._recent = RecentMatches(self.reader)
        self._runs: list[KeptRun] = []
        self._segments = Segments()

    def read(self, batch: Batch) -> tuple[MatchRows, pa.RecordBatch | None]:
        """The rows that may match something, and those that match nothing, if there are any."""
        rows, times = batch.rows, batch.times
        untils, usable = self.last_matches(rows, times), without_null([rows.column(name) for name in self.reader.names])
        if self.side.until is not None and rows.column(self.side.until).null_count:
            valid = rows.column(self.side.until).is_valid().to_numpy(zero_copy_only=False)
            usable = valid if usable is None else usable & valid
        if usable is None:
            return self._rows(rows, times, untils), None
        kept = self._rows(rows.filter(pa.array(usable)), times[usable], untils[usable])
        return kept, rows.filter(pa.array(~usable))

    def _rows(self, rows: pa.RecordBatch, times: Times, untils: Times) -> MatchRows:
        """Rows ready to ask: many are sorted, so that those of a key ask one after another."""
        read = MatchRows(self.reader, rows, times, untils, np.zeros(len(times), np.bool_) if self.side.outer else None)
        return MatchRun(read) if len(read) > FEW else read

    def last_matches(self, rows: pa.RecordBatch, times: Times) -> Times:
        """The last time that may match each row."""
        untils = times if self.side.ahead is None else shifted(times, self.side.ahead)
        if self.side.until is None:
            return untils
        ends: Times = rows.column(self.side.until).cast(pa.int64()).fill_null(NO_BOUND).to_numpy()
        return ends if self.side.ahead is None else np.minimum(untils, ends)

    # Looking up

    def answers(self, asked: Questions) -> Iterator[tuple[KeptRun | RecentMatches, Integers, Integers]]:
        """Where answers stand, each with pairs of a question, by its place, and a row there that answers it."""
        if len(self._recent) * len(asked) > _LOOKED_THROUGH:
            self._settle()
        first, last = int(asked.latest.min()), int(asked.upper.max())
        for kept in list(self._runs):
            if kept.last >= first and kept.span[0] <= last:
                for pairs in kept.answers(asked, self.side.ahead, self.side.until is not None):
                    yield kept, *pairs
        for pairs in self._recent.answers(asked) if len(self._recent) else ():
            yield self._recent, *pairs

    # Keeping

    def add(self, rows: MatchRows) -> None:
        """Keep rows."""
        if len(rows) > ROOM // 2:
            self._keep(rows)
            return
        if len(self._recent) + len(rows) > ROOM:
            self._make_room()
        if len(rows):
            self._recent.keep(rows)

    def _make_room(self) -> None:
        """Make room among the recent rows: drop those that were released, or else keep all in runs."""
        rows = self._no_longer_recent()
        live = rows.where(~passed(rows.untils, self.bound))
        if 2 * len(live) > len(rows):
            self._keep(live)
        elif len(live):
            self._recent.keep(live)

    def _settle(self) -> None:
        """Make a run of the recent rows."""
        if len(self._recent):
            self._keep(self._no_longer_recent())

    def _no_longer_recent(self) -> MatchRows:
        """The recent rows, which are no longer among them; what has been found there stays where it is."""
        rows, self._recent = self._recent.all(), RecentMatches(self.reader)
        return rows

    def _keep(self, rows: MatchRows) -> None:
        """Keep rows in runs, a slice each."""
        rows = rows.where(~passed(rows.untils, self.bound))
        if len(rows):
            rows.matched = rows.matched if self.side.outer else None
            self._runs += [KeptRun(self._segments, part) for part in self._cut(rows)]
            self._merge()

    def _cut(self, rows: MatchRows) -> Iterator[MatchRows]:
        """Rows by slices, which are as wide as most of them need; what is far ahead is by itself."""
        first, last, width = _middle(rows.untils, 0.1), _middle(rows.untils, 0.9), self._slice(rows)
        while last - first > width:
            width *= 2
        if rows.last - rows.first <= 2 * width:
            yield rows
            return
        slices = np.clip(rows.untils // width, first // width, last // width + 1)
        for number in range(int(slices.min()), int(slices.max()) + 1):
            part = rows.where(slices == number)
            if len(part):
                yield part

    def _slice(self, rows: MatchRows | None = None) -> int:
        """How wide a slice is."""
        if self._width is None and rows is not None:
            # Where a column says how long rows are kept, the first of them are taken for an example.
            reach = _middle(rows.untils, 0.5) - _middle(rows.times, 0.5)
            self._width = max(reach // 4, 1)
        return (self._width or 1) << self._level

    def _merge(self) -> None:
        """Merge runs of similar size of a slice; where there are many slices they become wider."""
        self._merge_slices()
        while len(self._runs) > _MANY and self._slice() < 2**62:
            self._level += 1
            self._merge_slices()

    def _merge_slices(self) -> None:
        slices: dict[int, list[KeptRun]] = {}
        for kept in self._runs:
            slices.setdefault(kept.last // self._slice(), []).append(kept)
        for runs in slices.values():
            if len(runs) > _SIMILAR:
                self._replace(_similar(runs))

    def _replace(self, runs: Sequence[KeptRun]) -> None:
        """Make one run of several."""
        made = merged(runs, self._segments, self.bound)
        for kept in runs:
            kept.drop()
        self._runs = [kept for kept in self._runs if kept not in runs]
        self._runs += [] if made is None else [made]

    # Releasing

    def release(self, bound: Microseconds) -> pa.RecordBatch | None:
        """Release the rows that only times below a bound may match; those of an outer side that nothing matched."""
        before, self.bound = self.bound, bound
        unmatched = self._unmatched(before, bound) if self.side.outer else []
        gone = [kept for kept in self._runs if kept.last < bound or bound == END_OF_TIME]
        for kept in gone:
            kept.drop()
        if gone:
            self._runs = [kept for kept in self._runs if kept not in gone]
            self._level -= self._level > 0 and len(self._runs) <= _MANY // 3
        if bound == END_OF_TIME:
            self._recent = RecentMatches(self.reader)
        return concat_rows(unmatched) if unmatched else None

    def _unmatched(self, before: Microseconds, bound: Microseconds) -> list[pa.RecordBatch]:
        """The rows that nothing matched, of those that are released as one bound follows another."""
        found = [kept.unmatched(before, bound) for kept in self._runs]
        if len(self._recent):
            recent = self._recent
            left = ~recent.matched & passed(recent.untils, bound) & ~passed(recent.untils, before)
            if left.any():
                found.append(recent.rows.filter(pa.array(left)))
        return [each for each in found if each is not None]

    # What is kept

    def least_time(self, *, unmatched: bool = False) -> Microseconds:
        """The least time of the rows that are kept, or of those that nothing has matched yet."""
        times = [kept.least_time(self.bound, unmatched) for kept in self._runs]
        times += [int(self._recent.times[self._recent_rows(unmatched)].min(initial=END_OF_TIME))]
        return min(times)

    def least_until(self) -> Microseconds | None:
        """The bound of the others below which a row that nothing has matched yet is not released."""
        untils = [until for kept in self._runs if (until := kept.least_until(self.bound)) is not None]
        recent = self._recent.untils[self._recent_rows(True)]
        return min([*untils, *([int(recent.min())] if len(recent) else [])], default=None)

    def last_until(self, before: Microseconds, *, unmatched: bool = False) -> Microseconds | None:
        """The last time that may match a row whose own time is before another."""
        untils = [kept.last_until(before, self.bound, unmatched) for kept in self._runs]
        recent = self._recent.untils[self._recent_rows(unmatched) & (self._recent.times < before)]
        found = [until for until in untils if until is not None]
        return max([*found, *([int(recent.max())] if len(recent) else [])], default=None)

    def _recent_rows(self, unmatched: bool) -> Mask:
        live = ~passed(self._recent.untils, self.bound)
        return live & ~self._recent.matched if unmatched else live

    def __len__(self) -> int:
        recent = int(np.count_nonzero(self._recent_rows(False))) if len(self._recent) else 0
        return recent + sum([kept.count(self.bound) for kept in self._runs])

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._recent.nbytes + sum([int(kept.rows.nbytes) for kept in self._runs])

    # State

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        for kept in self._runs:
            kept.save()
        note = {"bound": self.bound, "width": self._width, "level": self._level, "next": self._segments.following}
        return self._segments.changes(note)

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        note = changes.note
        self.bound, self._width, self._level = note["bound"], note["width"], note["level"]
        self._segments.restore(changes.added, note["next"])
        marks: dict[int, list[int]] = {}
        for number, table in changes.added.items():
            if RUN in table.schema.names:
                marks.setdefault(table.column(RUN)[0].as_py(), []).append(number)
        runs = [number for number, table in self._segments.live.items() if RUN not in table.schema.names]
        self._runs = [self._restored(number, marks.get(number, [])) for number in runs]

    def _restored(self, number: int, marks: list[int]) -> KeptRun:
        rows = pa.Table.to_batches(self._segments.live[number].combine_chunks())[0]
        times: Times = rows.column(TIME).to_numpy()
        matched = None
        if self.side.outer:
            matched = marked(rows, [self._segments.live[mark] for mark in marks])
            rows = rows.drop_columns([MATCHED])
        read = MatchRows(self.reader, rows, times, self.last_matches(rows, times), matched)
        kept = KeptRun(self._segments, read, number, marks)
        if not kept.moved:
            return kept
        # It was sorted by other numbers than today's, and marks go by place: it is made anew.
        kept.drop()
        return KeptRun(self._segments, kept)


def passed(untils: Times, bound: Microseconds) -> Mask:
    """True where no future row can match; at the end of time that is everywhere."""
    gone: Mask = untils < bound
    return gone if bound < END_OF_TIME else np.ones(len(untils), np.bool_)


def _similar(runs: Sequence[KeptRun]) -> list[KeptRun]:
    """The smallest runs, and others as long as they are not much larger than those together."""
    ordered = sorted(runs, key=len)
    chosen, rows = ordered[:2], sum([len(kept) for kept in ordered[:2]])
    for kept in ordered[2:]:
        if len(kept) > 2 * rows:
            break
        chosen.append(kept)
        rows += len(kept)
    return chosen


def _middle(numbers: Times, share: float) -> int:
    """A number above a share of all, as far as a sample can tell."""
    sample = np.sort(numbers[:: len(numbers) // 256 + 1])
    return int(sample[int(share * (len(sample) - 1))])
