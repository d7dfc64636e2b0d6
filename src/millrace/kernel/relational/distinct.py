"""Duplicate elimination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import TIME, Batch, Element, Mask, Punctuation, Times, concat_tables
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.keyed_runs import HASH
from millrace.kernel.stores.sorted_runs import SortedRuns


class Distinct(StoringOperator):
    """Let the first of rows that are equal in `columns` and time pass at once, and no other (004 section 5.4, Dupelim).

    Null equals null. State: the columns of the rows that have passed, at or above the bound, by time and hash: a row is
    compared only with those that have its own. Punctuations: passed on unchanged; what is before them is forgotten.
    """

    label = "distinct"
    senses_bounds = True
    uses_every_bound = True

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._seen = SortedRuns(TIME, _in_order)
        self.stores = (self._seen,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        rows = pa.Table.from_batches([batch.rows]).select([*self.columns, TIME])
        rows = rows.append_column(HASH, pa.array(hashes_of(rows, self.columns)))
        new = self._new(rows)
        if new.any():
            self._seen.add(_in_order([rows.filter(pa.array(new))]))
            yield batch.where(new)

    def _new(self, rows: pa.Table) -> Mask:
        """Which rows are the first of their kind."""
        times, hashes = _integers(rows, TIME), _integers(rows, HASH)
        alike = [_alike(table, times, hashes) for table in self._seen.between(int(times.min()), int(times.max()))]
        tables = concat_tables([*alike, rows])
        before = tables.num_rows - rows.num_rows
        columns = [tables.column(name).combine_chunks() for name in (TIME, *self.columns)]
        codes, first = codes_of(columns, tables.num_rows)
        new: Mask = (first[codes] == np.arange(len(codes)))[before:]
        return new

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._seen.drop(punctuation.until - 1)
        yield punctuation


def _alike(table: pa.Table, times: Times, hashes: Hashes) -> pa.Table:
    """The rows of a run, sorted by time and hash, that have the time and hash of one that is looked for."""
    seen = _integers(table, TIME)
    low, high = np.searchsorted(seen, times), np.searchsorted(seen, times, side="right")
    wanted = high > low
    low, high, hashes = low[wanted], high[wanted], hashes[wanted]
    held = _integers(table, HASH)
    begins, ends = _bisected(held, hashes, low, high, after=False), _bisected(held, hashes, low, high, after=True)
    return table.take(pa.array(np.unique(ranges(begins, ends - begins))))


def _bisected(held: Hashes, wanted: Hashes, low: Integers, high: Integers, *, after: bool) -> Integers:
    """The place of each wanted hash between its low and high place, where those held are in order."""
    while (open_ones := low < high).any():
        middle = np.minimum((low + high) // 2, len(held) - 1)
        right = held[middle] <= wanted if after else held[middle] < wanted
        low = np.where(open_ones & right, middle + 1, low)
        high = np.where(open_ones & ~right, middle, high)
    return low


def _in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables, sorted by time and hash."""
    rows = concat_tables(tables)
    return rows.take(pa.array(np.lexsort((_integers(rows, HASH), _integers(rows, TIME)))))


def _integers(table: pa.Table, name: str) -> Integers:
    integers: Integers = table.column(name).to_numpy()
    return integers
