"""Rows -> a file of any format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from millrace.connectors.files.file_options import check_write_options
from millrace.connectors.files.times.timestamps import text_of
from millrace.kernel.columns.interval_values import interval_text
from millrace.kernel.columns.nested.json_text import JsonText

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
JSON = JsonText(null_fields=True, time=text_of)
"""How results are written as JSON."""
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2"}


def _create(path: Path) -> Any:
    return pa.OSFile(str(path), "wb")


def write_file(
    path: Path,
    format: str,
    rows: pa.Table,
    options: Mapping[str, str] = _NO_OPTIONS,
    create: Callable[[Path], AbstractContextManager[Any]] = _create,
) -> None:
    """Write rows as one file; csv and json are compressed when the path ends in .gz or .bz2.

    `create` opens the file as an Arrow stream.
    """
    check_write_options(format, options)
    compression = _COMPRESSIONS.get(path.suffix) if format != "parquet" else None
    with create(path) as file:
        if compression is None:
            _WRITERS[format](file, rows, options)
        else:
            with pa.CompressedOutputStream(file, compression) as stream:
                _WRITERS[format](stream, rows, options)


def _write_parquet(stream: Any, rows: pa.Table, options: Mapping[str, str]) -> None:
    pyarrow.parquet.write_table(rows, stream, compression=options.get("compression", "snappy").lower())


def _write_csv(stream: Any, rows: pa.Table, options: Mapping[str, str]) -> None:
    delimiter = options.get("delimiter", ",")
    layout = pyarrow.csv.WriteOptions(
        include_header=options.get("header", "true").lower() == "true",
        delimiter={"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter),
    )
    pyarrow.csv.write_csv(_with_plain_times(rows), stream, layout)


def _write_json(stream: Any, rows: pa.Table, options: Mapping[str, str]) -> None:
    for batch in rows.to_batches(max_chunksize=65_536):
        stream.write(_lines(batch))


_WRITERS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}


def _with_plain_times(rows: pa.Table) -> pa.Table:
    """The rows with timestamps that Arrow writes without a zone, and without a fraction of zeros; intervals as text."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(index, field.name, _plain_times(rows.column(index)))
        elif pa.types.is_duration(field.type):
            rows = rows.set_column(index, field.name, interval_text(rows.column(index)))
    return rows


def _plain_times(column: Any) -> Any:
    """A column of whole seconds as timestamps; one with fractions as text, which csv writes in quotes."""
    try:
        return pc.cast(pc.cast(column, pa.timestamp("us")), pa.timestamp("s"))
    except pa.ArrowInvalid:
        return text_of(column)


def json_lines(rows: pa.Table) -> list[str]:
    """Each row as a JSON object, as a json file has it.

    >>> from decimal import Decimal
    >>> json_lines(pa.table({"k": ["a", None], "money": [Decimal("1.10"), None]}))
    ['{"k":"a","money":1.10}', '{"k":null,"money":null}']
    """
    batches = rows.to_batches()
    return [line for batch in batches for line in JSON.object_of(batch.schema.names, batch.columns).to_pylist()]


def _lines(rows: pa.RecordBatch) -> pa.Buffer:
    """Each row as a JSON object and a newline, made column by column."""
    lines = JSON.object_of(rows.schema.names, rows.columns, "\n")
    # The texts of a column are contiguous in its last buffer: that is the file.
    return lines.buffers()[2]
