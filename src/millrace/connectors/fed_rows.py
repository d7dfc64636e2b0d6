"""Rows that a program hands over: record batches, tables, dictionaries, as rows of a declared schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millrace.errors import RunError, listed
from millrace.kernel.columns.casts import cast
from millrace.kernel.elements import ARRIVED


def as_rows(item: Any, schema: pa.Schema, stream: str) -> pa.RecordBatch:
    """An item of a feed as rows of a schema, with their arrival if the item holds it."""
    try:
        if isinstance(item, dict):
            item = [item]
        if isinstance(item, list):
            return pa.RecordBatch.from_arrays([_values(item, field, stream) for field in schema], schema=schema)
        table = pa.table(item)
        if ARRIVED in table.schema.names:
            schema = schema.append(pa.field(ARRIVED, pa.int64()))
        table = table.select(schema.names)
        for position, field in enumerate(schema):
            table = table.set_column(position, field.name, _timed(table.column(position), field, stream))
        table = table.cast(schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=schema)
    except (pa.ArrowException, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f'stream "{stream}" was fed rows that do not fit its columns: {str(error).splitlines()[0]}',
            hint=f"Feed record batches, tables or lists of dictionaries with the columns {listed(schema.names)}.",
        ) from error


def _values(rows: list[dict[str, Any]], field: pa.Field, stream: str) -> pa.Array:
    """One column of rows; a time or a date may be written as text."""
    values = [row.get(field.name) for row in rows]
    if pa.types.is_timestamp(field.type):
        # Arrow would cut a fraction off and take the rest as microseconds.
        fraction = next((value for value in values if isinstance(value, (float, np.floating))), None)
        if fraction is not None:
            raise _fraction(field, stream, fraction)
        if any(isinstance(value, str) for value in values):
            return _times(pa.array(values, pa.string()), field)
    if pa.types.is_date(field.type) and all(isinstance(value, str | None) for value in values):
        return pa.array(values, pa.string()).cast(field.type)
    return pa.array(values, field.type)


def _timed(column: pa.ChunkedArray, field: pa.Field, stream: str) -> pa.ChunkedArray:
    """One column of a table; a time may be written as text."""
    if not pa.types.is_timestamp(field.type):
        return column
    if pa.types.is_floating(column.type) and column.null_count < len(column):
        raise _fraction(field, stream, column.drop_null()[0])
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _times(column.cast(pa.string()), field)
    return column


def _times(text: Any, field: pa.Field) -> Any:
    """Text as times; refuses other text."""
    times = cast(text, field.type)
    if times.null_count > text.null_count:
        raise TypeError(f'"{field.name}" is no time like 2024-01-01 00:00:00')
    return times


def _fraction(field: pa.Field, stream: str, value: object) -> RunError:
    return RunError(
        f'stream "{stream}" was fed the fraction {value} for the time "{field.name}"',
        hint="Give a datetime, text like 2024-01-01 00:00:00, or whole microseconds since 1970.",
    )
