"""Skewness and kurtosis; of pairs of numbers, correlation, covariance and the line of least squares.

Partials hold means and sums of powers of the distances from them, so that no large powers are subtracted; a merge moves
them to the common mean (Chan, Golub, LeVeque 1979; Pebay 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, fractions, valid
from millrace.kernel.aggregates.functions.variance import Fractions
from millrace.kernel.columns.grouping import Groups

Measured = tuple[Fractions, npt.NDArray[np.bool_]]
"""Results, and where there is none."""
Measure = Callable[..., Measured]
"""Results of the columns of partials that hold at least one value."""


class _Moments(AggregateFunction):
    """A measure of distances from the mean; null where there are no rows."""

    def __init__(self, name: str, *, measure: Measure) -> None:
        super().__init__(name)
        self.measure = measure

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        columns = [column.to_numpy() for column in partials]
        # Without a value there is no mean.
        some = columns[0] > 0
        with np.errstate(invalid="ignore", over="ignore"):
            return [pa.array(each) for each in self.pooled(groups.of(some), *(column[some] for column in columns))]

    def pooled(self, groups: Groups, counts: Fractions, *moments: Fractions) -> Sequence[Fractions]:
        """The moments of each group of such."""
        raise AssertionError("moments say how they are moved to another mean")

    def result(self, partials: Columns) -> pa.Array:
        columns = [column.to_numpy() for column in partials]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            found, undefined = self.measure(*columns)
        return pa.array(found, mask=undefined | (columns[0] == 0))


class Shape(_Moments):
    """Skewness and kurtosis: a partial is a count, a mean, and the sums of three powers of the distances."""

    width = 5
    partial_bytes = 40
    takes = ("a number",)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (column,) = valid(groups, *arguments)
        zeros = np.zeros(len(column))
        return self.merged(rows, [pa.array(zeros + 1), pa.array(fractions(column)), *[pa.array(zeros)] * 3])

    def pooled(self, groups: Groups, counts: Fractions, *moments: Fractions) -> Sequence[Fractions]:
        means, second, third, fourth = moments
        total, middle, away = _centred(groups, counts, means)
        squares = away * away
        moved = (
            second + counts * squares,
            third + 3 * away * second + counts * squares * away,
            fourth + 4 * away * third + 6 * squares * second + counts * squares * squares,
        )
        return [total, middle, *map(groups.sums, moved)]


class Pairs(_Moments):
    """Measures of pairs without a null: a partial is a count, both means, sums of both squares and of products."""

    width = 6
    partial_bytes = 48
    takes = ("a number", "a number")

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, pairs = valid(groups, *arguments)
        rows, (second, first) = valid(rows, *reversed(pairs))
        zeros = np.zeros(len(first))
        numbers = [pa.array(fractions(column)) for column in (first, second)]
        return self.merged(rows, [pa.array(zeros + 1), *numbers, *[pa.array(zeros)] * 3])

    def pooled(self, groups: Groups, counts: Fractions, *moments: Fractions) -> Sequence[Fractions]:
        first, second, first_squares, second_squares, products = moments
        total, first_middle, one = _centred(groups, counts, first)
        _, second_middle, other = _centred(groups, counts, second)
        moved = (
            first_squares + counts * one * one,
            second_squares + counts * other * other,
            products + counts * one * other,
        )
        return [total, first_middle, second_middle, *map(groups.sums, moved)]


def _centred(groups: Groups, counts: Fractions, means: Fractions) -> tuple[Fractions, Fractions, Fractions]:
    """The count and the mean of each group, and how far each mean lies from that of its group.

    Distances are added up from one of the means: of equal numbers the mean is the number, and all distances are zero.
    """
    total = groups.sums(counts)
    near = np.where(total > 0, groups.extremes(means, greatest=False), 0.0)
    middle = near + groups.sums(counts * (means - near[groups.codes])) / np.maximum(total, 1)
    return total, middle, means - middle[groups.codes]


def _over(above: Fractions, below: Fractions) -> Measured:
    return above / below, below == 0


def _intercept(n: Fractions, y: Fractions, x: Fractions, yy: Fractions, xx: Fractions, xy: Fractions) -> Measured:
    return y - xy / xx * x, xx == 0


def _share(n: Fractions, y: Fractions, x: Fractions, yy: Fractions, xx: Fractions, xy: Fractions) -> Measured:
    """How much of the spread of y its line explains: all, where y does not vary."""
    return np.where(yy == 0, 1.0, xy * xy / (xx * yy)), xx == 0


SHAPES: dict[str, Measure] = {
    "skewness": lambda n, mean, second, third, fourth: _over(np.sqrt(n) * third, np.sqrt(second**3)),
    "kurtosis": lambda n, mean, second, third, fourth: (n * fourth / (second * second) - 3, second == 0),
}
PAIRS: dict[str, Measure] = {
    "corr": lambda n, y, x, yy, xx, xy: _over(xy, np.sqrt(xx * yy)),
    "covar_pop": lambda n, y, x, yy, xx, xy: _over(xy, n),
    "covar_samp": lambda n, y, x, yy, xx, xy: _over(xy, n - 1),
    "regr_slope": lambda n, y, x, yy, xx, xy: _over(xy, xx),
    "regr_intercept": _intercept,
    "regr_r2": _share,
    "regr_sxx": lambda n, y, x, yy, xx, xy: (xx, n == 0),
    "regr_syy": lambda n, y, x, yy, xx, xy: (yy, n == 0),
    "regr_sxy": lambda n, y, x, yy, xx, xy: (xy, n == 0),
}
"""Measures of pairs (y, x): the count, the means, the sums of the squares and of the products of the distances."""
