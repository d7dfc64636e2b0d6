"""Rows of a file of any format, as batches in the stream's schema; malformed rows are counted or raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from millrace.connectors.files import csv_reader, json_reader, parquet_reader
from millrace.connectors.files.file_blocks import FileBlock
from millrace.connectors.files.file_options import ReadOptions, read_options
from millrace.plan.nodes.endpoints import Connector

_READERS = {"csv": csv_reader.blocks, "json": json_reader.blocks, "parquet": parquet_reader.blocks}


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Good rows of a file, and how many malformed ones were left out among them.

    A batch stands for `len(rows) + malformed` data rows: add these up to know where to go on after a restart.
    """

    rows: pa.RecordBatch
    malformed: int = 0
    read: int = 0
    """How many bytes of the file hold rows up to here, without a malformed one that is to be mended; 0 if not known."""


def read_file(
    path: Path, connector: Connector, schema: pa.Schema, *, batch_rows: int = 65_536, skip_rows: int = 0
) -> Iterator[FileBatch]:
    """The rows of a file in order, as batches of exactly `schema`; rows before a malformed one come before its error.

    `skip_rows` data rows are skipped, malformed ones included. A batch stands for at most `batch_rows` of them.
    """
    options = read_options(connector.format, connector.options)
    blocks = _READERS[connector.format](path, options, schema, skip_rows)
    return _read(blocks, path, options, batch_rows, skip_rows)


def _read(
    blocks: Iterator[FileBlock], path: Path, options: ReadOptions, batch_rows: int, skip_rows: int
) -> Iterator[FileBatch]:
    read = 0
    for block in blocks:
        if block.stop <= skip_rows:
            continue
        block = block.part(max(block.start, skip_rows), block.stop)
        good_until = block.stop if options.skip_malformed else block.first_malformed()
        read = block.read if good_until == block.stop else read
        yield from _batches(block.part(block.start, good_until), batch_rows, read)
        if good_until < block.stop:
            raise block.explain(good_until).error(path)


def _batches(block: FileBlock, batch_rows: int, read: int) -> Iterator[FileBatch]:
    for start in range(block.start, block.stop, batch_rows):
        part = block.part(start, min(start + batch_rows, block.stop))
        yield FileBatch(part.rows, part.malformed, read)
