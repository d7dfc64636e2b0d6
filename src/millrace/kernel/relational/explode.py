"""A row per element of an array."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.nested.nested_columns import lengths_of
from millrace.kernel.columns.user_functions import calls_by_row
from millrace.kernel.elements import RESERVED, Batch, Element
from millrace.kernel.operator import Operator


class Explode(Operator):
    """Give each row once per element of an array, with the element and, if asked for, its place, from 0 on.

    A row whose array is empty or null is dropped; with `outer` it is given once, with nulls. Rows keep their own time,
    and the columns `kept`.

    State: none. Punctuations: passed on unchanged.
    """

    label = "explode"

    def __init__(
        self, array: Expression, element: str, position: str | None, kept: tuple[str, ...], *, outer: bool
    ) -> None:
        self.array = array
        self.element = element
        self.position = position
        self.kept = kept
        self.outer = outer

    @cached_property
    def calls_by_row(self) -> bool:  # type: ignore[override]
        return calls_by_row([self.array])

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        found = self._exploded(batch.rows)
        if found.num_rows:
            yield Batch(found)

    def _exploded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        lists = self.array.over(rows)
        lengths = np.asarray(lengths_of(lists)).astype(np.int64)
        counts = np.maximum(lengths, 1) if self.outer else lengths
        owners = np.repeat(np.arange(len(lengths)), counts)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        missing = np.repeat(lengths == 0, counts)
        elements = np.repeat(np.cumsum(lengths) - lengths, counts) + places
        names = [*self.kept, *(name for name in RESERVED if name in rows.schema.names)]
        columns = dict(zip(names, rows.select(names).take(pa.array(owners)).columns, strict=True))
        made = {self.element: lists.flatten().take(pa.array(elements, mask=missing))}
        if self.position is not None:
            made[self.position] = pa.array(places, pa.int32(), mask=missing)
        plain = {name: each for name, each in columns.items() if name not in RESERVED}
        reserved = {name: each for name, each in columns.items() if name in RESERVED}
        return pa.RecordBatch.from_pydict({**plain, **made, **reserved})
