"""Projection."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.user_functions import calls_by_row
from millrace.kernel.elements import RESERVED, Batch, Block, Element
from millrace.kernel.operator import Operator


class Project(Operator):
    """Compute named columns from each row; the row keeps its own time.

    A user's function is computed on the rows of a step alone, so that a slow one is charged for them and no others.

    State: none. Punctuations: passed on unchanged.
    """

    label = "project"
    passes_rows = True

    def __init__(self, columns: tuple[tuple[str, Expression], ...]) -> None:
        self.columns = columns
        self._by_step = any(each.is_guarded for _, each in columns)
        self._block: Block | None = None
        self._projected: Block | None = None
        """The block that the last piece was cut from, and its projection."""

    @cached_property
    def calls_by_row(self) -> bool:  # type: ignore[override]
        return calls_by_row(each for _, each in self.columns)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if batch.whole or self._by_step:
            yield Batch(self._project(batch.rows))
            return
        if self._block is not batch.block or self._projected is None:
            self._block, self._projected = batch.block, Block(self._project(batch.block.rows))
        yield Batch.cut(self._projected, batch.start, batch.stop)

    def _project(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kept = [name for name in RESERVED if name in rows.schema.names]
        values = [expression.over(rows) for _, expression in self.columns]
        values += [rows.column(name) for name in kept]
        return pa.RecordBatch.from_arrays(values, names=[*(name for name, _ in self.columns), *kept])
