"""json, one object per line -> blocks of rows.

Rules:
- Arrow parses a block of whole lines at once. Only a block that fails is parsed line by line.
- A missing key is null, a key that is not in the schema is ignored, an empty line is no row.
- An object or an array in a column of text is its text to the letter: no digit of a number changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.files.conversion import UNFIT, Conversion, as_text, conversion, from_column
from millrace.connectors.files.file_blocks import Fault, FileBlock, Numbers, Texts, reasons_of
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.files.input_files import Span, is_plain, lines_before, open_piece, readable
from millrace.connectors.files.text_lines import NEWLINE, TOO_LONG, whole_lines
from millrace.connectors.files.times.timestamp_patterns import is_pattern
from millrace.kernel.columns.nested.json_as_written import TextPlaces, as_written, text_places
from millrace.kernel.columns.nested.json_values import Reader, loads, parse_lines, raw_type, reader, spelled
from millrace.kernel.columns.nested.nested_columns import has_map
from millrace.kernel.columns.sql_types import sql_name

_BLOCK_BYTES = 1 << 22
_LONG = b"\x1a"
"""The byte before the beginning of a line that was too long; no JSON begins with it."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a piece of a file: their bytes, and the numbers there of their first line and data row."""

    data: bytes
    line: int
    row: int
    path: Path | None = None
    span: Span | None = None

    @property
    def first(self) -> int:
        """The number of their first line in the file."""
        return self.line + (0 if self.path is None else lines_before(self.path, self.span))

    def texts(self, numbers: Numbers) -> Texts:
        """Rows by their numbers as the file has them, and their lines."""
        found = [(each, text) for each, text in enumerate(self.data.split(b"\n"), self.first) if text.strip()]
        rows = [found[number - self.row] for number in numbers.tolist()]
        return [as_text(text.removeprefix(_LONG).rstrip(b"\r")) for _, text in rows], [each for each, _ in rows]


def blocks(
    path: Path, options: ReadOptions, schema: pa.Schema, skip_rows: int, span: Span | None = None
) -> Iterator[FileBlock]:
    """The data rows of a file of json lines, or of a piece of it."""
    raw = raw_schema(schema, options.times.format)
    plan = conversion(schema, from_column, options.times)
    line, row, before = 1, 0, span[0] if span else 0
    with readable(path, "json"), open_piece(path, span) as stream:
        for data, read in whole_lines(stream, _BLOCK_BYTES, NEWLINE, _stub):
            lines = Lines(data, line, row, path, span)
            block = all_lines(lines, raw, plan) or _careful(lines, raw, plan)
            yield replace(block, read=before + read if is_plain(path) else 0)
            line, row = line + data.count(b"\n"), block.stop


def raw_schema(schema: pa.Schema, timestamp_format: str) -> pa.Schema:
    """What the values are in json: times are text or numbers, dates are text."""
    text = timestamp_format == "iso" or is_pattern(timestamp_format)
    time = pa.string() if text else pa.float64() if timestamp_format == "epoch_seconds" else pa.int64()
    return pa.schema([(field.name, raw_type(field.type, time)) for field in schema])


def _stub(begin: bytes) -> bytes:
    return _LONG + begin


def all_lines(lines: Lines, raw: pa.Schema, plan: Conversion) -> FileBlock | None:
    """All the lines at once; None if one of them is malformed, or Arrow cannot read the type of a column."""
    if any(has_map(field.type) for field in raw):
        return None
    try:
        parsed = parse_lines(lines.data, raw)
        rows = plan.all_rows(parsed.columns)
    except (*UNFIT, KeyError):
        return None
    if not _is_one_per_line(rows.num_rows, lines.data):
        return None
    stop = lines.row + rows.num_rows
    return FileBlock(rows, lines.row, stop, np.arange(lines.row, stop), _no_fault, _no_reasons, lines.texts)


def _is_one_per_line(rows: int, data: bytes) -> bool:
    """True if every row has its own line; Arrow also takes two objects on a line, and one on two lines."""
    if rows != data.count(b"\n{") + data.startswith(b"{"):
        return False
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return rows == lines or rows == sum(1 for line in data.split(b"\n") if line.strip())


def _no_fault(number: int) -> Fault:
    raise AssertionError(f"data row {number} is not malformed")


def _no_reasons(numbers: Numbers) -> list[str]:
    raise AssertionError(f"data rows {numbers} are not malformed")


def _careful(lines: Lines, raw: pa.Schema, plan: Conversion) -> FileBlock:
    """The lines one by one: the good rows, and what is wrong with the others."""
    texts = [(place, text) for place, text in enumerate(lines.data.split(b"\n"), lines.first) if text.strip()]
    fields = object_fields(plan.schema, raw)
    faults: dict[int, Fault] = {}
    objects = []
    for number, (place, text) in enumerate(texts, lines.row):
        found = object_or_fault(text, fields, f"line {place}")
        if isinstance(found, Fault):
            faults[number] = found
        else:
            objects.append((number, found))
    columns = [pa.array([found.get(field.name) for _, found in objects], field.type) for field in raw]
    numbers = np.array([number for number, _ in objects], dtype=np.int64)
    rows, kept = plan.good_rows(columns)

    def explain(number: int) -> Fault:
        if number in faults:
            return faults[number]
        column, value, reason = plan.blame(columns, int(np.searchsorted(numbers, number)))
        return Fault(f"line {texts[number - lines.row][0]}", reason, value, column)

    def reasons(wanted: Numbers) -> list[str]:
        known = {number: fault.told for number, fault in faults.items()}
        return reasons_of(wanted, known, lambda whole: plan.reasons(columns, np.searchsorted(numbers, whole)))

    return FileBlock(rows, lines.row, lines.row + len(texts), numbers[kept], explain, reasons, lines.texts)


@dataclass(frozen=True, slots=True)
class ObjectFields:
    """How the fields of an object are read: each with the type of its column, and where they have text."""

    fields: Sequence[tuple[str, pa.DataType, Reader]]
    texts: TextPlaces


def object_fields(schema: pa.Schema, raw: pa.Schema) -> ObjectFields:
    """How the columns of a schema are read, which are of the types `raw` in json."""
    fields = [(field.name, field.type, reader(kept.type)) for field, kept in zip(schema, raw, strict=True)]
    return ObjectFields(fields, text_places(pa.struct(list(raw))) or TextPlaces())


def object_or_fault(text: bytes, known: ObjectFields, place: str) -> dict[str, Any] | Fault:
    """The values of an object by column, or what is wrong with it."""
    if text.startswith(_LONG):
        return Fault(place, TOO_LONG, as_text(text.removeprefix(_LONG)))
    try:
        # Given bytes, Python would also take UTF-16.
        found = loads(text.decode())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return Fault(place, "is not a JSON object", as_text(text.strip()))
    if known.texts.hold_nested(found):
        found = as_written(text.decode(), known.texts)
    values = {name: found.get(name) for name, _, _ in known.fields}
    for name, kind, read in known.fields:
        try:
            values[name] = None if values[name] is None else read(values[name])
        except ValueError:
            return Fault(place, f"is not a valid {sql_name(kind)}", spelled(values[name]), name)
    return values
