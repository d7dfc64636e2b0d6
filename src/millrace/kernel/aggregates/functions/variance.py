"""Variance and standard deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, fractions, valid
from millrace.kernel.columns.grouping import Groups

Fractions = npt.NDArray[np.float64]


class Variance(AggregateFunction):
    """The mean squared distance from the mean, of a sample or of all, or its root.

    A partial is a count, a mean, and the sum of squared distances from it, so that no large squares are subtracted
    (Chan, Golub, LeVeque 1979).
    """

    width = 3
    partial_bytes = 24
    takes = ("a number",)

    def __init__(self, name: str, *, sample: bool, root: bool) -> None:
        super().__init__(name)
        self.sample = sample
        self.root = root

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (column,) = valid(groups, *arguments)
        numbers = fractions(column)
        return _pooled(rows, np.ones(len(numbers), np.int64), numbers, np.zeros(len(numbers)))

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        count, means, squares = (column.to_numpy() for column in partials)
        return _pooled(groups, count, means, squares)

    def result(self, partials: Columns) -> pa.Array:
        count, _, squares = (column.to_numpy() for column in partials)
        divisor = count - 1 if self.sample else count
        found = squares / np.maximum(divisor, 1)
        return pa.array(np.sqrt(found) if self.root else found, mask=divisor < 1)


def _pooled(groups: Groups, counts: npt.NDArray[np.int64], means: Fractions, squares: Fractions) -> Columns:
    """Count, mean and squared distances of each group of such; a row is a count of one at its mean."""
    total = groups.sums(counts)
    divisor = np.maximum(total, 1)
    # Infinities and NaN have no distance from their mean: the result is NaN, as it should be.
    with np.errstate(invalid="ignore", over="ignore"):
        middle = groups.sums(counts * means) / divisor
        away = means - middle[groups.codes]
        # What the first mean lacks, for it was rounded.
        missing = groups.sums(counts * away) / divisor
        spread = groups.sums(squares + counts * away * away) - total * missing * missing
        spread = np.where(spread < 0, 0.0, spread)
        return [pa.array(total), pa.array(middle + missing), pa.array(spread)]
