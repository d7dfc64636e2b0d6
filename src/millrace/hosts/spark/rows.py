"""The two shapes of row that Spark carries for us; the tuples themselves are packed in the blobs.

Rules:
- An exchange row goes from a source to one bucket of a stage: everything that one task has for that bucket.
- An output row goes from a stage to the sink: results of one output, or the report of one bucket.
"""

from __future__ import annotations

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
"""The port of rows that carry the clock and the end of all streams."""
STREAM_PORT = "__stream"
"""The port of rows that say how far a stream has come and what became of its rows."""
REPORT_OUTPUT = "__report"
"""The output of rows that carry a bucket's report in their note."""


def pack(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as one Arrow IPC stream."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema) as stream:
        stream.write(rows)
    return bytes(buffer.getvalue())


def unpack(blob: bytes | pa.Buffer) -> pa.Table:
    """The rows of one Arrow IPC stream."""
    with pa.ipc.open_stream(blob) as stream:
        return stream.read_all()
