"""parquet -> blocks of rows.

Rules:
- Columns are read by name. A number may become another number, and text or numbers a time; nothing else changes type.
- A restart skips whole row groups without reading them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from millrace.connectors.files.conversion import Conversion, Convert, conversion, from_column
from millrace.connectors.files.file_blocks import Fault, FileBlock, Numbers, Texts
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.files.input_files import Span, readable
from millrace.connectors.files.times.timestamps import TimeSpelling
from millrace.errors import RunError, listed
from millrace.kernel.columns.integers import Integers
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.progress.quarantine import row_texts

_BLOCK_ROWS = 65_536


def blocks(
    path: Path, options: ReadOptions, schema: pa.Schema, skip_rows: int, span: Span | None = None
) -> Iterator[FileBlock]:
    """The data rows of a parquet file from the row group that holds `skip_rows` on."""
    with readable(path, "parquet"):
        with pyarrow.parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            _check_columns(path, file.schema_arrow, schema, options.times)
            ends, bytes_read = _group_ends(file.metadata, path.stat().st_size)
            passed = int(np.searchsorted(ends, skip_rows, side="right"))
            start, groups = int(ends[passed - 1]) if passed else 0, list(range(passed, len(ends)))
            metadata, coded = file.metadata, _coded_columns(file, schema, groups)
        plan = conversion(schema, from_column, options.times)
        with pyarrow.parquet.ParquetFile(
            path, metadata=metadata, read_dictionary=coded, coerce_int96_timestamp_unit="us"
        ) as file:
            for raw in file.iter_batches(_BLOCK_ROWS, row_groups=groups, columns=schema.names, use_threads=False):
                whole = int(np.searchsorted(ends, start + raw.num_rows, side="right"))
                yield _block(plan, raw, start, bytes_read[whole])
                start += raw.num_rows


def _group_ends(metadata: pyarrow.parquet.FileMetaData, size: int) -> tuple[Integers, list[int]]:
    """The last row of each row group, and the bytes that have been read before and after each: with the last, all."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    chunks = [[group.column(index) for index in range(group.num_columns)] for group in groups[:-1]]
    ends = [max(chunk.data_page_offset + chunk.total_compressed_size for chunk in each) for each in chunks]
    return np.cumsum([group.num_rows for group in groups], dtype=np.int64), [0, *ends, size][: len(groups) + 1]


def _coded_columns(file: pyarrow.parquet.ParquetFile, schema: pa.Schema, groups: list[int]) -> list[str]:
    """The text columns that the file stores as codes of few values: these are read as codes in half the time.

    Reading any other column as codes is several times slower. With codes a block ends at its row group, so row groups
    must be large.
    """
    text = {field.name for field in schema if pa.types.is_string(field.type)}
    places = {file.schema.column(place).path: place for place in range(len(file.schema))}
    row_groups = [file.metadata.row_group(group) for group in groups]
    if sum(group.num_rows for group in row_groups) < _BLOCK_ROWS * len(row_groups):
        return []
    return [
        path
        for path, place in places.items()
        if path in text and all(_is_coded(group.column(place)) for group in row_groups)
    ]


def _is_coded(chunk: pyarrow.parquet.ColumnChunkMetaData) -> bool:
    """True if values take less than the four bytes that the length of each would take alone."""
    return chunk.physical_type == "BYTE_ARRAY" and chunk.total_uncompressed_size < 4 * chunk.num_values


def _block(plan: Conversion, raw: pa.RecordBatch, start: int, read: int) -> FileBlock:
    columns = [raw.column(name) for name in plan.schema.names]
    rows, kept = plan.good_rows(columns)

    def explain(number: int) -> Fault:
        column, value, reason = plan.blame(columns, number - start)
        return Fault(f"row {number + 1}", reason, value, column)

    def texts(numbers: Numbers) -> Texts:
        return row_texts(raw.take(pa.array(numbers - start))), [number + 1 for number in numbers.tolist()]

    def reasons(numbers: Numbers) -> list[str]:
        return plan.reasons(columns, numbers - start)

    return FileBlock(rows, start, start + raw.num_rows, kept + start, explain, reasons, texts, read)


def _check_columns(path: Path, there: pa.Schema, schema: pa.Schema, times: TimeSpelling) -> None:
    for field in schema:
        if len(there.get_all_field_indices(field.name)) != 1:
            raise RunError(
                f'file "{path}" has no column "{field.name}"; it has {listed(there.names)}',
                hint="Name the stream's columns as the file does.",
            )
        found = there.field(field.name).type
        if not _changes(found, field.type, from_column(field.type, times)):
            raise RunError(
                f'column "{field.name}" of file "{path}" is {sql_name(found)}, not {sql_name(field.type)}',
                hint=f"Declare the column as {sql_name(found)} and CAST it in the query"
                + (", or say its timestamp_format." if pa.types.is_timestamp(field.type) else "."),
            )


def _changes(found: pa.DataType, kind: pa.DataType, convert: Convert) -> bool:
    """True if a type may be converted to another; beyond numbers, times and text, Arrow's casts guess too much."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found):
        # Without a single value the writer did not know the type.
        return True
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if pa.types.is_timestamp(kind) or pa.types.is_nested(kind):
        return _takes(found, convert)
    for family in (text, number, (pa.types.is_boolean,), (pa.types.is_date,)):
        if any(is_kind(kind) for is_kind in family):
            return any(is_kind(found) for is_kind in family)
    return found == kind


def _takes(found: pa.DataType, convert: Convert) -> bool:
    try:
        convert(pa.array([], found))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # Arrow has no test for a cast between types: it raises, even without rows.
        return False
    return True
