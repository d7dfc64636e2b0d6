"""The aggregate functions: how rows become partials, partials merge, and a result is read off.

Every partial is a column that Arrow's hash aggregation makes from rows and merges from partials, so a
window's state is a table of partials and nothing else. To add an aggregate, add an entry to `AGGREGATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError
from millrace.kernel.expressions import sql_name
from millrace.kernel.user_aggregates import UserAggregate

Columns = list[Any]


@dataclass(frozen=True)
class Partial:
    """One column of partials: Arrow's function over rows, and the one that merges partials."""

    from_rows: str
    merge: str


@dataclass(frozen=True)
class AggregateFunction:
    """Partials, how the result is read off them, and the types it takes."""

    partials: tuple[Partial, ...]
    result: Callable[[Columns], Any]
    accepts: Callable[[pa.DataType], bool]
    expected: str


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _comparable(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _mean(columns: Columns) -> Any:
    total, count = columns
    some = pc.if_else(pc.greater(count, 0), count, pa.scalar(None, pa.int64()))
    # A total beyond 2 ** 53 becomes the nearest fraction.
    return pc.divide(pc.cast(total, pa.float64(), safe=False), pc.cast(some, pa.float64()))


AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction((Partial("count", "sum"),), lambda columns: columns[0], lambda _: True, "any column"),
    "sum": AggregateFunction((Partial("sum", "sum"),), lambda columns: columns[0], _number, "a number"),
    "min": AggregateFunction((Partial("min", "min"),), lambda columns: columns[0], _comparable, "a comparable column"),
    "max": AggregateFunction((Partial("max", "max"),), lambda columns: columns[0], _comparable, "a comparable column"),
    "avg": AggregateFunction((Partial("sum", "sum"), Partial("count", "sum")), _mean, _number, "a number"),
}


def result_type(function: str | UserAggregate, arguments: Sequence[pa.DataType]) -> pa.DataType:
    """The type of an aggregate over argument types (none: `count(*)`); refuses what it cannot take."""
    assert isinstance(function, str)
    aggregate = AGGREGATES[function]
    if function == "count":
        return pa.int64()
    (argument,) = arguments
    if not aggregate.accepts(argument):
        raise RequestError(
            f'"{function}" takes {aggregate.expected}, not {sql_name(argument)}',
            hint=f"Write {function}(CAST(column AS DOUBLE)) if the column holds numbers as text.",
        )
    if function == "avg":
        return pa.float64()
    if function == "sum":
        return pa.float64() if pa.types.is_floating(argument) else pa.int64()
    return argument
