"""Selection."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import Batch, Element
from millrace.kernel.expressions import Expression
from millrace.kernel.operators.operator import Operator


class Filter(Operator):
    """Keep the rows where `predicate` is true.

    State: none. Punctuations: passed on unchanged.
    """

    label = "filter"

    def __init__(self, predicate: Expression) -> None:
        self.predicate = predicate

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        # Arrow's filter leaves out rows where the mask is null, as SQL does.
        kept = batch.rows.filter(self.predicate.over(batch.rows))
        if kept.num_rows:
            yield Batch(kept)
