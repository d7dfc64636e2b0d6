"""The rows of the files, read as a run would read them: csv as text, json and parquet in the types that they have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
_SIMPLE = (pa.string(), pa.int64(), pa.float64(), pa.bool_())


@dataclass(frozen=True)
class SampledRows:
    """Rows of files or of a topic: their columns, how many rows were malformed; `whole` if these are all there are."""

    columns: Mapping[str, pa.ChunkedArray]
    rows: int
    malformed: int
    whole: bool
    left_out: Sequence[str] = ()
    """Columns that cannot be declared: without a name, with the name of another, or of a type that streams lack."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """By partition of a topic how many of the rows are of it, in their order."""

    @property
    def which(self) -> str:
        """Which of the rows these are."""
        return "all" if self.whole else "the oldest and newest" if self.parts else "the first"


def sampled_rows(shape: FileShape) -> SampledRows:
    """The rows of the files, up to about so many."""
    schema, left_out = _schema(shape)
    if not schema.names:
        raise RequestError(f'"{shape.path}" has no columns with names', hint="Give its columns names of their own.")
    batches, malformed, rows, whole = [], 0, 0, True
    for batch, bad in _batches(shape, schema):
        batches.append(batch)
        malformed += bad
        rows += batch.num_rows
        if rows >= MOST_ROWS:
            whole = False
            break
    if shape.format == "json" and malformed and not rows:
        raise RequestError(
            f'no line of "{shape.path}" is a JSON object by itself',
            hint="Write an object per line first: jq -c . file.json > file.jsonl",
        )
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
    return declarable(_parquet_schema(shape) if shape.format == "parquet" else _json_schema(shape))


def declarable(found: pa.Schema) -> tuple[pa.Schema, list[str]]:
    """The columns in the types that streams have, and the names of those for which there is none."""
    kinds = [(field.name, _declared(field.type) if field.name.strip() else None) for field in found]
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
    head = b"".join(_json_head(Path(file)) for file in shape.files[:20])
    if not head.strip():
        raise RequestError(f'"{shape.path}" is empty', hint="Give a file with an object per line.")
    found = json_schema(head, lambda schema: sum(bad for _, bad in _batches(shape, schema)))
    if not found.names:
        raise RequestError(f'"{shape.path}" holds no JSON objects', hint="Write one object per line.")
    return found


def json_schema(lines: bytes, unfit: Callable[[pa.Schema], int]) -> pa.Schema:
    """The columns of an object per line: as Arrow finds them, or one by one if a key has values of several kinds.

    `unfit` counts the rows that do not fit a schema.
    """
    # Arrow refuses a key whose values are of several kinds; such lines are looked at below, key by key.
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = pyarrow.json.read_json(
            pa.BufferReader(lines), read_options=pyarrow.json.ReadOptions(block_size=len(lines) + 1)
        ).schema
        return pa.schema([(field.name, _as_text(field.type)) for field in found])
    return pa.schema([(name, _json_type(name, unfit)) for name in _keys(lines)])


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


def _keys(lines: bytes) -> list[str]:
    """The keys of the objects, in the order in which they turn up."""
    names: dict[str, None] = {}
    for line in lines.split(b"\n"):
        with suppress(ValueError):
            found = json.loads(line)
            names.update(dict.fromkeys(found if isinstance(found, dict) else ()))
    return list(names)


def _json_type(name: str, unfit: Callable[[pa.Schema], int]) -> pa.DataType:
    """The simple type that the fewest values of a key do not fit; of two the earlier one."""
    return min(_SIMPLE, key=lambda kind: unfit(pa.schema([(name, kind)])))
