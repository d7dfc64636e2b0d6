"""Aggregates of the distinct values: count, sum, mean."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, valid
from millrace.kernel.aggregates.functions.lists import elements, listed, unlisted
from millrace.kernel.aggregates.functions.plain import Count
from millrace.kernel.columns.comparison import canonical
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.integers import distinct


class Distinct(AggregateFunction):
    """An aggregate of the distinct values that are not null. A partial is the list of them."""

    partial_bytes = 256

    def __init__(self, name: str, over: AggregateFunction) -> None:
        super().__init__(name)
        self.over = over
        self.takes = ("a comparable column",) if isinstance(over, Count) else over.takes

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return self.over.result_type(arguments)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (values,) = valid(groups, *arguments)
        return [_distinct(rows, canonical(values))]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (values,) = unlisted(groups, partials)
        return [_distinct(rows, values)]

    def result(self, partials: Columns) -> pa.Array:
        return self.over.result(self.over.of_rows(*elements(partials)))


def _distinct(groups: Groups, values: pa.Array) -> pa.Array:
    """A list of the distinct values of each group."""
    encoded = values.dictionary_encode()
    size = max(len(encoded.dictionary), 1)
    pairs = distinct(groups.codes * size + encoded.indices.to_numpy())
    (found,) = listed(Groups(pairs // size, groups.size), [encoded.dictionary.take(pa.array(pairs % size))])
    return found
