"""Rows of a file of any format, as batches in the stream's schema; malformed rows are counted or raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from millrace.connectors.files import csv_reader, json_reader, parquet_reader
from millrace.connectors.files.file_blocks import FileBlock, Numbers
from millrace.connectors.files.file_options import ReadOptions, read_options
from millrace.connectors.files.input_files import Span, is_plain
from millrace.kernel.progress.quarantine import Locate, UnreadRows, places
from millrace.plan.nodes.endpoints import Connector

_READERS = {"csv": csv_reader.blocks, "json": json_reader.blocks, "parquet": parquet_reader.blocks}


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Good rows of a file, and how many malformed ones were left out among them.

    A batch stands for `len(rows) + malformed` data rows: add these up to know where to go on after a restart.
    """

    rows: pa.RecordBatch
    unread: UnreadRows | None
    locate: Locate
    read: int = 0
    """How many bytes of the file hold rows up to here, without a malformed one that is to be mended; 0 if not known."""

    @property
    def malformed(self) -> int:
        """How many rows were left out."""
        return 0 if self.unread is None else len(self.unread)


def read_file(
    path: Path,
    connector: Connector,
    schema: pa.Schema,
    *,
    batch_rows: int = 65_536,
    skip_rows: int = 0,
    span: Span | None = None,
) -> Iterator[FileBatch]:
    """The rows of a file in order, as batches of exactly `schema`; rows before a malformed one come before its error.

    `skip_rows` data rows are skipped, malformed ones included. A batch stands for at most `batch_rows` of them. Of a
    csv or json file that is not compressed only the bytes of a `span` are read, where rows count from its start.
    """
    options = read_options(connector.format, connector.options)
    blocks = _READERS[connector.format](path, options, schema, skip_rows, span if is_plain(path) else None)
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
        yield from _batches(block.part(block.start, good_until), path, batch_rows, read)
        if good_until < block.stop:
            raise block.explain(good_until).error(f'file "{path}"')


def _batches(block: FileBlock, path: Path, batch_rows: int, read: int) -> Iterator[FileBatch]:
    for start in range(block.start, block.stop, batch_rows):
        part = block.part(start, min(start + batch_rows, block.stop))
        unread = None
        if part.malformed:
            numbers = part.left_out()
            unread = UnreadRows(pa.array(part.reasons(numbers), pa.string()), _located(part, path, numbers))
        yield FileBatch(part.rows, unread, _located(part, path, part.numbers), read)


def _located(block: FileBlock, path: Path, numbers: Numbers) -> Locate:
    """The text and the place of rows of a block, by their positions among these numbers."""

    def locate(positions: Numbers) -> pa.RecordBatch:
        texts, lines = block.texts(numbers[positions])
        return places(texts, str(path), lines)

    return locate
