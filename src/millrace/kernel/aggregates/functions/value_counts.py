"""Aggregates of how often each value occurs: the most frequent value, and a histogram.

A partial is the list of the distinct values that are not null, and how often each occurs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.functions.distinct_values import numbered
from millrace.kernel.aggregates.functions.function import (
    AggregateFunction,
    Columns,
    elements,
    fractions,
    listed,
    unlisted,
    valid,
)
from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.columns.nested.nested_columns import list_of

Fractions = npt.NDArray[np.float64]


class _ValueCounts(AggregateFunction):
    width = 2
    partial_bytes = 256

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (values,) = valid(groups, *arguments)
        return _counted(rows, values, np.ones(len(values), np.int64))

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (values, counts) = unlisted(groups, partials)
        return _counted(rows, values, counts.to_numpy())


class Mode(_ValueCounts):
    """The most frequent value; among equally frequent ones the least, or the greatest."""

    def __init__(self, name: str, greatest: bool = False) -> None:
        super().__init__(name)
        self.greatest = greatest

    def result(self, partials: Columns) -> pa.Array:
        groups, (values, counts) = elements(partials)
        order = ordinals(values)
        by_value = pa.array(order if self.greatest else ~order)
        return values.take(groups.chosen(counts, by_value, greatest=True))


class Histogram(_ValueCounts):
    """At most `bins` bins, each with the mean of its numbers and how many they are.

    Bins are the distinct numbers; while they are too many, the closest neighbours become one bin with their mean. Spark
    does so row by row: its bins depend on the order of the rows, these do not.
    """

    takes = ("a number",)

    def __init__(self, name: str, bins: int = 2) -> None:
        super().__init__(name)
        self.bins = bins

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(_bin_type(arguments[0]))

    def result(self, partials: Columns) -> pa.Array:
        groups, (values, column) = elements(partials)
        numbers, kind = fractions(values), values.type
        order = np.lexsort((numbers, groups.codes))
        codes, means, weights = groups.codes[order], numbers[order], column.to_numpy()[order].astype(np.float64)
        while len(joined := _closest(codes, means, self.bins)):
            codes, means, weights = _joined(joined, codes, means, weights)
        bins = pa.StructArray.from_arrays(
            [cast(pa.array(means), kind), pa.array(weights)], fields=list(_bin_type(kind))
        )
        lengths = np.bincount(codes, minlength=groups.size)
        return list_of(pa.array(lengths), bins, pa.list_(bins.type), pa.array(lengths == 0))


def _bin_type(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("x", kind), ("y", pa.float64())])


def _counted(groups: Groups, values: pa.Array, counts: Integers) -> Columns:
    """The distinct values of each group, and the sum of the counts of each."""
    codes, distinct = numbered(values)
    pairs = groups.codes * max(len(distinct), 1) + codes
    order = np.argsort(pairs, kind="stable")
    first = np.flatnonzero(starts(pairs[order]))
    pairs, totals = pairs[order][first], np.add.reduceat(counts[order], first) if len(first) else counts[:0]
    found = distinct.take(pa.array(pairs % max(len(distinct), 1)))
    return listed(Groups(pairs // max(len(distinct), 1), groups.size), [found, pa.array(totals)])


def _closest(codes: Integers, means: Fractions, bins: int) -> Integers:
    """The bins that become one with the next: the closest of groups with too many, no two of them neighbours."""
    gaps = np.where(codes[1:] == codes[:-1], np.diff(means), np.inf)
    places = np.arange(len(gaps))
    excess = np.bincount(codes, minlength=1) - bins
    # A gap that is less than both its neighbours, the first of equal ones.
    before, after = np.append(np.inf, gaps[:-1])[: len(gaps)], np.append(gaps[1:], np.inf)[: len(gaps)]
    chosen = places[(gaps < before) & (gaps <= after) & (excess[codes[:-1]] > 0)]
    chosen = chosen[np.lexsort((chosen, gaps[chosen], codes[chosen]))]
    owners = codes[chosen]
    rank = np.arange(len(chosen)) - np.searchsorted(owners, owners)
    return np.sort(chosen[rank < excess[owners]])


def _joined(
    joined: Integers, codes: Integers, means: Fractions, weights: Fractions
) -> tuple[Integers, Fractions, Fractions]:
    """The bins, some of them one with the next."""
    kept = np.ones(len(codes), np.bool_)
    kept[joined + 1] = False
    both = weights[joined] + weights[joined + 1]
    means, weights = means.copy(), weights.copy()
    means[joined] = (means[joined] * weights[joined] + means[joined + 1] * weights[joined + 1]) / both
    weights[joined] = both
    return codes[kept], means[kept], weights[kept]
