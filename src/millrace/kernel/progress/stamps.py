"""Rows with their own time in a column beside the user's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.elements import ARRIVED, RESERVED, TIME
from millrace.kernel.progress.time_contract import TimeContract


def with_external_time(rows: pa.RecordBatch, contract: TimeContract) -> pa.RecordBatch:
    """Rows with their own time, without those that lack it or another progressing column."""
    assert contract.column is not None, "an external stream names its time column"
    for column in (contract.column, *(name for name, _ in contract.also)):
        if rows.column(column).null_count:
            rows = rows.filter(pc.is_valid(rows.column(column)))
    return with_time(rows, rows.column(contract.column).cast(pa.int64()))


def with_time(rows: pa.RecordBatch, times: pa.Array) -> pa.RecordBatch:
    """Rows with their own time; the reserved columns stand last, in their order."""
    rows = with_column(rows, TIME, times)
    names = rows.schema.names
    if names[-1] == TIME and ARRIVED not in names:
        return rows
    return rows.select(
        [*(name for name in names if name not in RESERVED), *(name for name in RESERVED if name in names)]
    )


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Rows with a column added, or in the place of the one of that name."""
    index = rows.schema.get_field_index(name)
    return rows.append_column(name, values) if index < 0 else rows.set_column(index, name, values)
