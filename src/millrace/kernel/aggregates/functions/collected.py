"""Aggregates that gather values: arrays of them, and texts put together.

Values stand in order of their rows' times, those of equal time in order of the values, so that a result does not depend
on how rows came; of equal values that are gathered once, the first counts. A text may name an order of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.aggregates.functions.distinct_values import numbered
from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, elements, listed, unlisted, valid
from millrace.kernel.aggregates.functions.user_aggregates import Fold
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.grouping import Groups

DESCENDING, NULLS_LAST = 1, 2
"""How an order is written as a number: the sum of what it is."""
Separator = str | bytes


class _Gathered(AggregateFunction):
    """Values as arrays or, with a separator, as texts."""

    joined: bool
    separator: Separator | None = None

    def result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        super().result_type(arguments[:1])
        return arguments[0] if self.joined else pa.list_(arguments[0])

    def gathered(self, groups: Groups, values: pa.Array) -> pa.Array:
        """The results of values that stand in order."""
        (lists,) = listed(groups, [values])
        if not self.joined:
            return lists
        found = pc.binary_join(lists, pa.scalar("" if self.separator is None else self.separator, values.type))
        return pc.if_else(pa.array(groups.empty), pa.scalar(None, found.type), found)


class Gathered(_Gathered, Fold):
    """All values, without nulls unless they are kept. A partial is a list per argument, and one of times."""

    mergeable = True
    partial_bytes = 256
    takes = ("any column",)

    def __init__(self, name: str, *parameters: Any, joined: bool, nulls: bool = False) -> None:
        self.joined, self.nulls = joined, nulls
        self.separator: Separator | None = parameters[0] if parameters else None
        self.orders: tuple[int, ...] = parameters[1:]
        Fold.__init__(self, name, 1 + len(self.orders))

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        if self.nulls:
            return super().of_rows(groups, arguments)
        rows, columns = valid(groups, *reversed(arguments))
        return super().of_rows(rows, columns[::-1])

    def order_keys(self, times: pa.Array, arguments: Columns) -> list[npt.NDArray[Any]]:
        value, *given = arguments
        keys = [key for column, order in zip(given, self.orders, strict=True) for key in _order_keys(column, order)]
        return [*keys, ordinals(times), ordinals(value)]

    def in_order(self, groups: Groups, arguments: Columns) -> pa.Array:
        return self.gathered(groups, arguments[0])


class GatheredOnce(_Gathered):
    """Each value once, without nulls. A partial is the list of the values, and that of the least time of each."""

    width = 2
    partial_bytes = 384
    needs_time = True

    def __init__(
        self, name: str, separator: Separator | None = None, order: int | None = None, *, joined: bool
    ) -> None:
        super().__init__(name)
        self.joined, self.separator, self.order = joined, separator, order

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (times, values) = valid(groups, *reversed(arguments))
        codes, _ = numbered(values)
        order = np.lexsort((ordinals(times), codes, rows.codes))
        same = np.zeros(len(order), np.bool_)
        same[1:] = (np.diff(codes[order]) == 0) & (np.diff(rows.codes[order]) == 0)
        first = order[~same]
        return listed(rows.of(first), [column.take(pa.array(first)) for column in (values, times)])

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(*unlisted(groups, partials))

    def result(self, partials: Columns) -> pa.Array:
        groups, (values, times) = elements(partials)
        keys = [ordinals(times), ordinals(values)] if self.order is None else _order_keys(values, self.order)
        order = np.lexsort((*reversed(keys), groups.codes))
        return self.gathered(groups.of(order), values.take(pa.array(order)))


def _order_keys(column: pa.Array, order: int) -> list[npt.NDArray[Any]]:
    """Integers to sort by, the first most significant."""
    numbers = ~ordinals(column) if order & DESCENDING else ordinals(column)
    if not column.null_count:
        return [numbers]
    null = column.is_null() if order & NULLS_LAST else column.is_valid()
    return [null.to_numpy(zero_copy_only=False), numbers]
