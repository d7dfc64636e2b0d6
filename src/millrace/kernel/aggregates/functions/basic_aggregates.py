"""Count, sum, mean, least and greatest; the value of one chosen row: first, last, max_by, min_by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, is_number, valid
from millrace.kernel.columns import decimals
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.interval_values import divided

_LOW = 2**32 - 1
"""The lower half of the bits of a whole number."""


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
    """The sum of the numbers or intervals; null if there is none."""

    takes = ("a number or an interval",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        if pa.types.is_duration(arguments[0]):
            return arguments[0]
        if pa.types.is_decimal(arguments[0]):
            return decimals.sum_type(arguments[0])
        return pa.float64() if pa.types.is_floating(arguments[0]) else pa.int64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return [_with_nulls(sums(rows, numbers), rows)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (totals,) = valid(groups, *partials)
        return [_with_nulls(sums(rows, totals, totals.type), rows)]


def sums(groups: Groups, numbers: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """The sum of each group of numbers; of decimals in a type, by default that of a sum of rows."""
    if pa.types.is_decimal(numbers.type):
        return decimals.sums(groups, numbers, decimals.sum_type(numbers.type) if kind is None else kind)
    if pa.types.is_duration(numbers.type):
        return pc.cast(sums(groups, pc.cast(numbers, pa.int64())), numbers.type)
    return pa.array(groups.sums(numbers.to_numpy(zero_copy_only=False)))


def _with_nulls(totals: pa.Array, groups: Groups) -> pa.Array:
    """The sums, null for groups without rows."""
    empty = groups.empty
    return pc.if_else(pa.array(empty), pa.scalar(None, totals.type), totals) if empty.any() else totals


class TriedSum(AggregateFunction):
    """The sum of whole numbers; null where it needs more than 64 bits. A partial is the sums of both halves of them."""

    width = 3
    partial_bytes = 24
    takes = ("a number",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.int64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (column,) = valid(groups, *arguments)
        numbers = column.to_numpy(zero_copy_only=False).astype(np.int64)
        return [pa.array(each) for each in (rows.sums(numbers >> 32), rows.sums(numbers & _LOW), rows.counts)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return [pa.array(groups.sums(column.to_numpy())) for column in partials]

    def result(self, partials: Columns) -> pa.Array:
        high, low, counts = (column.to_numpy() for column in partials)
        high = high + (low >> 32)
        fits = (counts > 0) & (high >= -(2**31)) & (high < 2**31)
        return pa.array((np.where(fits, high, 0) << 32) + (low & _LOW), mask=~fits)


class BitFold(AggregateFunction):
    """The bits that all, some, or an odd number of the whole numbers have."""

    takes = ("a whole number",)

    def __init__(self, name: str, *, fold: np.ufunc) -> None:
        super().__init__(name)
        self.fold = fold

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        found = rows.folded(numbers.to_numpy(zero_copy_only=False), self.fold)
        return [pa.array(found, numbers.type, mask=rows.empty)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)


class Average(AggregateFunction):
    """The mean of the numbers or intervals, from their sum and count."""

    width = 2
    partial_bytes = 16
    takes = ("a number or an interval",)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        kind = arguments[0]
        if pa.types.is_duration(kind):
            return kind
        return decimals.mean_type(decimals.sum_type(kind)) if pa.types.is_decimal(kind) else pa.float64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return [sums(rows, numbers), pa.array(rows.counts)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return [sums(groups, column, column.type) for column in partials]

    def result(self, partials: Columns) -> pa.Array:
        return mean(*partials)


def mean(total: pa.Array, count: pa.Array) -> pa.Array:
    """Totals over counts; null where nothing was counted."""
    some = pc.if_else(pc.greater(count, 0), count, pa.scalar(None, pa.int64()))
    if pa.types.is_decimal(total.type):
        return decimals.divided(total, pc.cast(some, pa.decimal128(20, 0)), decimals.mean_type(total.type))
    if pa.types.is_duration(total.type):
        return divided(total, some)
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
        if not is_number(values.type) or pa.types.is_decimal(values.type):
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
        self.takes = ("any column",) if by_time else ("any column", "a comparable column")

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (value, key) = valid(groups, *arguments)
        chosen = rows.chosen(key, value, greatest=self.greatest)
        return [value.take(chosen), key.take(chosen)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return self.of_rows(groups, partials)
