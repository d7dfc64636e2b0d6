"""Types of columns in PostgreSQL: that of a new table, those of other tables that are wide enough; columns as text.

Rules:
- Nested columns are `jsonb`, bytes `bytea`, times `timestamptz`, intervals `interval`.
- A table may have a wider type. One that would round, cut or wrap a value without a word is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from millrace.connectors.files.times.timestamps import text_of
from millrace.errors import RequestError
from millrace.kernel.columns.functions.encodings import ENCODING_FUNCTIONS
from millrace.kernel.columns.nested.json_text import JsonText
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import INTERVAL, MONTHS

_TYPES = {
    pa.bool_(): "boolean", pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
    pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.binary(): "bytea",
    pa.date32(): "date", INTERVAL: "interval", MONTHS: "interval",
}  # fmt: skip
_WIDER = {
    "smallint": ("integer", "bigint", "numeric"),
    "integer": ("bigint", "numeric"),
    "bigint": ("numeric",),
    "real": ("double precision",),
    "timestamp with time zone": ("timestamp without time zone",),
    "jsonb": ("json", "text"),
}
_TEXTS = re.compile(r"text|citext|uuid|jsonb?|inet|cidr|macaddr8?|xml|character( varying)?(\(\d+\))?")
"""Types that are read from text; a value that one does not take is an error of the server."""
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_JSON = JsonText(null_fields=True, time=text_of)
_LAYOUT = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")


def type_of(field: pa.Field) -> str:
    """The type of a column in a table that is made for it.

    >>> type_of(pa.field("n", pa.decimal128(10, 2)))
    'numeric(10,2)'
    """
    kind = field.type
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_nested(kind):
        return "jsonb"
    if kind not in _TYPES:
        raise RequestError(
            f'column "{field.name}" is {sql_name(kind)}, which PostgreSQL has no type for', hint="Cast it in the query."
        )
    return _TYPES[kind]


def takes(given: str, field: pa.Field) -> bool:
    """True if a column of a type, as PostgreSQL spells it, holds all values of a column of results.

    >>> takes("bigint", pa.field("n", pa.int32())), takes("integer", pa.field("n", pa.int64()))
    (True, False)
    """
    wanted = type_of(field)
    if given == wanted or given in _WIDER.get(wanted, ()):
        return True
    if wanted == "text":
        # What is not built in, such as an enumeration, has a name of the user's.
        return _TEXTS.fullmatch(given) is not None or given not in _BUILT_IN
    if wanted.startswith("numeric"):
        return given == "numeric" or _holds(given, field.type)
    return False


_BUILT_IN = {
    *_TYPES.values(),
    "numeric",
    "timestamp with time zone",
    "timestamp without time zone",
    "json",
    "jsonb",
} - {"text"}


def _holds(given: str, kind: pa.DataType) -> bool:
    found = _NUMERIC.fullmatch(given)
    if found is None:
        return False
    digits, scale = int(found[1]), int(found[2])
    return scale >= kind.scale and digits - scale >= kind.precision - kind.scale


def copy_text(batch: pa.RecordBatch) -> pa.Buffer:
    """Rows as CSV in which null is nothing and every other value is in quotes: what `COPY … (FORMAT csv)` reads."""
    columns = [_text(column) for column in batch.columns]
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), sink, _LAYOUT)
    return sink.getvalue()


def _text(column: Any) -> Any:
    """A column as Arrow writes it in a way that PostgreSQL reads."""
    kind = column.type
    return next((convert(column) for fits, convert in _CONVERSIONS if fits(kind)), column)


def _counted(column: Any) -> Any:
    unit = "months" if column.type == MONTHS else "microseconds"
    return pc.binary_join_element_wise(pc.cast(pc.cast(column, pa.int64()), pa.string()), unit, " ")


_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_nested, _JSON.of),
    (pa.types.is_binary, lambda column: pc.binary_join_element_wise("\\x", ENCODING_FUNCTIONS["hex"](column), "")),
    (pa.types.is_duration, _counted),
    (pa.types.is_decimal, lambda column: pc.cast(column, pa.string())),
)
