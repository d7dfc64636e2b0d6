"""Aggregates that users define: in Python as a class, in SQL as expressions over a state."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression

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
