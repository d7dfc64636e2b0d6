"""In-order union, and with one input a sort."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND, TIME, Batch, Element, Microseconds, Punctuation, concat
from millrace.kernel.operators.operator import Operator
from millrace.kernel.runs import SortedRuns, concat_tables
from millrace.kernel.state import Changes

_FEW = 2**16
"""Rows are gathered up to this number before they are sorted, so that single rows cost little."""


class Merge(Operator):
    """Let rows out in time order, each when its time is no later than the bound of every input.

    This is the union of 001 Fig. 8: rows at the bound itself leave, so rows of equal time are in no order.
    State: the rows above the bound. Punctuations: the least of all inputs, after the rows it releases.
    """

    label = "merge"
    holds = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(self) -> None:
        self._bound: Microseconds = NO_BOUND
        self._waiting = SortedRuns(TIME, concat_tables)
        self._gathered: list[Batch] = []
        self._rows = 0
        self._least: Microseconds = 0
        self._greatest: Microseconds = 0
        """Rows that wait but have not been sorted yet: how many, and their span."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        times = batch.times
        least = greatest = int(times[0])
        if len(times) > 1:
            least, greatest = int(times.min()), int(times.max())
        if greatest <= self._bound:
            yield batch.sorted_by_time()
            return
        self._least = min(self._least, least) if self._gathered else least
        self._greatest = max(self._greatest, greatest) if self._gathered else greatest
        self._gathered.append(batch)
        self._rows += len(batch)
        if least <= self._bound:
            yield from self._released()
        elif self._rows >= _FEW:
            self._settle()

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        wanted = self.wanted()
        if wanted is not None and wanted <= self._bound:
            yield from self._released()
        yield punctuation

    def _released(self) -> Iterator[Element]:
        if self._greatest <= self._bound and not len(self._waiting):
            ready, self._gathered, self._rows = self._gathered, [], 0
            yield concat(ready).sorted_by_time()
            return
        self._settle()
        tables = self._waiting.between(None, self._bound)
        self._waiting.drop(self._bound)
        yield Batch(concat_tables(tables).to_batches()[0]).sorted_by_time()

    def _settle(self) -> None:
        """Keep what has been gathered as one sorted run."""
        if self._gathered:
            self._waiting.add(pa.Table.from_batches([concat(self._gathered).rows]))
            self._gathered, self._rows = [], 0

    def wanted(self) -> Microseconds | None:
        sorted_least = self._waiting.least()
        if not self._gathered:
            return sorted_least
        return self._least if sorted_least is None else min(self._least, sorted_least)

    @property
    def held(self) -> int:
        return len(self._waiting) + self._rows

    @property
    def state_bytes(self) -> int:
        return self._waiting.nbytes + sum(int(batch.rows.nbytes) for batch in self._gathered)

    def changes(self) -> Changes:
        self._settle()
        changes = self._waiting.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "bound": self._bound})

    def restore(self, changes: Changes) -> None:
        self._waiting.restore(changes)
        self._bound = changes.note["bound"]
