"""Single values for the naive reference: an expression over one row, times as numbers and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millrace.kernel.columns.expressions import Column, Expression

Row = dict[str, Any]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
TIME = "time of the row"
"""Under this name a row carries its progressing attribute: microseconds, or a sequence number."""


def value_of(expression: Expression, row: Row, schema: pa.Schema) -> Any:
    """What an expression says of one row."""
    return values_of(expression, [row], schema)[0]


def values_of(expression: Expression, rows: Sequence[Row], schema: pa.Schema) -> list[Any]:
    """What an expression says of each row."""
    if isinstance(expression, Column):
        return [row[expression.name] for row in rows]
    read = sorted(set(expression.columns()))
    fields = [(name, schema.field(name).type) for name in read]
    given = {name: [row[name] for row in rows] for name in read}
    all_of_them = pa.RecordBatch.from_pydict(given, schema=pa.schema(fields))
    found: list[Any] = expression.over(all_of_them if read else pa.record_batch({"": [0] * len(rows)})).to_pylist()
    return found


def micros(value: Any) -> int:
    """A point in time as microseconds since the epoch; a number is that already."""
    return value if isinstance(value, int) else int((value - EPOCH) // dt.timedelta(microseconds=1))


def timestamp(time: int) -> Any:
    """Microseconds since the epoch as a point in time."""
    return EPOCH + dt.timedelta(microseconds=time)


def nulls_first(value: Any) -> tuple[bool, Any]:
    """A key by which nulls are less than every value."""
    return (False, 0) if value is None else (True, value)
