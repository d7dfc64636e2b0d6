"""Aggregates that users define: in Python as a class, in SQL as expressions over a state.

An aggregate without merge is a fold: it gets all rows of a group at once, in order of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns, concatenated, elements, listed
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.grouping import Groups

Assignments = tuple[tuple[str, Expression], ...]
"""Variables of the state, each with its value."""


@dataclass(frozen=True)
class PythonAggregate:
    """A class by its place, `package.module:Class`."""

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    place: str


@dataclass(frozen=True)
class SqlAggregate:
    """Expressions over the state's variables.

    `initialize` gives the variables before the first row; `iterate` their new values, from the old ones and the
    parameters; `merge` those of two states, the second one's variables under "other.name"; `terminate` the result.
    """

    name: str
    parameters: tuple[tuple[str, pa.DataType], ...]
    returns: pa.DataType
    initialize: Assignments
    iterate: Assignments
    merge: Assignments | None
    terminate: Expression

    @property
    def arguments(self) -> tuple[pa.DataType, ...]:
        """The types it takes."""
        return tuple(kind for _, kind in self.parameters)


UserAggregate = PythonAggregate | SqlAggregate


class Fold(AggregateFunction):
    """An aggregate of all rows of a group in order of time. A partial is a list per argument, and one of times."""

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
        order = np.lexsort((*reversed(self.order_keys(times, arguments)), groups.codes))
        return self.in_order(groups.of(order), [column.take(pa.array(order)) for column in arguments])

    def order_keys(self, times: pa.Array, arguments: Columns) -> list[npt.NDArray[Any]]:
        """Integers to sort the rows of a group by, the first most significant.

        Rows of equal time are put in order of their values, so that the result does not depend on how they came.
        """
        return [ordinals(column) for column in (times, *arguments)]

    def in_order(self, groups: Groups, arguments: Columns) -> pa.Array:
        """The result of each group, whose rows stand together and in order of time."""
        raise AssertionError("an aggregate says what it makes of its rows")
