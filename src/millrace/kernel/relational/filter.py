"""Selection."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.user_functions import calls_by_row
from millrace.kernel.elements import Batch, Block, Element, Mask
from millrace.kernel.operator import Operator


class Filter(Operator):
    """Keep the rows where `predicate` is true.

    A user's function is computed on the rows of a step alone, so that a slow one is charged for them and no others.

    State: none. Punctuations: passed on unchanged.
    """

    label = "filter"
    passes_rows = True

    def __init__(self, predicate: Expression) -> None:
        self.predicate = predicate
        self._block: Block | None = None
        self._mask: Mask = np.empty(0, np.bool_)
        """The block that the last piece was cut from, and where the predicate holds in it."""

    @cached_property
    def calls_by_row(self) -> bool:  # type: ignore[override]
        return calls_by_row([self.predicate])

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if batch.whole or self.predicate.is_guarded:
            # Arrow's filter leaves out rows where the mask is null, as SQL does.
            kept = batch.rows.filter(self.predicate.over(batch.rows))
            if kept.num_rows:
                yield Batch(kept)
            return
        holds = self._holds(batch.block)[batch.start : batch.stop]
        if holds.all():
            yield batch
        elif holds.any():
            yield batch.where(holds)

    def _holds(self, block: Block) -> Mask:
        if self._block is not block:
            mask = self.predicate.over(block.rows)
            mask = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
            self._block, self._mask = block, mask.fill_null(False).to_numpy(zero_copy_only=False)
        return self._mask
