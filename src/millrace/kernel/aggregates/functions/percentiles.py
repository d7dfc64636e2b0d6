"""Percentiles: exact, and approximate by counting numbers in buckets that grow in proportion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions.function import (
    AggregateFunction,
    Columns,
    concatenated,
    elements,
    fractions,
    listed,
    unlisted,
    valid,
)
from millrace.kernel.columns.casts import double
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.integers import order_within, starts
from millrace.kernel.columns.nested.nested_columns import list_of

Buckets = npt.NDArray[np.int64]

_ACCURACY = 0.01
_RATIO = (1 + _ACCURACY) / (1 - _ACCURACY)
"""The upper end of a bucket over its lower end: then its middle is no further than the accuracy from either."""
_ONE = 2**17
"""The bucket of 1; those of other positive numbers are around it, and all above that of zero, which is 0."""
_INFINITE = 2 * _ONE
_NAN = _INFINITE + 1
_SPAN = 2 * _NAN + 1


class _AtFractions(AggregateFunction):
    """The number at a fraction, from 0 to 1, of the way through the sorted numbers, or an array of those at several."""

    takes = ("a number",)

    def __init__(self, name: str, *fractions: float, several: bool = False) -> None:
        super().__init__(name)
        for each in fractions:
            if not 0 <= each <= 1:
                raise RequestError(
                    f'the fraction of "{name}" is {each}, which is not between 0 and 1',
                    hint=f"Write {name}(column, 0.95) for the 95th percentile.",
                )
        self.fractions = [float(each) for each in fractions] or [0.5]
        self.several = several

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.list_(pa.float64()) if self.several else pa.float64()

    def _together(self, found: list[npt.NDArray[np.float64]], empty: npt.NDArray[np.bool_]) -> pa.Array:
        """The results of the fractions, null for groups without numbers."""
        if not self.several:
            return pa.array(found[0], mask=empty)
        lengths = pa.array(np.full(len(empty), len(found)))
        return list_of(lengths, pa.array(np.stack(found, 1).ravel()), pa.list_(pa.float64()), pa.array(empty))


class Percentile(_AtFractions):
    """The value at a fraction of the way through the sorted numbers, interpolated linearly between neighbours.

    A partial is the list of all numbers. `descending` goes from the greatest down. `discrete` takes the first number
    that at least the fraction of all numbers reach, and none between two.
    """

    partial_bytes = 256

    def __init__(
        self, name: str, *fractions: float, several: bool = False, descending: bool = False, discrete: bool = False
    ) -> None:
        super().__init__(name, *fractions, several=several)
        self.descending, self.discrete = descending, discrete

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return listed(rows, [double(numbers)])

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return concatenated(groups, partials)

    def result(self, partials: Columns) -> pa.Array:
        groups, (column,) = elements(partials)
        numbers = column.to_numpy()
        # One more than there are, so that groups without numbers have something to point at.
        ordered = np.append(numbers[order_within(groups.codes, numbers)], 0.0)
        first = np.cumsum(groups.counts) - groups.counts
        last = np.maximum(groups.counts - 1, 0)
        begin, step = (first + last, -1) if self.descending else (first, 1)
        found = []
        for fraction in self.fractions:
            place = np.maximum(np.ceil(fraction * groups.counts) - 1, 0) if self.discrete else fraction * last
            low = ordered[begin + step * np.floor(place).astype(np.int64)]
            high = ordered[begin + step * np.ceil(place).astype(np.int64)]
            with np.errstate(invalid="ignore", over="ignore"):
                between = low + (high - low) * (place % 1)
            found.append(np.where(low == high, low, between))
        return self._together(found, groups.empty)


class ApproximatePercentile(_AtFractions):
    """The number of rank ceil(fraction * count), to within one percent of itself (DDSketch: Masson et al. 2019).

    A partial is the list of buckets with their counts, in order, so that it is the same for any way of merging, and
    the least and the greatest number: a result is never outside of them, so that of equal numbers is the number itself.
    """

    width = 4
    partial_bytes = 528

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (column,) = valid(groups, *arguments)
        numbers = fractions(column)
        buckets = _buckets(numbers)
        return [*_counted(rows, buckets, np.ones(len(buckets), np.int64)), *_extremes(rows, numbers, numbers)]

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        rows, (buckets, counts) = unlisted(groups, partials[:2])
        some, (least, greatest) = valid(groups, *partials[2:])
        return [*_counted(rows, buckets.to_numpy(), counts.to_numpy()), *_extremes(some, least, greatest)]

    def result(self, partials: Columns) -> pa.Array:
        groups, (buckets, column) = elements(partials[:2])
        counts = column.to_numpy()
        totals = groups.sums(counts)
        upto = np.cumsum(counts)
        # One more than there are, so that groups without numbers have something to point at.
        middles = np.append(_middles(buckets.to_numpy().astype(np.int64)), 0.0)
        least, greatest = (column.to_numpy(zero_copy_only=False) for column in partials[2:])
        found = []
        for fraction in self.fractions:
            rank = np.maximum(np.ceil(fraction * totals), 1).astype(np.int64)
            place = np.searchsorted(upto, np.cumsum(totals) - totals + rank)
            middle = middles[np.minimum(place, len(upto))]
            found.append(np.where(np.isnan(middle), middle, np.fmin(np.fmax(middle, least), greatest)))
        return self._together(found, totals == 0)


def _extremes(groups: Groups, least: npt.NDArray[np.float64], greatest: npt.NDArray[np.float64]) -> Columns:
    """The least and the greatest number of each group; null without one."""
    found = groups.extremes(np.asarray(least), greatest=False), groups.extremes(np.asarray(greatest), greatest=True)
    return [pa.array(each, mask=groups.empty) for each in found]


def _counted(groups: Groups, buckets: npt.NDArray[Any], counts: Buckets) -> Columns:
    """The buckets of each group in order, and how many numbers are in each."""
    pairs = groups.codes * _SPAN + (buckets + _NAN)
    order = np.argsort(pairs)
    first = np.flatnonzero(starts(pairs[order]))
    pairs, totals = pairs[order][first], np.add.reduceat(counts[order], first)
    found = pa.array(pairs % _SPAN - _NAN, pa.int32())
    return listed(Groups(pairs // _SPAN, groups.size), [found, pa.array(totals)])


def _buckets(numbers: npt.NDArray[np.float64]) -> Buckets:
    """The bucket of each number; they are in the order of the numbers, with NaN last."""
    size = np.abs(numbers)
    plain = np.isfinite(size) & (size > 0)
    powers = np.log(np.where(plain, size, 1.0)) / math.log(_RATIO)
    found = np.where(plain, np.ceil(powers).astype(np.int64) + _ONE, np.where(size > 0, _INFINITE, 0))
    return np.where(np.isnan(numbers), _NAN, np.where(numbers < 0, -found, found))


def _middles(buckets: Buckets) -> npt.NDArray[np.float64]:
    """The number that is as far, in proportion, from both ends of a bucket."""
    size = np.abs(buckets)
    with np.errstate(over="ignore"):
        found = np.exp((size - _ONE) * math.log(_RATIO)) * (2 / (1 + _RATIO))
    # The bucket of the greatest numbers ends beyond them.
    found = np.minimum(found, np.finfo(np.float64).max)
    found = np.select([size == 0, size == _INFINITE, size == _NAN], [0.0, np.inf, np.nan], found)
    return np.where(buckets < 0, -found, found)
