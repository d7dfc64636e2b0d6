"""All rows of a group as its partial, for aggregates that cannot merge: they are given them in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns
from millrace.kernel.aggregates.functions.lists import concatenated, elements, listed
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.grouping import Groups


class InTime(AggregateFunction):
    """An aggregate over all its rows at once. A partial has a list for each argument, and one of times."""

    needs_time = True
    mergeable = False
    partial_bytes = 1024

    def __init__(self, name: str, arguments: int) -> None:
        super().__init__(name)
        self.width = arguments + 1

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        return listed(groups, arguments)

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return concatenated(groups, partials)

    def result(self, partials: Columns) -> pa.Array:
        groups, (*arguments, times) = elements(partials)
        # Rows of equal time are put in order of their values, so that the result does not depend on how they came.
        keys = [ordinals(column) for column in (times, *arguments)]
        order = np.lexsort((*reversed(keys), groups.codes))
        return self.in_order(groups.of(order), [column.take(pa.array(order)) for column in arguments])

    def in_order(self, groups: Groups, arguments: Columns) -> pa.Array:
        """The result of each group, whose rows stand together and in order of time."""
        raise AssertionError("an aggregate says what it makes of its rows")
