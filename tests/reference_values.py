"""Single values for the naive reference: an expression over one row, times as numbers and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millrace.kernel.expressions import Column, Expression

Row = dict[str, Any]
TIME = "time of the row"
"""Under this name a row carries its progressing attribute: microseconds, or a sequence number."""


def value_of(expression: Expression, row: Row, schema: pa.Schema) -> Any:
    """What an expression says of one row."""
    if isinstance(expression, Column):
        return row[expression.name]
    read = sorted(set(expression.columns()))
    fields = [(name, schema.field(name).type) for name in read]
    given = {name: [row[name]] for name in read}
    one = pa.RecordBatch.from_pydict(given, schema=pa.schema(fields)) if read else pa.record_batch({"": [0]})
    return expression.over(one)[0].as_py()


def micros(value: Any) -> int:
    """A point in time as microseconds since the epoch."""
    return int(pa.scalar(value, pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py())


def timestamp(time: int) -> Any:
    """Microseconds since the epoch as a point in time."""
    return pa.scalar(time, pa.int64()).cast(pa.timestamp("us", tz="UTC")).as_py()


def nulls_first(value: Any) -> tuple[bool, Any]:
    """A key by which nulls are less than every value."""
    return (False, 0) if value is None else (True, value)
