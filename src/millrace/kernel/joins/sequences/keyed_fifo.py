"""Queues: rows of each key in the order of their times, taken from the front.

Rules:
- What is taken or too old is the front of its queue, and what comes later stands behind it. So of the rows of a key in
  a run only the first that is left is remembered.
- A run is one segment, sorted by hash and then time, and never changed. Which of its rows have been taken is saved as
  their numbers alone. Runs of similar size are merged, and one of which more than half has gone is written anew.
- Different keys may share a hash: what is found is compared, and where it is of another key the queues are separated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import canonical, same_keys, with_whole_keys, without_null
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Microseconds, Times, concat_tables
from millrace.kernel.joins.sequences.fifo_runs import ENTRY, QueueRun, Served, serve
from millrace.kernel.state import Changes, Segments, combined, separated
from millrace.kernel.stores.key_times import KeyTimes, by_contents, merged_order, order_of
from millrace.kernel.stores.newcomers import ENOUGH, Newcomers
from millrace.kernel.stores.sorted_runs import SortedRuns

_FEW = 2**16
"""Rows are gathered up to this number before they are sorted, so that single rows cost little."""


class Queues:
    """Rows by their columns `keys`, taken by keys and time, at most `within` before it.

    Of equal times the row that was added first is the first, or else the least by its `columns`.
    """

    def __init__(
        self, keys: Sequence[str], columns: Sequence[str], within: int | None = None, *, by_entry: bool = True
    ) -> None:
        self.keys = list(keys)
        self.columns = None if by_entry else list(columns)
        self.within = within
        self.floor: Microseconds = NO_BOUND
        self._runs: list[QueueRun] = []
        self._new = Newcomers()
        self._segments = Segments()
        self._entered = 0
        self._taken = SortedRuns(ENTRY, concat_tables)
        """The numbers of rows that have been taken, but stand in a segment."""
        self._unsaved: list[Integers] = []

    def __len__(self) -> int:
        return sum([run.left for run in self._runs]) + len(self._new)

    @property
    def nbytes(self) -> int:
        """The memory of all rows and of what finds them."""
        return sum(run.nbytes for run in self._runs) + self._new.nbytes + self._taken.nbytes

    def add(self, batch: Batch) -> None:
        """Keep rows; those with a null key are never taken."""
        batch = with_whole_keys(batch, self.keys)
        if len(batch) and self.floor < END_OF_TIME:
            self._new.add(batch.rows, hashes_of(batch.rows, self.keys), batch.times)
            if len(self._new) >= _FEW:
                self.settle()

    def raise_floor(self, floor: Microseconds) -> None:
        """From now on nobody comes with a time below `floor`."""
        if floor == self.floor:
            return
        self.floor = floor
        if floor == END_OF_TIME:
            self._clear()
        elif self.within is not None:
            for run in self._runs:
                run.expire(self._oldest)
            self._tidy()

    def take(self, keys: Sequence[pa.Array], times: Times) -> tuple[Integers, pa.Table | None]:
        """The first row left for each of some keys and times, in their order, as its place in a table; -1 for none.

        They come in order of time, and never before one that has come already.
        """
        if len(self._new) and self._new.least <= int(times.max()):
            self.settle()
        valid = without_null(keys)
        comers = np.arange(len(times)) if valid is None else np.flatnonzero(valid)
        hashes = hashing.hashes(keys, len(times)).view(np.int64)
        served = self._serve(self._runs, hashes, times, comers)
        wrong = self._of_other_keys(served, keys)
        parts = [served]
        if len(wrong):
            alike = np.isin(hashes[comers], hashes[wrong])
            parts = [self._serve(self._runs, hashes, times, comers[~alike])]
            parts.append(self._parted(keys, hashes, times, comers[alike]))
        self._unsaved += parts[0].take()
        self._tidy()
        return _together(parts, len(times))

    def settle(self) -> None:
        """Put the rows that were gathered in order, and let go of those that are too old."""
        if len(self._new):
            self._append(*self._new.take_all())
            self._merge_similar()

    def changes(self) -> Changes:
        """What changed since the last save."""
        self.settle()
        taken = sum([run.gone for run in self._runs])
        unsaved = sum([len(each) for each in self._unsaved])
        if len(self._taken) + unsaved > 2 * taken + ENOUGH:
            self._taken.clear()
            self._unsaved = [run.entries_gone() for run in self._runs]
        if self._unsaved:
            self._taken.add(pa.table({ENTRY: np.concatenate(self._unsaved)}))
            self._unsaved = []
        note = {"order": [run.number for run in self._runs], "floor": self.floor, "entered": self._entered,
                "next": self._segments.following}  # fmt: skip
        return combined([self._segments.changes(note), self._taken.changes()], {})

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments (all of them, as `added`) and the note of the last save."""
        rows, taken = separated(changes)
        self._segments.restore(rows.added, rows.note["next"])
        self._taken.restore(taken)
        self.floor, self._entered = rows.note["floor"], rows.note["entered"]
        numbers = [table.column(ENTRY).to_numpy() for table in self._taken.between(None, END_OF_TIME)]
        for number in rows.note["order"]:
            table = self._segments.live[number]
            run = self._run(number, table, KeyTimes(hashes_of(table, self.keys), _times(table)))
            run.mark(np.isin(run.entries, np.concatenate(numbers)) if numbers else np.zeros(len(run), np.bool_))
            run.expire(self._oldest)
            self._runs.append(run)

    # Serving

    def _serve(self, runs: Sequence[QueueRun], hashes: Hashes, times: Times, comers: Integers) -> Served:
        return serve(runs, hashes[comers], times[comers], self.within, self.columns).of(comers)

    def _of_other_keys(self, served: Served, keys: Sequence[pa.Array]) -> Integers:
        """Who would be given a row that only shares the hash of his keys."""
        if served.table is None:
            return served.comers
        own = [key.take(pa.array(served.comers)) for key in keys]
        same = same_keys(own, [served.table.column(name) for name in self.keys])
        return served.comers[:0] if same is None else served.comers[~same]

    def _parted(self, keys: Sequence[pa.Array], hashes: Hashes, times: Times, comers: Integers) -> Served:
        """Serve those whose keys share a hash with others: by the keys themselves, in queues of their own."""
        pulled = [run.pull(hashes[comers]) for run in self._runs]
        near = concat_tables(pulled)
        self._unsaved.append(near.column(ENTRY).to_numpy())
        chosen = pa.array(comers)
        columns = [
            canonical(pa.concat_arrays([key.take(chosen), near.column(name).combine_chunks()]))
            for key, name in zip(keys, self.keys, strict=True)
        ]
        codes, _ = codes_of(columns, len(comers) + near.num_rows)
        own, others = codes[: len(comers)], codes[len(comers) :]
        order = self._order(near, others, _times(near))
        run = self._run(-1, near.take(pa.array(order)), KeyTimes(others[order], _times(near)[order]))
        served = serve([run], own, times[comers], self.within, self.columns).of(comers)
        served.take()
        rest = run.rest().drop_columns([ENTRY])
        # They get new numbers, for under the old ones they have been taken.
        self._append(rest, hashes_of(rest, self.keys), _times(rest))
        return served

    # Keeping

    @property
    def _oldest(self) -> Microseconds:
        """Rows before this time are too old for all who may come."""
        return NO_BOUND if self.within is None else max(self.floor - self.within, NO_BOUND)

    def _append(self, rows: pa.Table, hashes: Hashes, times: Times) -> None:
        """Keep rows as a run, numbered as they stand."""
        rows = rows.append_column(ENTRY, pa.array(np.arange(self._entered, self._entered + len(times))))
        self._entered += len(times)
        order = self._order(rows, hashes, times)
        order = order[times[order] >= self._oldest]
        self._insert(len(self._runs), rows.take(pa.array(order)), KeyTimes(hashes[order], times[order]))

    def _order(self, rows: pa.Table, hashes: Hashes, times: Times) -> Integers:
        return self._tied(rows, order_of(hashes, times), hashes, times)

    def _tied(self, rows: pa.Table, order: Integers, hashes: Hashes, times: Times) -> Integers:
        """The order of rows by hash and time, with ties told apart as they must be."""
        if self.columns is None:
            return order
        hashes, times = hashes[order], times[order]
        same = np.append(False, (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1]))[: len(order)]
        return by_contents(rows, order, same, self.columns)

    def _run(self, number: int, table: pa.Table, index: KeyTimes) -> QueueRun:
        return QueueRun(number, table, index, expires=self.within is not None)

    def _insert(self, place: int, table: pa.Table, index: KeyTimes) -> None:
        if len(index):
            self._runs.insert(place, self._run(self._segments.add(table), table, index))

    def _tidy(self) -> None:
        """Write anew what has gone by more than half, and let go of what has gone altogether."""
        spent = [run for run in self._runs if not run.left or 2 * run.gone > max(len(run), ENOUGH)]
        for run in spent:
            place = self._remove(run)
            if run.left:
                rest = run.rest()
                self._insert(place, rest, KeyTimes(hashes_of(rest, self.keys), _times(rest)))
        if spent:
            self._merge_similar()

    def _merge_similar(self) -> None:
        for place in reversed(range(len(self._runs) - 1)):
            older, newer = self._runs[place : place + 2]
            if older.left <= 2 * newer.left:
                self._merge(older, newer)

    def _merge(self, older: QueueRun, newer: QueueRun) -> None:
        parts = [older.rest_index(), newer.rest_index()]
        rows = concat_tables([older.rest(), newer.rest()])
        hashes = np.concatenate([part.hashes[part.codes] for part in parts])
        times = np.concatenate([part.times for part in parts])
        order = self._tied(rows, merged_order(*parts), hashes, times)
        self._remove(newer)
        place = self._remove(older)
        self._insert(place, rows.take(pa.array(order)), KeyTimes(hashes[order], times[order]))

    def _remove(self, run: QueueRun) -> int:
        """Let a run go; the place where it stood."""
        place = self._runs.index(run)
        del self._runs[place]
        self._segments.remove(run.number)
        return place

    def _clear(self) -> None:
        self._new.clear()
        for run in list(self._runs):
            self._remove(run)


def _times(table: pa.Table) -> Times:
    times: Times = table.column(TIME).to_numpy()
    return times


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
