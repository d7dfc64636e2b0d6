"""When rows arrive: by the replay column, by the generator's own times, or no sooner than their event time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED, NO_BOUND, Times, as_times, integer_column
from millrace.kernel.progress.ingress import with_computed
from millrace.plan.nodes.endpoints import Stream


def arrivals(stream: Stream, rows: pa.RecordBatch, after: int) -> Times | None:
    """The arrival of each row in microseconds, never back; None where the stream has no such times."""
    times = _raw(stream, rows)
    if times is None:
        return None
    ordered: Times = np.maximum.accumulate(np.maximum(times, after))
    return ordered


def _raw(stream: Stream, rows: pa.RecordBatch) -> Times | None:
    rows = with_computed(rows, stream.time)
    if stream.replay is not None:
        return _times(_replayed(stream, rows.column(stream.replay.column)))
    if ARRIVED in rows.schema.names:
        return integer_column(rows, ARRIVED)
    if stream.time.kind == "external":
        assert stream.time.column is not None
        return _times(rows.column(stream.time.column))
    return None


def _replayed(stream: Stream, column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column
    assert stream.replay is not None
    raise RequestError(
        f'stream "{stream.name}" is replayed by "{stream.replay.column}", which is no TIMESTAMP',
        hint="Replay by a TIMESTAMP column.",
    )


def _times(column: pa.Array) -> Times:
    """A column in microseconds; where rows progress by a number, it stands for so many."""
    times: Times = as_times(column).fill_null(NO_BOUND).to_numpy()
    return times


def stamped(rows: pa.RecordBatch, times: Times) -> pa.RecordBatch:
    """Rows with their arrival by the host's clock, in the place of any they came with."""
    if ARRIVED in rows.schema.names:
        rows = rows.drop_columns([ARRIVED])
    return rows.append_column(ARRIVED, pa.array(times))
