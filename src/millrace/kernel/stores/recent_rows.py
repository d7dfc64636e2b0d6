"""Recent rows: a few rows kept as they came, each with numbers beside it, and looked through one by one.

So a row that comes alone costs little. The owner puts the rows in order when there are too many to look through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.integers import grown
from millrace.kernel.elements import ARRIVED, NO_BOUND

_FIRST_ROOM = 64


class RecentRows:
    """Rows in the order in which they came, with arrays of `kinds` beside them.

    >>> recent = RecentRows(np.int64)
    >>> for name, time in (("a", 5), ("b", 7)):
    ...     recent.add(pa.record_batch({"name": [name]}), np.array([time]))
    >>> recent.rows.column("name").to_pylist(), recent.numbers(0).tolist()
    (['a', 'b'], [5, 7])
    """

    def __init__(self, *kinds: type[np.generic]) -> None:
        self._count = 0
        self._batches: list[pa.RecordBatch] = []
        self._numbers: list[npt.NDArray[Any]] = [np.empty(_FIRST_ROOM, kind) for kind in kinds]

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory of the rows."""
        return sum(int(rows.nbytes) for rows in self._batches)

    @property
    def rows(self) -> pa.RecordBatch:
        """All rows, of which there are some."""
        if len(self._batches) > 1:
            self._batches = [concat_rows(self._batches)]
        return self._batches[0]

    def numbers(self, place: int) -> npt.NDArray[Any]:
        """One of the arrays: a number per row."""
        return self._numbers[place][: self._count]

    def add(self, rows: pa.RecordBatch, *numbers: npt.NDArray[Any] | bool) -> None:
        """Keep rows, of which there are some."""
        start, stop = self._count, self._count + rows.num_rows
        if stop > len(self._numbers[0]):
            self._numbers = [grown(each, stop, 0) for each in self._numbers]
        for place, given in enumerate(numbers):
            self._numbers[place][start:stop] = given
        self._batches.append(rows)
        self._count = stop


def concat_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows; where only some say when they arrived, the others say that they never did."""
    if len({len(each.schema.names) for each in batches}) > 1:
        batches = [_with_arrival(each) for each in batches]
    return pa.concat_batches(batches)


def _with_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    if ARRIVED in rows.schema.names:
        return rows
    return rows.append_column(ARRIVED, pa.array(np.full(rows.num_rows, NO_BOUND)))
