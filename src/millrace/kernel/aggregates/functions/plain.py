"""Count, sum, mean, least and greatest; the value of one chosen row: first, last, max_by, min_by."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, is_number, valid
from millrace.kernel.columns.grouping import Groups


class ValueCount(AggregateFunction):
    """How many rows there are, or how many values that are not null."""

    takes = ("any column",)

    def result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        if len(arguments) > 1:
            raise RequestError(f'"count" takes one column or none, not {len(arguments)}', hint="Write count(*).")
        return pa.int64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, _ = valid(groups, *arguments) if arguments else (groups, None)
        return [pa.array(rows.counts)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return [pa.array(groups.sums(partials[0].to_numpy()))]


class Sum(AggregateFunction):
    """The sum of the numbers; null if there is none."""

    takes = ("a number",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64() if pa.types.is_floating(arguments[0]) else pa.int64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return [pa.array(rows.sums(numbers.to_numpy(zero_copy_only=False)), mask=rows.empty)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)


class Average(AggregateFunction):
    """The mean of the numbers, from their sum and count."""

    width = 2
    partial_bytes = 16
    takes = ("a number",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return [pa.array(rows.sums(numbers.to_numpy(zero_copy_only=False))), pa.array(rows.counts)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return [pa.array(groups.sums(column.to_numpy())) for column in partials]

    def result(self, partials: Columns) -> pa.Array:
        return mean(*partials)


def mean(total: pa.Array, count: pa.Array) -> pa.Array:
    """Totals over counts; null where nothing was counted."""
    some = pc.if_else(pc.greater(count, 0), count, pa.scalar(None, pa.int64()))
    # A total beyond 2 ** 53 becomes the nearest fraction.
    return pc.divide(pc.cast(total, pa.float64(), safe=False), pc.cast(some, pa.float64()))


class Extreme(AggregateFunction):
    """The least or the greatest value; NaN is greater than all numbers."""

    def __init__(self, name: str, *, greatest: bool, takes: str = "a comparable column") -> None:
        super().__init__(name)
        self.greatest = greatest
        self.takes = (takes,)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (values,) = valid(groups, *arguments)
        if not is_number(values.type):
            return [values.take(rows.chosen(values, greatest=self.greatest))]
        found = rows.extremes(values.to_numpy(zero_copy_only=False), greatest=self.greatest)
        return [pa.array(found, values.type, mask=rows.empty)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)


class ChosenValue(AggregateFunction):
    """The first argument where the second is least or greatest; among equals the least or greatest value, null least.

    Rows without a second argument are ignored. With `by_time` the second is the rows' own time.
    A partial is the chosen row; no row has a null in its second column.
    """

    width = 2
    partial_bytes = 24

    def __init__(self, name: str, *, greatest: bool, by_time: bool) -> None:
        super().__init__(name)
        self.greatest = greatest
        self.needs_time = by_time
        self.takes = ("a comparable column",) * (1 if by_time else 2)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (value, key) = valid(groups, *arguments)
        chosen = rows.chosen(key, value, greatest=self.greatest)
        return [value.take(chosen), key.take(chosen)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)
