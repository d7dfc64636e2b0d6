"""The contract of an aggregate function: rows become partials, partials merge, a result is read off.

Rules:
- A function works on the columns of all groups at once. Partials are one or more columns, with a row per group.
- A group may be without rows, when a condition lets none of its rows pass.
- A result depends on the multiset of rows alone: not on their order, nor on how they were cut and merged.
- A partial may be a list of values. If a partial has several lists, they are equally long: a row has a value in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError
from millrace.kernel.columns.decimals import as_doubles
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.nested.nested_columns import has_map
from millrace.kernel.columns.sql_types import sql_name

Columns = Sequence[pa.Array]
Parameter = float | int | bool | str | bytes | None
"""A constant of a call."""


class AggregateFunction:
    """One aggregate function, with the constants of its call."""

    width = 1
    """How many columns a partial has."""
    needs_time = False
    """True if it takes the rows' own times, as one more argument at the end."""
    mergeable = True
    """True if a partial is smaller than the rows it was made of."""
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
    """True if values of a type can be added up."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


KINDS: dict[str, Any] = {
    "any column": lambda kind: True,
    "a comparable column": lambda kind: not has_map(kind),
    "a plain column": lambda kind: not pa.types.is_nested(kind),
    "a number": is_number,
    "a number or an interval": lambda kind: is_number(kind) or pa.types.is_duration(kind),
    "a whole number": pa.types.is_integer,
    "a condition": lambda kind: pa.types.is_boolean(kind) or pa.types.is_null(kind),
}
_HINTS = {
    "a comparable column": "A MAP has no order: take a value out of it, m['key'].",
    "a plain column": "Take a field out of the nested value.",
    **dict.fromkeys(
        ("a number", "a number or an interval"),
        "Write {name}(CAST(column AS DOUBLE)) if the column holds numbers as text.",
    ),
    "a whole number": "Write {name}(CAST(column AS BIGINT)).",
    "a condition": "Write a comparison, such as {name}(column > 0).",
}


def fractions(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers without nulls as doubles."""
    plain = as_doubles(column) if pa.types.is_decimal(column.type) else column
    return plain.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _counted(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def valid(groups: Groups, *columns: pa.Array) -> tuple[Groups, list[pa.Array]]:
    """The rows whose last column is not null."""
    if not columns[-1].null_count:
        return groups, list(columns)
    mask = columns[-1].is_valid()
    return groups.of(mask.to_numpy(zero_copy_only=False)), [column.filter(mask) for column in columns]


def listed(groups: Groups, columns: Columns) -> list[pa.Array]:
    """The values of each group as a list, in the order of the rows."""
    order = pa.array(groups.order)
    offsets = pa.array(np.concatenate([[0], np.cumsum(groups.counts)]), pa.int32())
    return [pa.ListArray.from_arrays(offsets, column.take(order)) for column in columns]


def unlisted(groups: Groups, columns: Columns) -> tuple[Groups, list[pa.Array]]:
    """The values of lists, each in the group of its list."""
    parents = pc.list_parent_indices(columns[0]).to_numpy()
    return groups.of(parents), [column.flatten() for column in columns]


def elements(columns: Columns) -> tuple[Groups, list[pa.Array]]:
    """The values of lists, each list a group of its own."""
    count = len(columns[0])
    return unlisted(Groups(np.arange(count), count), columns)


def concatenated(groups: Groups, columns: Columns) -> list[pa.Array]:
    """The lists of each group as one."""
    return listed(*unlisted(groups, columns))
