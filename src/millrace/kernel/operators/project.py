"""Projection."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.elements import RESERVED, Batch, Element
from millrace.kernel.expressions import Expression
from millrace.kernel.operators.operator import Operator


class Project(Operator):
    """Compute named columns from each row; the row keeps its own time.

    State: none. Punctuations: passed on unchanged.
    """

    label = "project"

    def __init__(self, columns: tuple[tuple[str, Expression], ...]) -> None:
        self.columns = columns

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        rows = batch.rows
        kept = [name for name in RESERVED if name in rows.schema.names]
        values = [expression.over(rows) for _, expression in self.columns]
        values += [rows.column(name) for name in kept]
        yield Batch(pa.RecordBatch.from_arrays(values, names=[*(name for name, _ in self.columns), *kept]))
