"""Streams that are fed from Python, on Spark: the feed is read to its end, into files that the source reads.

Rules:
- A feed is written once, a file an item, under the same names again after a restart: what has been read is known by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.inputs import as_rows, read_schema
from millrace.errors import RunError
from millrace.hosts.spark.source.feed_files import put_rows
from millrace.plan.nodes.endpoints import Connector, Stream


def write_feed(items: Iterable[Any], stream: Stream, read: Sequence[str], folder: Path) -> Connector:
    """Write a stream's items as files, and say how to read them; the columns that are `read` must be there."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, item in enumerate(items):
        put_rows(folder, number, pa.Table.from_batches([rows_of(item, stream, read)]))
    return Connector("parquet", {"path": str(folder)})


def rows_of(item: Any, stream: Stream, read: Sequence[str]) -> pa.RecordBatch:
    """The rows of an item: with all columns if it has them, for queries to come may read them."""
    try:
        return as_rows(item, read_schema(stream, list(stream.schema.names)), stream.name)
    except RunError:
        return as_rows(item, read_schema(stream, list(read)), stream.name)
