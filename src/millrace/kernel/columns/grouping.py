"""Group rows by several columns and fold numbers over all groups at once, faster than a hash of whole keys.

Each key column is encoded by its distinct values, whole numbers that lie close together by themselves, and the codes of
a row are folded into one number: its place in an array, where numbers are folded directly. Where places would be too
sparse, they are encoded once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.integers import stable_order

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

_SPARSE = 4
"""Places a row, above which an array is too sparse."""


class Groups:
    """Each row's group, and folds over all groups at once.

    A row's group is a place in an array of `room` places. `taken` are the places that stand for a group, in order
    (None: all of them), and a fold gives a value for each. A group may be without rows: its count and sums are 0, and
    its extremes anything.
    """

    def __init__(self, places: Places, room: int, taken: Places | None = None) -> None:
        self.places = places
        self.room = room
        self.taken = taken

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.room if self.taken is None else len(self.taken)

    @cached_property
    def codes(self) -> Places:
        """Each row's group by number, without gaps."""
        if self.taken is None:
            return self.places
        numbers = np.empty(self.room, np.int64)
        numbers[self.taken] = np.arange(len(self.taken))
        return numbers[self.places]

    @cached_property
    def counts(self) -> Places:
        """How many rows each group has."""
        return self._of_taken(np.bincount(self.places, minlength=self.room))

    @cached_property
    def order(self) -> Places:
        """The rows group by group, in their order."""
        return stable_order(self.codes)

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Which groups have no row."""
        found: npt.NDArray[np.bool_] = self.counts == 0
        return found

    def of(self, rows: npt.NDArray[Any]) -> Groups:
        """The same groups of some of the rows: by a mask, or by number."""
        return Groups(self.places[rows], self.room, self.taken)

    def sums(self, numbers: Numbers) -> Numbers:
        """The sum of each group: int64 or float64. Refuses sums of whole numbers that 64 bits cannot hold."""
        floating = np.issubdtype(numbers.dtype, np.floating)
        if not floating:
            _check_room(numbers, self.places)
        totals = np.zeros(self.room, np.float64 if floating else np.int64)
        np.add.at(totals, self.places, numbers.astype(totals.dtype, copy=False))
        return self._of_taken(totals)

    def extremes(self, numbers: Numbers, *, greatest: bool) -> Numbers:
        """The greatest or the least number of each group; NaN is greater than all."""
        return self._of_taken(self._extremes(numbers, greatest))

    def folded(self, numbers: Numbers, fold: np.ufunc) -> Numbers:
        """The numbers of each group put together by a function that has an identity."""
        found = np.full(self.room, fold.identity, numbers.dtype)
        fold.at(found, self.places, numbers)
        return self._of_taken(found)

    def chosen(self, *columns: pa.Array, greatest: bool) -> pa.Array:
        """The row of each group with the greatest or least values, compared column by column; null without a row.

        Null is less than all values. Rows that agree in all columns are as good as each other.
        """
        rows, groups = np.arange(len(self.places)), self
        for number, column in enumerate(columns):
            numbers = ordinals(column.take(pa.array(rows)) if number else column)
            kept = numbers == groups._extremes(numbers, greatest)[groups.places]
            rows, groups = rows[kept], groups.of(kept)
        found = np.full(self.room, -1, np.int64)
        found[groups.places] = rows
        found = self._of_taken(found)
        return pa.array(found, mask=found < 0)

    def _extremes(self, numbers: Numbers, greatest: bool) -> Numbers:
        found = np.empty(self.room, numbers.dtype)
        # Any value of a place will do as a start, and so no limits of types and no infinities are needed.
        found[self.places] = numbers
        # NaN is a value like any other: nothing to warn of.
        with np.errstate(invalid="ignore"):
            (np.maximum if greatest else np.fmin).at(found, self.places, numbers)
        return found

    def _of_taken(self, found: Numbers) -> Numbers:
        return found if self.taken is None else found[self.taken]


def grouped(rows: pa.Table, by: Sequence[str]) -> tuple[pa.Table, Groups]:
    """The distinct values of some columns, and the groups of rows in their order."""
    places, room = _places([rows.column(name) for name in by], rows.num_rows)
    member = np.full(room, -1, np.int64)
    member[places] = np.arange(rows.num_rows)
    taken = np.flatnonzero(member >= 0)
    return rows.select(list(by)).take(pa.array(member[taken])), Groups(places, room, taken)


def codes_of(columns: Sequence[pa.Array], count: int) -> tuple[Places, Places]:
    """Each row's group by number, numbered as they first turn up, and the first row of each."""
    places, _ = _places([pa.chunked_array([column]) for column in columns], count)
    codes, size = _encoded(pa.array(places))
    first = np.empty(size, np.int64)
    first[codes[::-1]] = np.arange(count)[::-1]
    return codes, first


def groups_of(rows: pa.Table, keys: Sequence[str]) -> Places:
    """Each row's group by number: the same where the keys themselves are equal; null equals null."""
    return codes_of([rows.column(name).combine_chunks() for name in keys], rows.num_rows)[0]


def _places(columns: Sequence[pa.ChunkedArray], count: int) -> tuple[Places, int]:
    """Each row's place, the same for rows of equal columns, and how many places there are."""
    enough = max(_SPARSE * count, 2**16)
    places, room = np.zeros(count, np.int64), 1
    for column in columns:
        whole = column.combine_chunks()
        codes, size = _close_numbers(whole) or _encoded(whole)
        places, room = (codes, size) if room == 1 else (places * size + codes, room * size)
        if room > enough:
            places, room = _encoded(pa.array(places))
    return places, room


def _close_numbers(column: pa.Array) -> tuple[Places, int] | None:
    """Each number's distance from the least one, and how many such there may be; None if these are too many."""
    if not pa.types.is_signed_integer(column.type) or column.null_count or not len(column):
        return None
    numbers = column.to_numpy()
    least = int(numbers.min())
    room = int(numbers.max()) - least + 1
    return (numbers.astype(np.int64) - least, room) if room <= len(numbers) else None


def _encoded(column: pa.Array) -> tuple[Places, int]:
    """Each value's number among the distinct ones, and how many there are; null is one of them."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _check_room(numbers: Numbers, places: Places) -> None:
    """Refuse sums that 64 bits cannot hold; looked at closely only where the numbers are large."""
    if len(numbers) and max(-int(numbers.min()), int(numbers.max())) * len(numbers) >= 2**63:
        totals = np.bincount(places, weights=numbers)
        if (np.abs(totals) >= 2.0**63).any():
            raise pa.ArrowInvalid("overflow in a sum")
