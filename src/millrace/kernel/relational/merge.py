"""In-order union, and with one input a sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.elements import NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer


class Merge(StoringOperator):
    """Let rows out in time order, each when its time is no later than the bound of every input.

    This is the union of 001 Fig. 8: rows at the bound itself leave, so rows of equal time are in no order. With an
    `order` of columns (and whether each falls), rows of equal time are sorted, and leave when the bound is past it.
    State: the rows above the bound. Punctuations: the least of all inputs, after the rows it releases.
    """

    label = "merge"
    passes_rows = True
    holds = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("bound",)

    def __init__(self, order: tuple[tuple[str, bool], ...] = ()) -> None:
        self._order = order
        self._bound: Microseconds = NO_BOUND
        self._waiting = HoldBuffer()
        self.stores = (self._waiting,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        times = batch.times
        if not self._order and int(times[0] if len(times) == 1 else times.max()) <= self._bound:
            yield batch.sorted_by_time()
            return
        self._waiting.add(batch)
        yield from self._released()

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        yield from self._released()
        yield punctuation

    def _released(self) -> Iterator[Element]:
        rows = self._waiting.release(self._bound - bool(self._order))
        if rows is not None:
            yield self._sorted(rows) if self._order else rows

    def _sorted(self, batch: Batch) -> Batch:
        columns = [batch.times, *(_ordinals(batch.rows.column(name), falls) for name, falls in self._order)]
        # The last key is the first to be sorted by.
        return Batch(batch.rows.take(pa.array(np.lexsort(columns[::-1]))))

    def wanted(self) -> Microseconds | None:
        least = self._waiting.least
        return None if least is None else least + bool(self._order)


def _ordinals(column: pa.Array, falls: bool) -> npt.NDArray[Any]:
    """Numbers in the order of values; null is the least."""
    # The complement turns the order round and, unlike the negative, exists for every whole number.
    return ~ordinals(column) if falls else ordinals(column)
