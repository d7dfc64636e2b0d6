"""Aggregate by the pair of times that rows were joined from."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.aggregates.panes.pair_panes import PairPanes
from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.elements import END_OF_TIME, Batch, Element, JointPunctuation, Microseconds


class PairAggregate(WindowAggregate):
    """Aggregate joined rows of equal keys, two of which are the times of both sides (004 section 7).

    The windows of `partials` are instants: a row's own time is the later of the columns `first` and `second`.
    State: partial aggregates by the later time and keys, in sorted runs. Punctuations: a bound closes all pairs whose
    later time is below it, and is passed on: the time of a result is the later one. A promise about pairs closes those
    that are below it in both times, whatever the bound, and is passed on.
    """

    label = "pair aggregate"

    def __init__(self, partials: Partials, first: str, second: str) -> None:
        super().__init__(partials)
        self.first = first
        self.second = second
        self._panes = self._pairs = PairPanes(partials, first, second)
        self.stores = (self._pairs,)
        self._least_pair = (END_OF_TIME, END_OF_TIME)
        """The least first and the least second time of rows that have been gathered but not settled."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        first, second = self._least_pair
        self._least_pair = min(first, _least(batch, self.first)), min(second, _least(batch, self.second))
        return super().on_batch(port, batch)

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        first, second = punctuation.until
        # Rows stay gathered while the promise says nothing about them.
        if self._least_pair[0] < first and self._least_pair[1] < second:
            self._settle()
        yield from map(self._results, self._pairs.close_pairs(punctuation.until))
        yield punctuation

    def _settle(self) -> None:
        super()._settle()
        self._least_pair = (END_OF_TIME, END_OF_TIME)


def _least(batch: Batch, name: str) -> Microseconds:
    """The least time in a column; the end of time if there is none."""
    times = batch.rows.column(name).cast(pa.int64()).fill_null(END_OF_TIME).to_numpy()
    return int(times.min())
