"""The one way to list, read and write files of any format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from millrace.connectors.files import csv as csv_files
from millrace.connectors.files import json_lines as json_files
from millrace.connectors.files import parquet as parquet_files
from millrace.connectors.files.blocks import FileBatch, deliver
from millrace.connectors.files.listing import list_files
from millrace.connectors.files.options import FORMATS, extension, read_options
from millrace.connectors.files.writer import write_file
from millrace.plan.nodes.endpoints import Connector

__all__ = ["FORMATS", "FileBatch", "extension", "list_files", "read_file", "write_file"]

_READERS = {"csv": csv_files.blocks, "json": json_files.blocks, "parquet": parquet_files.blocks}


def read_file(
    path: Path, connector: Connector, schema: pa.Schema, *, batch_rows: int = 65_536, skip_rows: int = 0
) -> Iterator[FileBatch]:
    """The rows of a file in order, as batches of exactly `schema`.

    `skip_rows` data rows are passed over, malformed ones included. A batch stands for at most `batch_rows` of them.
    """
    options = read_options(connector.format, connector.options)
    blocks = _READERS[connector.format](path, options, schema, skip_rows)
    return deliver(blocks, path, skip_malformed=options.skip_malformed, batch_rows=batch_rows, skip_rows=skip_rows)
