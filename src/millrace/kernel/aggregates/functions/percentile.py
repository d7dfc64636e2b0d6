"""The exact percentile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, valid
from millrace.kernel.aggregates.functions.lists import concatenated, elements, listed
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.integers import order_within


class Percentile(AggregateFunction):
    """The value at a fraction of the way through the sorted numbers, interpolated linearly between neighbours.

    A partial is the list of all numbers.
    """

    partial_bytes = 256
    takes = ("a number",)

    def __init__(self, name: str, fraction: float = 0.5) -> None:
        super().__init__(name)
        self.fraction = checked_fraction(name, fraction)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        rows, (numbers,) = valid(groups, *arguments)
        return listed(rows, [numbers.cast(pa.float64(), safe=False)])

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return concatenated(groups, partials)

    def result(self, partials: Columns) -> pa.Array:
        groups, (column,) = elements(partials)
        numbers = column.to_numpy()
        # One more than there are, so that groups without numbers have something to point at.
        ordered = np.append(numbers[order_within(groups.codes, numbers)], 0.0)
        first = np.cumsum(groups.counts) - groups.counts
        place = self.fraction * np.maximum(groups.counts - 1, 0)
        low = ordered[first + np.floor(place).astype(np.int64)]
        high = ordered[first + np.ceil(place).astype(np.int64)]
        with np.errstate(invalid="ignore", over="ignore"):
            between = low * (1 - place % 1) + high * (place % 1)
        return pa.array(np.where(low == high, low, between), mask=groups.empty)


def checked_fraction(name: str, fraction: float) -> float:
    """The fraction, if it is one."""
    if not 0 <= fraction <= 1:
        raise RequestError(
            f'the fraction of "{name}" is {fraction}, which is not between 0 and 1',
            hint=f"Write {name}(column, 0.95) for the 95th percentile.",
        )
    return float(fraction)
