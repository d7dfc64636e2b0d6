"""csv -> blocks of rows.

Rules:
- Arrow splits lines into fields, about a block at a time; then a column is converted whole. Only a column that fails is
  searched for the cells that do not fit.
- A quote that is never closed makes its own line malformed, and no other; so does a line that is too long.
- An unquoted empty field is null; a quoted one is the empty text, and null for every type but STRING.
- Empty lines are not rows, except in a file of one column, where they are nulls.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from millrace.connectors.files.conversion import Conversion, conversion, from_text
from millrace.connectors.files.csv_records import LONG, Layout, records
from millrace.connectors.files.file_blocks import Fault, FileBlock, Numbers, Texts, reasons_of
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.files.input_files import Span, is_plain, lines_before, open_piece, readable
from millrace.connectors.files.text_lines import (
    ANY_LINE_END,
    LONGEST,
    TOO_LONG,
    count_lines,
    is_utf_8,
    narrowed,
    narrowed_column,
    whole_lines,
    widened,
)
from millrace.errors import RunError, listed

_BLOCK_BYTES = 1 << 20
_LONGEST_FIELD = 4 * LONGEST
"""More than a record can have: the lines of one are limited."""


@dataclass(frozen=True, slots=True)
class _CsvFile:
    """A csv file to read; `names` are its columns, None if it is empty."""

    path: Path
    options: ReadOptions
    names: Sequence[str] | None
    span: Span | None = None

    @property
    def has_header(self) -> bool:
        """True if its piece begins with the header."""
        return self.options.header and not (self.span and self.span[0])

    @property
    def skips_empty_lines(self) -> bool:
        return self.names is None or len(self.names) > 1

    @property
    def layout(self) -> Layout:
        return Layout(self.options.delimiter, self.options.quote, len(self.names or ()))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole records of a file: the columns to read, and by number those records that have a wrong number of fields.

    `text` is what they stand in, `cut` the same with marks for lines that are no records, `passed` how many records
    stand before the first.
    """

    raw: pa.RecordBatch
    torn: dict[int, tuple[int, str]]
    text: bytes = b""
    cut: bytes = b""
    passed: int = 0

    @property
    def length(self) -> int:
        return int(self.raw.num_rows) + len(self.torn)

    def numbers(self, start: int) -> Numbers:
        """The data row numbers of the whole rows, if the first record is number `start`."""
        if not self.torn:
            return np.arange(start, start + self.length, dtype=np.int64)
        return start + np.delete(np.arange(self.length, dtype=np.int64), list(self.torn))

    @property
    def starts_empty(self) -> bool:
        """True if the first record holds only nulls, as an empty line before the header of one column does."""
        return 0 not in self.torn and not any(column[0].is_valid for column in self.raw.columns)

    def without_first(self) -> _Piece:
        """All but the first record, which is the header."""
        raw = self.raw if 0 in self.torn else self.raw.slice(1)
        torn = {number - 1: row for number, row in self.torn.items() if number}
        return replace(self, raw=raw, torn=torn, passed=self.passed + 1)

    def texts(self, records: Numbers, file: _CsvFile) -> Texts:
        """Records by their numbers as the file has them, and the line of the piece on which each begins, from 0 on."""
        lines = list(io.StringIO(self.text.decode("utf-8", "replace"), newline=""))
        ends, begin = [], 0
        rows = _rows(iter([self.cut]), file.options)
        for row in rows:
            if row or not file.skips_empty_lines:
                ends.append((begin, rows.line_num))
            begin = rows.line_num
        spans = [ends[number + self.passed] for number in records.tolist()]
        texts = ["".join(lines[begin:end]).rstrip("\r\n") for begin, end in spans]
        long = [file.layout.marked(text) for text in texts]
        texts = [mark.removeprefix(LONG) if mark else text for text, mark in zip(texts, long, strict=True)]
        return texts, [begin for begin, _ in spans]


def blocks(
    path: Path, options: ReadOptions, schema: pa.Schema, skip_rows: int, span: Span | None = None
) -> Iterator[FileBlock]:
    """The data rows of a csv file, or of a piece of it, from about `skip_rows` on."""
    with readable(path, "csv"):
        file = _CsvFile(path, options, _column_names(path, options, schema, span), span)
    if file.names is None:
        return
    _check_columns(file, schema)
    plan = conversion(schema, from_text, options.times)
    start, line = 0, 1
    for piece, read in _data_pieces(file, schema):
        stop = start + piece.length
        if stop > max(start, skip_rows):
            yield replace(_block(file, plan, piece, start, line), read=read)
        start, line = stop, line + count_lines(piece.text)


def _block(file: _CsvFile, plan: Conversion, piece: _Piece, start: int, line: int) -> FileBlock:
    columns = [piece.raw.column(name) for name in plan.schema.names]
    rows, kept = plan.good_rows(columns)
    numbers = piece.numbers(start)

    def texts(wanted: Numbers) -> Texts:
        found, lines = piece.texts(wanted - start, file)
        before = line + lines_before(file.path, file.span)
        return found, [before + each for each in lines]

    def explain(number: int) -> Fault:
        place = f"line {texts(np.array([number]))[1][0]}"
        if number - start in piece.torn:
            return _torn(file, place, *piece.torn[number - start])
        column, value, reason = plan.blame(columns, int(np.searchsorted(numbers, number)))
        return Fault(place, reason, value, column)

    def reasons(wanted: Numbers) -> list[str]:
        torn = {start + record: _torn(file, "", *row).reason for record, row in piece.torn.items()}
        return reasons_of(wanted, torn, lambda whole: plan.reasons(columns, np.searchsorted(numbers, whole)))

    return FileBlock(rows, start, start + piece.length, numbers[kept], explain, reasons, texts)


def _torn(file: _CsvFile, place: str, fields: int, text: str) -> Fault:
    line = file.layout.marked(text)
    if line is not None and line.startswith(LONG):
        return Fault(place, TOO_LONG, line.removeprefix(LONG))
    if line is not None:
        return Fault(place, "opens a quote that is not closed", line)
    word = "field" if fields == 1 else "fields"
    return Fault(place, f"has {fields} {word} instead of {file.layout.fields}", text)


def _data_pieces(file: _CsvFile, schema: pa.Schema) -> Iterator[tuple[_Piece, int]]:
    """The data rows of a file, about a block at a time, and how many bytes of it have been read for them."""
    cutter = _Cutter(file, schema)
    header, before = file.has_header, file.span[0] if file.span else 0
    with readable(file.path, "csv"), open_piece(file.path, file.span) as stream:
        for read in records(stream, _BLOCK_BYTES, file.layout, cutter):
            piece = cutter.piece
            while header and piece.length:
                header = piece.starts_empty and not file.skips_empty_lines
                piece = piece.without_first()
            yield piece, before + read if is_plain(file.path) else 0


def end_of_records(path: Path, options: ReadOptions, start: int, size: int) -> int:
    """Where the last whole record ends of those that stand from `start` on; `start` if there is none."""
    with readable(path, "csv"):
        first = _first_row(path, options, (0, size))
        if first is None:
            return start
        layout = Layout(options.delimiter, options.quote, len(first))
        with open_piece(path, (start, size)) as stream:
            ends = records(stream, _BLOCK_BYTES, layout, lambda *lines: layout.repair(*lines)[1], ends=False)
            return start + max(ends, default=0)


class _Cutter:
    """Cuts lines into records, in the fastest way that loses none.

    If every line is a record, no quote reaches beyond its line. If some records are longer but every quote stands at
    the border of its field, only the number of fields remains to be checked. Other lines are repaired first.
    """

    def __init__(self, file: _CsvFile, schema: pa.Schema) -> None:
        self.piece = _Piece(_no_rows(schema), {})
        self._file = file
        self._schema = schema
        self._layout = file.layout
        self._has_long_records = False

    def __call__(self, lines: bytes, pending_bytes: int) -> bytes:
        """Keep the records in `piece`; return the lines of a record that is not whole yet."""
        if not self._has_long_records and self._takes_lines(lines):
            return b""
        self._has_long_records = True
        end = self._layout.end_of_records(lines)
        if end is not None and len(lines) - end <= pending_bytes and self._takes_records(lines[:end]):
            return lines[end:]
        repaired, rest = self._layout.repair(lines, pending_bytes)
        self.piece = replace(self._parse(repaired), text=lines[: len(lines) - len(rest)])
        return rest

    def _takes_lines(self, lines: bytes) -> bool:
        self.piece = self._parse(lines)
        if self._file.options.quote.encode() not in lines:
            return True
        count = count_lines(lines)
        if self.piece.length != count and self._file.skips_empty_lines:
            count = sum(1 for line in lines.splitlines() if line)
        # A quote that is open at the end is not seen in the number of lines, but its record ends with a line end.
        return self.piece.length == count and not self._ends_open(lines)

    def _takes_records(self, lines: bytes) -> bool:
        self.piece = self._parse(lines)
        return not any("\n" in text or "\r" in text for _, text in self.piece.torn.values())

    def _ends_open(self, lines: bytes) -> bool:
        """True if a quote in the last line is not closed there."""
        text = lines.rstrip(b"\r\n")
        last = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :] + b"\n"
        return bool(self._layout.repair(last, pending_bytes=0)[0] != last)

    def _parse(self, lines: bytes) -> _Piece:
        torn: dict[int, tuple[int, str]] = {}
        # Arrow hands a record with a wrong number of fields over as text, and fails if it is none.
        plain = is_utf_8(lines)

        def keep(row: pyarrow.csv.InvalidRow) -> str:
            torn[row.number - 1] = (row.actual_columns, row.text if plain else narrowed(row.text))
            return "skip"

        if not lines:
            return _Piece(_no_rows(self._schema), torn, lines, lines)
        rows = _read(lines, self._file, self._schema, keep, plain=plain).combine_chunks()
        batch = rows.to_batches()[0] if rows.num_rows else _no_rows(self._schema)
        if not plain:
            batch = pa.RecordBatch.from_arrays([*map(narrowed_column, batch.columns)], schema=batch.schema)
        return _Piece(batch, torn, lines, lines)


def _read(lines: bytes, file: _CsvFile, schema: pa.Schema, keep: Callable[[Any], str], *, plain: bool) -> pa.Table:
    """The columns of the schema as bytes; records with a wrong number of fields go to `keep`.

    Lines that are not `plain` text are widened, and so is what comes of them.
    """
    options = file.options
    nulls = options.null_values if plain else [widened(each.encode()).decode() for each in options.null_values]
    lines = lines if plain else widened(lines)
    return pyarrow.csv.read_csv(
        pa.BufferReader(lines),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=file.names),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote,
            newlines_in_values=True,
            ignore_empty_lines=file.skips_empty_lines,
            invalid_row_handler=keep,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=schema.names,
            column_types={name: pa.binary() for name in schema.names},
            null_values=list(nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _first_row(path: Path, options: ReadOptions, span: Span | None) -> Sequence[str] | None:
    """The first row that is not empty; None if there is none."""

    def stub(begin: bytes) -> bytes:
        if options.header:
            raise csv.Error(f"its first line {TOO_LONG}")
        return begin

    with open_piece(path, span and (0, span[1])) as stream:
        rows = _rows((lines for lines, _ in whole_lines(stream, _BLOCK_BYTES, ANY_LINE_END, stub)), options)
        found: Sequence[str] | None = next(filter(None, rows), None)
        return found


def _column_names(path: Path, options: ReadOptions, schema: pa.Schema, span: Span | None) -> Sequence[str] | None:
    header = _first_row(path, options, span)
    return header if header is None or options.header else list(schema.names)


def _check_columns(file: _CsvFile, schema: pa.Schema) -> None:
    assert file.names is not None
    for name in schema.names:
        if file.names.count(name) != 1:
            lack = "has no" if name not in file.names else "has more than one"
            raise RunError(
                f'file "{file.path}" {lack} column "{name}"; it has {listed(file.names)}',
                hint="Name the stream's columns as the first line of the file does, or say OPTIONS (header 'false').",
            )


def _rows(pieces: Iterator[bytes], options: ReadOptions) -> Any:
    """The rows as the standard library splits them, with the line on which each ends."""
    csv.field_size_limit(_LONGEST_FIELD)
    lines = (line for piece in pieces for line in io.StringIO(piece.decode("utf-8", "replace"), newline=""))
    return csv.reader(lines, delimiter=options.delimiter, quotechar=options.quote)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array([], pa.binary()) for name in schema.names})
