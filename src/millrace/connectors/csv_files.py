"""csv -> blocks of rows.

Rules:
- Arrow cuts the file into fields, block by block; a column is then converted whole. Only a column that fails is
  searched for the cells to blame.
- An unquoted empty field is null; a quoted one is the empty text, and null for every type but STRING.
- Empty lines are not rows, except in a file of one column, where they are nulls.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from millrace.connectors.blocks import Block, Fault, Numbers
from millrace.connectors.cells import from_text
from millrace.connectors.conversion import Conversion, conversion
from millrace.connectors.options import ReadOptions
from millrace.connectors.sources import open_bytes, readable
from millrace.errors import MalformedRow, RequestError

_BLOCK_BYTES = 1 << 22
_LONGEST_FIELD = 1 << 24


@dataclass(frozen=True, slots=True)
class _File:
    """A csv file about to be read; `names` are the columns it has, None when it is empty."""

    path: Path
    options: ReadOptions
    names: Sequence[str] | None

    @property
    def skips_empty_lines(self) -> bool:
        return self.names is None or len(self.names) > 1


@dataclass(slots=True)
class _Torn:
    """Rows with a wrong number of fields by data row number, as Arrow comes across them."""

    first: int
    found: dict[int, tuple[int, str]] = field(default_factory=dict)

    def __call__(self, row: pyarrow.csv.InvalidRow) -> str:
        self.found[row.number - self.first] = (row.actual_columns, row.text)
        return "skip"

    def numbers(self, start: int, length: int) -> Numbers:
        """The data row numbers of the next `length` whole rows, from `start` on."""
        self.found = {number: row for number, row in self.found.items() if number >= start}
        torn = np.array(list(self.found), dtype=np.int64)
        candidates = np.arange(start, start + length + len(torn), dtype=np.int64)
        return candidates[~np.isin(candidates, torn)][:length]

    def last(self) -> int:
        """The number of the last such row, -1 without one."""
        return max(self.found, default=-1)


def blocks(path: Path, options: ReadOptions, schema: pa.Schema, skip_rows: int) -> Iterator[Block]:
    """The data rows of a csv file from about `skip_rows` on."""
    with readable(path, "csv"):
        file = _File(path, options, _column_names(path, options, schema))
    if file.names is None:
        return
    _check_columns(file, schema)
    torn = _Torn(first=2 if options.header else 1)
    plan = conversion(schema, from_text, options.timestamp_format)
    start = 0
    for raw in _raw_batches(file, schema, torn):
        numbers = torn.numbers(start, raw.num_rows)
        stop = int(numbers[-1]) + 1 if len(numbers) else start
        if stop > max(start, skip_rows):
            yield _block(file, plan, raw, start, stop, numbers, torn)
        start = stop
    if torn.last() >= start:
        yield _block(file, plan, _no_rows(schema), start, torn.last() + 1, np.array([], dtype=np.int64), torn)


def _block(
    file: _File, plan: Conversion, raw: pa.RecordBatch, start: int, stop: int, numbers: Numbers, torn: _Torn
) -> Block:
    columns = [raw.column(name) for name in plan.schema.names]
    rows, kept = plan.good_rows(columns)

    def explain(number: int) -> Fault:
        place = f"line {_line_of(file, number)}"
        if number in torn.found:
            fields, text = torn.found[number]
            assert file.names is not None
            return Fault(place, f"has {fields} fields instead of {len(file.names)}", text)
        column, value, reason = plan.blame(columns, int(np.searchsorted(numbers, number)))
        return Fault(place, reason, value, column)

    return Block(rows, start, stop, numbers[kept], explain)


def _raw_batches(file: _File, schema: pa.Schema, torn: _Torn) -> Iterator[pa.RecordBatch]:
    """The columns of the schema as bytes, in batches of one block of the file each."""
    with readable(file.path, "csv"), open_bytes(file.path) as stream:
        try:
            yield from _open(stream, file, schema, torn)
        except pa.ArrowInvalid as error:
            raise _unreadable(file, error) from error


def _open(stream: object, file: _File, schema: pa.Schema, torn: _Torn) -> pyarrow.csv.CSVStreamingReader:
    options = file.options
    return pyarrow.csv.open_csv(
        stream,
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=_BLOCK_BYTES, column_names=None if options.header else file.names
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote,
            newlines_in_values=True,
            ignore_empty_lines=file.skips_empty_lines,
            invalid_row_handler=torn,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=schema.names,
            column_types={name: pa.binary() for name in schema.names},
            null_values=list(options.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _unreadable(file: _File, error: Exception) -> MalformedRow:
    """Arrow lost its way: a quote that is never closed, or a field beyond any measure."""
    return MalformedRow(
        f'file "{file.path}": a quoted field does not end within {_BLOCK_BYTES:,} bytes ({error})',
        hint="Close the quote; such a row cannot be skipped, because nobody can tell where the next one begins.",
    )


def _column_names(path: Path, options: ReadOptions, schema: pa.Schema) -> Sequence[str] | None:
    with open_bytes(path) as stream:
        header: Sequence[str] | None = next(filter(None, _rows(stream, options)), None)
    if header is None or options.header:
        return header
    return list(schema.names)


def _check_columns(file: _File, schema: pa.Schema) -> None:
    assert file.names is not None
    for name in schema.names:
        if file.names.count(name) != 1:
            lack = "has no" if name not in file.names else "has more than one"
            raise RequestError(
                f'file "{file.path}" {lack} column "{name}"; it has {", ".join(file.names)}',
                hint="Name the stream's columns as the first line of the file does, or say OPTIONS (header 'false').",
            )


def _line_of(file: _File, number: int) -> int:
    """The line on which a data row begins; read again from the start, since only an error asks for it."""
    rows_before = number + int(file.options.header)
    begin = 1
    with open_bytes(file.path) as stream:
        rows = _rows(stream, file.options)
        for row in rows:
            if row or not file.skips_empty_lines:
                if rows_before == 0:
                    return begin
                rows_before -= 1
            begin = rows.line_num + 1
    return begin


def _rows(stream: Any, options: ReadOptions) -> Any:
    """The rows as the standard library cuts them, with the line each ends on."""
    csv.field_size_limit(_LONGEST_FIELD)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    return csv.reader(text, delimiter=options.delimiter, quotechar=options.quote)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array([], pa.binary()) for name in schema.names})
