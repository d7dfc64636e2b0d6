"""Newcomers: a few rows that have come lately, kept as they came and looked through one by one.

So single rows cost little; whoever keeps them puts them in order when there are too many to look through.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import NO_BOUND, Times, concat_tables

ENOUGH = 2**12
"""This many are put in order without waiting for anybody to look."""
_PAIRS = 2**16
"""How many pairs of rows are looked at, at most, before it is better to put the rows in order."""


class Newcomers:
    """Rows with the hashes of their keys and their times, in the order in which they came."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._begins: list[int] = []
        self._hashes = np.empty(64, np.int64)
        self._times = np.empty(64, np.int64)
        self._rows = 0
        self.least = 0
        """The least time of a row, if there is one."""

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return sum(int(rows.nbytes) for rows in self._batches)

    @property
    def hashes(self) -> Hashes:
        """The hash of each row."""
        return self._hashes[: self._rows]

    @property
    def times(self) -> Times:
        """The time of each row."""
        return self._times[: self._rows]

    def add(self, rows: pa.RecordBatch, hashes: Hashes, times: Times) -> None:
        """Keep rows, of which there are some."""
        least = int(times.min())
        self.least = min(self.least, least) if self._rows else least
        end = self._rows + len(times)
        if end > len(self._times):
            self._hashes, self._times = (_grown(each, end) for each in (self._hashes, self._times))
        self._hashes[self._rows : end] = hashes
        self._times[self._rows : end] = times
        self._batches.append(rows)
        self._begins.append(self._rows)
        self._rows = end

    def few(self, count: int) -> bool:
        """Whether it is cheap to look all rows through for `count` others."""
        return count * self._rows <= _PAIRS

    def latest(self, hashes: Hashes, times: Times) -> Integers:
        """The latest row of each hash at or before each time, the last of equal ones; -1 for none."""
        eligible = (self.hashes == hashes[:, None]) & (self.times <= times[:, None])
        when = np.where(eligible, self.times, NO_BOUND)[:, ::-1]
        return np.where(eligible.any(axis=1), self._rows - 1 - np.argmax(when, axis=1), -1)

    def rows(self, places: Integers) -> pa.Table:
        """The rows at some places."""
        owners = np.searchsorted(self._begins, places, side="right") - 1
        parts, order = [], []
        for owner in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == owner)
            parts.append(self._batches[owner].take(pa.array(places[mine] - self._begins[owner])))
            order.append(mine)
        found = pa.Table.from_batches(parts).combine_chunks()
        return found if len(parts) == 1 else found.take(pa.array(np.argsort(np.concatenate(order))))

    def take_all(self) -> tuple[pa.Table, Hashes, Times]:
        """All rows with their hashes and times, which are no longer here then."""
        taken = concat_tables([pa.Table.from_batches(self._batches)]), self.hashes.copy(), self.times.copy()
        self.clear()
        return taken

    def clear(self) -> None:
        """Let go of everything."""
        self._batches, self._begins, self._rows = [], [], 0


def _grown(numbers: Times, room: int) -> Times:
    larger = np.empty(max(room, 2 * len(numbers)), np.int64)
    larger[: len(numbers)] = numbers
    return larger
