"""What an aggregate function is: rows become partials, partials merge, a result is read off.

Rules:
- A function works on the columns of all groups at once. A partial is a row of one or more columns, a row a group.
- A group may be without rows, when a condition lets none of its rows through.
- A result depends on the multiset of rows alone: not on their order, nor on how they were cut and merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.columns.expressions import sql_name
from millrace.kernel.columns.grouping import Groups

Columns = Sequence[pa.Array]


class AggregateFunction:
    """One aggregate function, with the constants of its call."""

    width = 1
    """How many columns a partial has."""
    needs_time = False
    """Whether the rows' own times are wanted, as one more argument at the end."""
    mergeable = True
    """Whether a partial is smaller than the rows it was made of."""
    partial_bytes = 8
    """About how large a partial is."""
    takes: tuple[str, ...] = ("a comparable column",)
    """What each argument has to be: a name of `KINDS`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        """The type of its result; refuses arguments that it cannot take."""
        if len(arguments) != len(self.takes):
            raise RequestError(
                f'"{self.name}" takes {_counted(len(self.takes))}, not {len(arguments)}',
                hint=f"Write {self.name}({', '.join(['column', 'other_column'][: len(self.takes)])}).",
            )
        for argument, expected in zip(arguments, self.takes, strict=True):
            if not KINDS[expected](argument):
                raise RequestError(
                    f'"{self.name}" takes {expected}, not {sql_name(argument)}',
                    hint=_HINTS[expected].format(name=self.name),
                )
        return self._result_type(arguments)

    def _result_type(self, arguments: Sequence[pa.DataType]) -> pa.DataType:
        return arguments[0]

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        """The partial of each group of rows."""
        raise AssertionError("a function says how rows become partials")

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        """The partial of each group of partials."""
        raise AssertionError("a function says how partials merge")

    def result(self, partials: Columns) -> pa.Array:
        """The result of each partial."""
        return partials[0]


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type can be added up."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


KINDS: dict[str, Any] = {
    "any column": lambda kind: True,
    "a comparable column": lambda kind: not pa.types.is_nested(kind),
    "a number": is_number,
    "a condition": lambda kind: pa.types.is_boolean(kind) or pa.types.is_null(kind),
}
_HINTS = {
    "a comparable column": "Take a field out of the nested value.",
    "a number": "Write {name}(CAST(column AS DOUBLE)) if the column holds numbers as text.",
    "a condition": "Write a comparison, such as {name}(column > 0).",
}


def _counted(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def valid(groups: Groups, *columns: pa.Array) -> tuple[Groups, list[pa.Array]]:
    """The rows whose last column is not null."""
    if not columns[-1].null_count:
        return groups, list(columns)
    mask = columns[-1].is_valid()
    return groups.of(mask.to_numpy(zero_copy_only=False)), [column.filter(mask) for column in columns]
