"""The rows that came last to one input of a join: few, so that they are looked through instead of searched.

Single rows cost little this way; they become a run, with an index and a segment, when there are many.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, NO_BOUND, Mask, Times
from millrace.kernel.match_keys import Integers, KeyReader, same
from millrace.kernel.match_run import Questions, Run

ROOM = 1024
"""How many rows there may be."""


class Young:
    """A few rows, in the order in which they came."""

    def __init__(self, reader: KeyReader) -> None:
        self.reader = reader
        self._count = 0
        self._times: Times = np.empty(ROOM, np.int64)
        self._untils: Times = np.empty(ROOM, np.int64)
        self._values: Integers = np.empty(ROOM, np.int64)
        self._matched: Mask = np.empty(ROOM, np.bool_)
        self._batches: list[pa.RecordBatch] = []

    def __len__(self) -> int:
        return self._count

    @property
    def times(self) -> Times:
        """Each row's time."""
        return self._times[: self._count]

    @property
    def untils(self) -> Times:
        """The last time that may match each row."""
        return self._untils[: self._count]

    @property
    def matched(self) -> Mask:
        """Which rows have been matched."""
        return self._matched[: self._count]

    @property
    def rows(self) -> pa.RecordBatch:
        """All rows; there are some."""
        if len(self._batches) > 1:
            self._batches = [concat_rows(self._batches)]
        return self._batches[0]

    @property
    def nbytes(self) -> int:
        """The memory of the rows."""
        return sum(int(batch.nbytes) for batch in self._batches)

    def add(self, run: Run, matched: Mask) -> None:
        """Take rows in, for which there is room."""
        start, stop = self._count, self._count + len(run)
        self._times[start:stop] = run.times
        self._untils[start:stop] = run.untils
        self._values[start:stop] = run.values
        self._matched[start:stop] = matched
        self._batches.append(run.rows)
        self._count = stop

    def mark(self, rows: Integers) -> None:
        """Say that rows have been matched."""
        self._matched[rows] = True

    def taken(self) -> tuple[Run, Mask]:
        """All rows as a run, and which of them have been matched; none is left."""
        run = Run(self.reader, self.rows, self.times.copy(), self.untils.copy(), self._values[: self._count].copy())
        matched = self.matched.copy()
        self._count, self._batches = 0, []
        return run, matched

    def answers(self, asked: Questions) -> tuple[Integers, Integers]:
        """Pairs of a question, by its place, and a row that answers it; see `Run.answers`."""
        values = self._values[: self._count]
        if len(asked) == 1:
            matching = values == asked.run.values[asked.rows[0]]
            matching &= self.times <= asked.upper[0]
            matching &= self.untils >= asked.latest[0]
            rows = np.flatnonzero(matching)
            questions = np.zeros(len(rows), np.int64)
        else:
            every = values == asked.run.values[asked.rows][:, None]
            every &= self.times <= asked.upper[:, None]
            every &= self.untils >= asked.latest[:, None]
            questions, rows = np.nonzero(every)
        if not self.reader.exact and len(rows):
            equal = same(asked.run.columns, asked.rows[questions], self.reader.columns(self.rows), rows)
            questions, rows = questions[equal], rows[equal]
        return questions, rows


def concat_rows(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows; where some have no arrival they say that they never arrived."""
    if len({len(each.schema.names) for each in batches}) > 1:
        batches = [_with_arrival(each) for each in batches]
    return pa.concat_batches(batches)


def _with_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that say when they arrived; without a time where that is not known."""
    if ARRIVED in rows.schema.names:
        return rows
    return rows.append_column(ARRIVED, pa.array(np.full(rows.num_rows, NO_BOUND)))
