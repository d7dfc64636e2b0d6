"""When rows arrive: by the replay column, by the generator's own times, or no sooner than their event time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED, Times, integer_column
from millrace.plan.nodes.endpoints import Stream


def arrivals(stream: Stream, rows: pa.RecordBatch, after: int) -> Times | None:
    """The arrival of each row in microseconds, never back; None where the stream has no such times."""
    times = _raw(stream, rows)
    if times is None:
        return None
    ordered: Times = np.maximum.accumulate(np.maximum(times, after))
    return ordered


def _raw(stream: Stream, rows: pa.RecordBatch) -> Times | None:
    if stream.replay is not None:
        return _column(stream, rows, stream.replay.column)
    if ARRIVED in rows.schema.names:
        return integer_column(rows, ARRIVED)
    if stream.time.kind == "external":
        assert stream.time.column is not None
        return _column(stream, rows, stream.time.column)
    return None


def _column(stream: Stream, rows: pa.RecordBatch, name: str) -> Times:
    column = rows.column(name)
    if not pa.types.is_timestamp(column.type):
        raise RequestError(
            f'stream "{stream.name}" is replayed by "{name}", which is no TIMESTAMP',
            hint="Replay by a TIMESTAMP column.",
        )
    least = np.iinfo(np.int64).min
    times: Times = column.cast(pa.int64()).fill_null(least).to_numpy()
    return times


def stamped(rows: pa.RecordBatch, times: Times) -> pa.RecordBatch:
    """Rows with their arrival by the host's clock, in the place of any they came with."""
    if ARRIVED in rows.schema.names:
        rows = rows.drop_columns([ARRIVED])
    return rows.append_column(ARRIVED, pa.array(times))
