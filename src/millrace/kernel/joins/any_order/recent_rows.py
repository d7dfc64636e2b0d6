"""The rows that came last to one input of a join: few, so that they are looked through instead of searched.

Single rows cost little this way; they become a run, with an index and a segment, when there are many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, NO_BOUND, Mask, Times
from millrace.kernel.joins.any_order.match_keys import Integers, KeyReader, same
from millrace.kernel.joins.any_order.match_run import Questions, Rows

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

    def add(self, given: Rows) -> None:
        """Take rows in, for which there is room."""
        start, stop = self._count, self._count + len(given)
        self._times[start:stop] = given.times
        self._untils[start:stop] = given.untils
        self._values[start:stop] = given.values
        self._matched[start:stop] = False if given.matched is None else given.matched
        self._batches.append(given.rows)
        self._count = stop

    def mark(self, rows: Integers) -> None:
        """Say that rows have been matched."""
        self._matched[rows] = True

    def all(self) -> Rows:
        """All of them as rows like others."""
        values = self._values[: self._count]
        return Rows(self.reader, self.rows, self.times, self.untils, self.matched, values)

    def answers(self, asked: Questions) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of a question and a row that answers it, if there are any; see `Run.answers`."""
        values, own = asked.of(asked.source.values), self._values[: self._count]
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
