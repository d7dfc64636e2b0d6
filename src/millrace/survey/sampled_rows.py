"""The rows of the files, read as a run would read them: csv as text, json and parquet in the types that they have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet

from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.input_files import open_bytes, readable
from millrace.errors import RequestError
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import TIMESTAMP
from millrace.survey.file_shape import FileShape

MOST_ROWS = 1_000_000
_HEAD_BYTES = 1 << 22
_SIMPLE = (pa.int64(), pa.float64(), pa.bool_(), pa.string())


@dataclass(frozen=True)
class SampledRows:
    """The first rows of files: their columns, how many rows were malformed; `whole` if these are all there are."""

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    malformed: int
    whole: bool
    left_out: Sequence[str] = ()
    """Columns that cannot be declared: without a name, with the name of another, or of a type that streams lack."""


def sampled_rows(shape: FileShape, most: int = MOST_ROWS) -> SampledRows:
    """The rows of the files, up to about so many."""
    schema, left_out = _schema(shape)
    if not schema.names:
        raise RequestError(f'"{shape.path}" has no columns with names', hint="Give its columns names of their own.")
    batches, malformed, rows, whole = [], 0, 0, True
    for batch, bad in _batches(shape, schema):
        batches.append(batch)
        malformed += bad
        rows += batch.num_rows
        if rows >= most:
            whole = False
            break
    table = pa.Table.from_batches(batches, schema)
    return SampledRows(dict(zip(table.column_names, table.columns, strict=True)), rows, malformed, whole, left_out)


def _batches(shape: FileShape, schema: pa.Schema) -> Iterator[tuple[pa.RecordBatch, int]]:
    connector = shape.connector(on_malformed="skip")
    for file in shape.files:
        for batch in read_file(Path(file), connector, schema):
            yield batch.rows, batch.malformed


def _schema(shape: FileShape) -> tuple[pa.Schema, list[str]]:
    """The columns that are read, and the names of those that are not."""
    if shape.format == "csv":
        kept = [name for name in shape.names if name.strip() and shape.names.count(name) == 1]
        return pa.schema([(name, pa.string()) for name in kept]), [each for each in shape.names if each not in kept]
    found = _parquet_schema(shape) if shape.format == "parquet" else _json_schema(shape)
    kinds = [(field.name, _declared(field.type)) for field in found]
    return (
        pa.schema([(name, kind) for name, kind in kinds if kind is not None]),
        [name for name, kind in kinds if kind is None],
    )


def _declared(kind: pa.DataType) -> pa.DataType | None:
    """The type of a stream's column for values of a type; None if there is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else None
    if pa.types.is_struct(kind):
        parts = [(part.name, _declared(part.type)) for part in kind]
        return pa.struct(parts) if parts and all(part is not None for _, part in parts) else pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _declared(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return kind if sql_name(kind) != str(kind) or pa.types.is_map(kind) else None


def _parquet_schema(shape: FileShape) -> pa.Schema:
    with readable(Path(shape.files[0]), "parquet"):
        return pyarrow.parquet.read_schema(shape.files[0])


def _json_schema(shape: FileShape) -> pa.Schema:
    """The columns of json: as Arrow finds them, or one by one if a key has values of several kinds."""
    head = b"".join(_json_head(Path(file)) for file in shape.files[:20])
    if not head.strip():
        raise RequestError(f'"{shape.path}" is empty', hint="Give a file with an object per line.")
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = pyarrow.json.read_json(
            pa.BufferReader(head), read_options=pyarrow.json.ReadOptions(block_size=len(head) + 1)
        ).schema
        return pa.schema([(field.name, _as_text(field.type)) for field in found])
    names = _keys(head)
    if not names:
        raise RequestError(f'"{shape.path}" holds no JSON objects', hint="Write one object per line.")
    return pa.schema([(name, _json_type(shape, name)) for name in names])


def _as_text(kind: pa.DataType) -> pa.DataType:
    """Types of Arrow's, with text where it has seen times: which ones these are is found out later."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, _as_text(part.type)) for part in kind])
    return pa.list_(_as_text(kind.value_type)) if pa.types.is_list(kind) else kind


def _json_head(file: Path) -> bytes:
    with readable(file, "json"), open_bytes(file) as stream:
        data: bytes = stream.read(_HEAD_BYTES)
    data = data.removeprefix(b"\xef\xbb\xbf")
    return (data if len(data) < _HEAD_BYTES else data[: data.rfind(b"\n") + 1]).rstrip() + b"\n"


def _keys(head: bytes) -> list[str]:
    """The keys of the objects, in the order in which they turn up."""
    names: dict[str, None] = {}
    for line in head.split(b"\n"):
        with suppress(ValueError):
            found = json.loads(line)
            names.update(dict.fromkeys(found if isinstance(found, dict) else ()))
    return list(names)


def _json_type(shape: FileShape, name: str) -> pa.DataType:
    """The first simple type that all values of a key fit."""
    for kind in _SIMPLE:
        schema = pa.schema([(name, kind)])
        if not any(bad for _, bad in _batches(shape, schema)):
            return kind
    return pa.string()
