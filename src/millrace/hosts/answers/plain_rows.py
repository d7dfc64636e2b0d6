"""Rows as plain data, for JSON and for people: times are text, and so is all that JSON has no word for."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def time_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Timestamps as text, to the second where they are whole."""
    texts = pc.cast(pc.cast(column, pa.timestamp("us")), pa.string()).to_pylist()
    return [None if text is None else text.removesuffix(".000000") for text in texts]


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values as JSON has them.

    >>> from datetime import datetime
    >>> plain_values(pa.chunked_array([[datetime(2024, 1, 1), None]]))
    ['2024-01-01 00:00:00', None]
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        return time_texts(column)
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return column.to_pylist()
    # A number that is none, or has no end, is no JSON.
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    return json.loads(json.dumps(value, default=str))


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """A table as dictionaries of plain values."""
    columns = [plain_values(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
