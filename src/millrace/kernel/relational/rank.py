"""Ranks within groups of simultaneous rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import RESERVED, TIME, Batch, Element, Mask, Microseconds, Punctuation
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer

Ordinals = list[npt.NDArray[Any]]


class Rank(StoringOperator):
    """Rank rows of equal time and partition among each other, and leave out those beyond `limit`.

    `function` is row_number, rank or dense_rank; `order` names columns, and whether from great to small; null is the
    least value. A row number does not depend on how rows came: all other columns decide between equals.
    State: the rows at or above the bound. Punctuations: passed on after the rows they release.
    """

    label = "rank"
    holds = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self,
        function: str,
        partition: tuple[str, ...],
        order: tuple[tuple[str, bool], ...],
        name: str,
        limit: int | None = None,
    ) -> None:
        self.function = function
        self.partition = partition
        self.order = order
        self.name = name
        self.limit = limit
        self._waiting = HoldBuffer()
        self.stores = (self._waiting,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._waiting.add(batch)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        released = self._waiting.release(punctuation.until - 1)
        if released is not None:
            yield from self._ranked(released.rows)
        yield punctuation

    def _ranked(self, rows: pa.RecordBatch) -> Iterator[Batch]:
        among = [ordinals(rows.column(name)) for name in (TIME, *self.partition)]
        # The complement turns the order round and, unlike the negative, exists for every whole number.
        by = [~ordinals(rows.column(name)) if falling else ordinals(rows.column(name)) for name, falling in self.order]
        ties = self._ties(rows) if self.function == "row_number" else []
        # The last key is the first to be sorted by.
        order = np.lexsort([*reversed(ties), *reversed(by), *reversed(among)])
        ranks = self._ranks([each[order] for each in among], [each[order] for each in by])
        if self.limit is not None:
            order, ranks = order[ranks <= self.limit], ranks[ranks <= self.limit]
        if len(order):
            yield Batch(self._with_ranks(rows.take(pa.array(order)), ranks))

    def _ties(self, rows: pa.RecordBatch) -> Ordinals:
        named = {*self.partition, *(name for name, _ in self.order), *RESERVED}
        return [ordinals(rows.column(name)) for name in rows.schema.names if name not in named]

    def _ranks(self, among: Ordinals, by: Ordinals) -> Integers:
        """The rank of each row, the rows being sorted."""
        places = np.arange(len(among[0]))
        begins = _changes(among)
        first = np.maximum.accumulate(np.where(begins, places, 0))
        differs = begins | _changes(by) if by else begins
        match self.function:
            case "row_number":
                counted = places
            case "rank":
                counted = np.maximum.accumulate(np.where(differs, places, 0))
            case _:
                counted = np.cumsum(differs)
        ranks: Integers = counted - counted[first] + 1
        return ranks

    def _with_ranks(self, rows: pa.RecordBatch, ranks: Integers) -> pa.RecordBatch:
        place = rows.schema.get_field_index(TIME)
        return rows.add_column(place, self.name, pa.array(ranks))

    def wanted(self) -> Microseconds | None:
        least = self._waiting.least
        return None if least is None else least + 1


def _changes(columns: Ordinals) -> Mask:
    """Where a row differs from the one before it; the first does."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found
