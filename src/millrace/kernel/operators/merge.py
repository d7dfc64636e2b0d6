"""In-order union, and with one input a sort."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND, TIME, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operators.operator import Operator
from millrace.kernel.runs import SortedRuns, concat_tables
from millrace.kernel.state import Changes


class Merge(Operator):
    """Let rows out in time order, each when its time is no later than the bound of every input.

    This is the union of 001 Fig. 8: rows at the bound itself leave, so rows of equal time are in no order.
    State: the rows above the bound. Punctuations: the least of all inputs, after the rows it releases.
    """

    label = "merge"

    def __init__(self) -> None:
        self._bound: Microseconds = NO_BOUND
        self._waiting = SortedRuns(TIME, concat_tables)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._waiting.add(pa.Table.from_batches([batch.rows]))
        yield from self._released()

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        yield from self._released()
        yield punctuation

    def _released(self) -> Iterator[Element]:
        ready = self._waiting.between(None, self._bound)
        if ready:
            self._waiting.drop(self._bound)
            yield Batch(concat_tables(ready).to_batches()[0]).sorted_by_time()

    def wanted(self) -> Microseconds | None:
        return self._waiting.least()

    @property
    def held(self) -> int:
        return len(self._waiting)

    @property
    def state_bytes(self) -> int:
        return self._waiting.nbytes

    def changes(self) -> Changes:
        changes = self._waiting.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "bound": self._bound})

    def restore(self, changes: Changes) -> None:
        self._waiting.restore(changes)
        self._bound = changes.note["bound"]
