"""The low level of a two-level aggregate."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.operator import Operator

_MANY = 2**20


class PreAggregate(Operator):
    """Turn rows into partials for a `WindowAggregate` above (004 section 6), where that makes them fewer.

    A partial's time is the last instant of its pane. Rows that hardly share groups pass as they are.
    State: rows of the running task, at most about a million; never saved. Punctuations: held back while rows are.
    """

    label = "pre aggregate"
    holds = True
    senses_bounds = True

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self._gathered: list[Batch] = []
        self._rows = 0

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._gathered.append(batch)
        self._rows += len(batch)
        if self._rows >= _MANY:
            yield from self._flushed()

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        if punctuation.until == END_OF_TIME:
            yield from self._flushed()
        if not self._gathered:
            yield punctuation

    def _flushed(self) -> Iterator[Element]:
        gathered, rows = self._gathered, self._rows
        self._gathered, self._rows = [], 0
        if not gathered:
            return
        partials = self.partials.of_rows([self.partials.tagged(batch) for batch in gathered])
        if partials.num_rows * 2 > rows:
            yield from gathered
        elif partials.num_rows:
            ends = self.partials.geometry.last_instants(partials.column(PANE).to_numpy())
            yield Batch(partials.append_column(TIME, pa.array(ends)).combine_chunks().to_batches()[0])

    @property
    def held(self) -> int:
        return self._rows
