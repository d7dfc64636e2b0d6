"""The start of a query that was added while others ran."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import Batch, Element, Microseconds
from millrace.kernel.operator import Operator


class Since(Operator):
    """Keep the rows whose own time is not before `time`.

    State: none. Punctuations: passed on unchanged.
    """

    label = "since"
    passes_rows = True

    def __init__(self, time: Microseconds) -> None:
        self.time = time

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        kept = batch.where(batch.times >= self.time)
        if len(kept):
            yield kept
