"""In-order union, and with one input a sort."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer


class Merge(StoringOperator):
    """Let rows out in time order, each when its time is no later than the bound of every input.

    This is the union of 001 Fig. 8: rows at the bound itself leave, so rows of equal time are in no order.
    State: the rows above the bound. Punctuations: the least of all inputs, after the rows it releases.
    """

    label = "merge"
    passes_rows = True
    holds = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("bound",)

    def __init__(self) -> None:
        self._bound: Microseconds = NO_BOUND
        self._waiting = HoldBuffer()
        self.stores = (self._waiting,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        times = batch.times
        if int(times[0] if len(times) == 1 else times.max()) <= self._bound:
            yield batch.sorted_by_time()
            return
        self._waiting.add(batch)
        yield from self._released()

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        yield from self._released()
        yield punctuation

    def _released(self) -> Iterator[Element]:
        rows = self._waiting.release(self._bound)
        if rows is not None:
            yield rows

    def wanted(self) -> Microseconds | None:
        return self._waiting.least
