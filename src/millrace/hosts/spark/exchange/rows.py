"""The two kinds of row that Spark carries for Millrace; the tuples themselves are packed in the blobs.

Rules:
- An exchange row goes to one bucket of a stage: everything that one task, or one bucket of an earlier stage, has for
  it. What a stage does not read itself it passes on to the same bucket of the next one, as it is.
- An output row goes from the last stage to the sink: results of one output, or the report of one bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

EXCHANGE = "bucket int, port string, seq long, blob binary, note string"
EXCHANGE_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("port", pa.string()),
        ("seq", pa.int64()),
        ("blob", pa.binary()),
        ("note", pa.string()),
    ]
)
OUTPUT = "output string, blob binary, note string"

CONTROL_PORT = "__control"
"""The port of rows that carry the clock, the end of all streams, and what later levels wait for."""
STREAM_PORT = "__stream"
"""The port of rows that say how far a stream has come and what became of its rows."""
BOUNDS_PORT = "__bounds"
"""The port of rows that say what a bucket of an earlier level has promised."""
RESULT_PORT = "__result"
"""The port of results that pass later levels; the note is their output's name."""
REPORT_OUTPUT = "__report"
"""The output, and the port on the way to it, of rows that carry a bucket's report in their note."""


_PACKED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""Half to a third of the bytes, for hardly more time in Python and much less in Java, which copies each many times.

Each core has a task of its own: threads beside it would make a small blob cost six times as much."""
_UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


class Row(NamedTuple):
    """An exchange row; rows of one port are taken in the order of `seq`."""

    bucket: int
    port: str
    seq: int
    blob: bytes = b""
    note: str = ""


def exchange_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Exchange rows as Spark takes them from a source."""
    columns = list(zip(*rows, strict=True)) or [()] * len(EXCHANGE_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, EXCHANGE_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCHANGE_SCHEMA)


def pack(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as one Arrow IPC stream."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema, options=_PACKED) as stream:
        stream.write(rows)
    return bytes(buffer.getvalue())


def unpack(blob: bytes | pa.Buffer) -> pa.Table:
    """The rows of one Arrow IPC stream."""
    with pa.ipc.open_stream(blob, options=_UNPACKED) as stream:
        return stream.read_all()
