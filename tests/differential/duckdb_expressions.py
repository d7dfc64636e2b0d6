"""Expressions over the rows of a table, in Millrace and in DuckDB."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from millrace.language import bind_expression

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)


def oracle_of(rows: pa.Table) -> Any:
    """A connection of DuckDB to the rows, as `data`."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("data", rows)
    return connection


def ours_over(expression: str, rows: pa.Table) -> list[Any]:
    """What Millrace computes for each row."""
    batch = rows.combine_chunks().to_batches()[0]
    return [comparable(value) for value in bind_expression(expression, batch.schema).over(batch).to_pylist()]


def theirs_over(expression: str, oracle: Any) -> list[Any]:
    """What DuckDB computes for each row."""
    return [comparable(row[0]) for row in oracle.execute(f"SELECT {expression} FROM data ORDER BY id").fetchall()]


def comparable(value: Any) -> Any:
    """A value that is equal to that of the other system: times in UTC, days as text, numbers to twelve digits."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    number = float(value)
    return "NaN" if math.isnan(number) else float(f"{number:.12g}")
