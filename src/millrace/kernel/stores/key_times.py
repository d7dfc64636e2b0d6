"""Where rows stand that are sorted by the hash of their keys and then by time.

A hash and a time make one number, a cell: so a whole batch of keys and times is looked up by one search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, dense, distinct, stable_order, starts
from millrace.kernel.elements import Mask, Times

_CELLS = 2**62
"""More cells than this are too many for the numbers that there are."""


class KeyTimes:
    """The distinct hashes of sorted rows, where the rows of each begin, and how far they go up to a time."""

    def __init__(self, hashes: Hashes, times: Times) -> None:
        first = starts(hashes)
        self.begins: Integers = np.flatnonzero(first)
        self.hashes = hashes[self.begins]
        self.times = times
        self.codes: Integers = np.cumsum(first) - 1
        """The number of each row's hash among the distinct ones."""
        self._low, self._high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        self._width = self._high - self._low + 1
        self._moments: Times | None = None
        if self._width * len(self.begins) > _CELLS:
            self._moments = distinct(times)
            self._width = len(self._moments)
        self._cells = self.codes * self._width + self._offsets(times)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return int(self._cells.nbytes + self.codes.nbytes + self.begins.nbytes + self.hashes.nbytes)

    @property
    def limits(self) -> Integers:
        """Behind the last row of each distinct hash."""
        return np.append(self.begins[1:], len(self.times))

    def codes_of(self, hashes: Hashes) -> tuple[Integers, Mask]:
        """The number of each hash among the distinct ones, and whether it is there; if not, the number is any."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
        codes = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return codes, self.hashes[codes] == hashes

    def ends(self, codes: Integers, times: Times) -> Integers:
        """Behind the last row of each numbered hash that is at or before each time; where it begins if none is."""
        return np.searchsorted(self._cells, codes * self._width + self._offsets(times), side="right")

    def _offsets(self, times: Times) -> Integers:
        """Each time's place in the row of cells of a hash; -1 before all."""
        if self._moments is not None:
            return np.searchsorted(self._moments, times, side="right") - 1
        offsets: Integers = np.minimum(np.maximum(times, self._low - 1), self._high) - self._low
        return offsets


def order_of(hashes: Hashes, times: Times) -> Integers:
    """The places of rows by hash and then time; those of equal time keep their order."""
    _, codes = dense(hashes)
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return stable_order(codes)
    by_time = np.argsort(times, kind="stable")
    return by_time[stable_order(codes[by_time])]


def merged_order(older: KeyTimes, newer: KeyTimes) -> Integers:
    """The places of sorted rows and other ones behind them, by hash and then time; of equal ones the older first."""
    codes = np.searchsorted(older.hashes, newer.hashes)
    at = np.append(older.begins, len(older))[codes]
    known = np.append(older.hashes, 0)[codes] == newer.hashes
    known[codes == len(older.hashes)] = False
    before = at[newer.codes]
    among = known[newer.codes]
    before[among] = older.ends(codes[newer.codes[among]], newer.times[among])
    places = before + np.arange(len(newer))
    order = np.empty(len(older) + len(newer), np.int64)
    rest = np.ones(len(order), np.bool_)
    rest[places] = False
    order[places] = np.arange(len(older), len(order))
    order[rest] = np.arange(len(older))
    return order


def by_contents(rows: pa.Table, order: Integers, same: Mask, columns: Sequence[str]) -> Integers:
    """The order with ties told apart by contents; `same` says which places tie with the one before them."""
    tied = same.copy()
    tied[:-1] |= same[1:]
    places = np.flatnonzero(tied)
    if not len(places):
        return order
    contents = contents_of(rows.take(pa.array(order[places])), columns)
    groups = np.cumsum(~same)[places]
    found = order.copy()
    found[places] = order[places][np.lexsort([*reversed(contents), groups])]
    return found


def contents_of(rows: pa.Table, columns: Sequence[str]) -> list[npt.NDArray[np.int64]]:
    """Whole numbers in the order of the values of each column, nulls first."""
    return [ordinals(rows.column(name).combine_chunks()) for name in columns]
