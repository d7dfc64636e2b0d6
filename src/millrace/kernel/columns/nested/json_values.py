"""JSON text into columns of a type: by Arrow all at once, or value by value where Arrow gives up.

Rules:
- A `raw` type is what JSON has for a type: times, dates and bytes are text, decimals have room for any number.
- A missing field is null, a field that the type does not have is ignored. An object or an array may be read as text.
- Arrow reads no maps, and no object as text.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from millrace.kernel.columns.nested.nested_columns import Leaf, brought, has_map, lost

Reader = Callable[[Any], Any]
"""Gives a value that JSON holds as Arrow takes it; raises ValueError if it is of another type."""

RAW_DECIMAL = pa.decimal256(76, 38)
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'((?:[^'\\]|\\.)*)'""", re.DOTALL)
_WITHIN_QUOTES = re.compile(r'\\.|"', re.DOTALL)
_NO_NUMBERS = {
    "NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "+INF": math.inf, "-Infinity": -math.inf,
    "-INF": -math.inf,
}  # fmt: skip
"""Texts that Spark reads as fractions."""
_GREATEST_DOUBLE = sys.float_info.max


def raw_type(kind: pa.DataType, time: pa.DataType) -> pa.DataType:
    """What values of a type are in JSON, where times are of the type `time`."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, raw_type(field.type, time)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(raw_type(kind.key_type, time), raw_type(kind.item_type, time))
    if pa.types.is_list(kind):
        return pa.list_(raw_type(kind.value_type, time))
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_decimal(kind):
        return RAW_DECIMAL
    as_text = (pa.types.is_date, pa.types.is_binary, pa.types.is_duration)
    return pa.string() if any(test(kind) for test in as_text) else kind


def parse_lines(data: bytes, raw: pa.Schema) -> pa.RecordBatch:
    """Objects, one per line, as columns; raises what Arrow raises."""
    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=raw, unexpected_field_behavior="ignore"),
    )
    parsed = pa.RecordBatch.from_arrays([table.column(name).combine_chunks() for name in raw.names], schema=raw)
    # Arrow lets text through that is not UTF-8.
    parsed.validate(full=True)
    return parsed


def parsed(texts: pa.Array, kind: pa.DataType, cast: Leaf, *, forgiving: bool = False) -> tuple[pa.Array, pa.Array]:
    """The values that texts hold, null where they hold none, and which these are; each distinct text is read once.

    `cast` brings texts to times and the like; what it makes null has not been such a value. With `forgiving` a field of
    another type is null by itself, a number may be read as text, and an object as an array of one struct.
    """
    encoded = texts.dictionary_encode()
    raw = raw_type(kind, pa.string())
    whole = of_lines(encoded.dictionary, raw)
    if whole is None:
        values, faulty = _one_by_one(encoded.dictionary, raw, forgiving)
    else:
        values, faulty = whole, pa.repeat(False, len(whole))
    found = brought(values, kind, lambda part, inner: _leaf(part, inner, cast, forgiving))
    faulty = pc.or_(faulty, pa.array(lost(values, found))) if forgiving else faulty
    return found.take(encoded.indices), pc.fill_null(faulty.take(encoded.indices), False)


def _leaf(part: pa.Array, kind: pa.DataType, cast: Leaf, forgiving: bool) -> pa.Array:
    if pa.types.is_binary(kind) and pa.types.is_string(part.type):
        return of_base64(part, forgiving=forgiving)
    return cast(part, kind)


def of_lines(texts: pa.Array, raw: pa.DataType) -> pa.Array | None:
    """The values of all texts at once; None if Arrow cannot."""
    if has_map(raw) or not len(texts):
        return None
    lines = pc.binary_join_element_wise('{"v":', texts, "}\n", "")
    try:
        found = parse_lines(lines.buffers()[2].to_pybytes(), pa.schema([("v", raw)])).column(0)
    except (ValueError, TypeError, OverflowError, KeyError):
        return None
    return found if len(found) == len(texts) else None


def _one_by_one(texts: pa.Array, raw: pa.DataType, forgiving: bool) -> tuple[pa.Array, pa.Array]:
    faults: list[object] = []
    read, values, faulty = reader(raw, faults.append if forgiving else None), [], []
    wraps = forgiving and pa.types.is_list(raw) and pa.types.is_struct(raw.value_type)
    for text in texts.to_pylist():
        faults.clear()
        try:
            value = loads_quoted(text) if forgiving else loads(text)
            if wraps and isinstance(value, dict):
                value = [value]
            values.append(None if value is None else read(value))
        except ValueError:
            values.append(None)
            faults.append(text)
        faulty.append(bool(faults))
    return pa.array(values, raw), pa.array(faulty, pa.bool_())


def loads(text: str | bytes) -> Any:
    """One JSON text, with its fractions exact; raises ValueError where it is none."""
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def loads_quoted(text: str) -> Any:
    """As `loads`, also with texts in single quotes, as Spark reads them."""
    try:
        return loads(text)
    except ValueError:
        if "'" not in text:
            raise
        return loads(_QUOTED.sub(_double_quoted, text))


def _double_quoted(quoted: re.Match[str]) -> str:
    if quoted[1] is None:
        return quoted[0]
    inside = _WITHIN_QUOTES.sub(lambda part: {"\\'": "'", '"': '\\"'}.get(part[0], part[0]), quoted[1])
    return f'"{inside}"'


def spelled(value: object) -> str:
    """A value of JSON as text: text as it is, anything else as JSON."""
    return (
        value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)
    )


def of_base64(texts: pa.Array, *, forgiving: bool = False) -> pa.Array:
    """The bytes of texts in base 64; other text raises ValueError, or with `forgiving` gives null."""

    def read(text: str) -> bytes | None:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            if forgiving:
                return None
            raise

    return pa.array([None if each is None else read(each) for each in texts.to_pylist()], pa.binary())


def reader(kind: pa.DataType, forgive: Callable[[object], None] | None = None) -> Reader:
    """The reader of values of a raw type; as strict as Arrow. Null is read by the caller.

    With `forgive`, which is called with a value of another type, a field of a struct that holds one is null.
    """
    if pa.types.is_struct(kind):
        return _struct_reader(kind, forgive)
    if pa.types.is_map(kind):
        return _map_reader(kind, forgive)
    if pa.types.is_list(kind):
        inner = reader(kind.value_type, forgive)
        return lambda value: [None if each is None else inner(each) for each in _checked(value, list)]
    if pa.types.is_boolean(kind):
        return lambda value: _checked(value, bool)
    if pa.types.is_string(kind):
        return _text if forgive is None else lambda value: _text(spelled(value))
    if pa.types.is_floating(kind):
        return _fraction if forgive is None else lambda value: _fraction(_NO_NUMBERS.get(str(value), value))
    if pa.types.is_decimal(kind):
        return _decimal
    bounds = np.iinfo(kind.to_pandas_dtype())
    return lambda value: _whole(value, int(bounds.min), int(bounds.max))


def _struct_reader(kind: pa.DataType, forgive: Callable[[object], None] | None) -> Reader:
    fields = [(field.name, reader(field.type, forgive)) for field in kind]

    def of_field(value: Any, inner: Reader) -> Any:
        try:
            return None if value is None else inner(value)
        except ValueError:
            if forgive is None:
                raise
            forgive(value)
            return None

    def read(value: Any) -> Any:
        given = _checked(value, dict)
        return {name: of_field(given.get(name), inner) for name, inner in fields}

    return read


def _map_reader(kind: pa.DataType, forgive: Callable[[object], None] | None) -> Reader:
    of_key: Reader = _text if pa.types.is_string(kind.key_type) else int
    of_value = reader(kind.item_type, forgive)

    def read(value: Any) -> Any:
        entries = _checked(value, dict).items()
        return [(of_key(key), None if each is None else of_value(each)) for key, each in entries]

    return read


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    """Text without half of a surrogate pair; an object or array is its text."""
    text = spelled(value) if isinstance(value, dict | list) else _checked(value, str)
    if not text.isascii():
        text.encode()
    return str(text)


def _fraction(value: Any) -> float:
    is_number = isinstance(value, float | Decimal) or (type(value) is int and abs(value) < _GREATEST_DOUBLE)
    if not is_number:
        raise ValueError(value)
    return float(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool | float) or not isinstance(value, int | Decimal | str):
        raise ValueError(value)
    try:
        number = Decimal(value)
        exponent = number.as_tuple().exponent
        short = round(number, 38) if isinstance(exponent, int) and exponent < -38 else number
    except ArithmeticError as error:
        raise ValueError(value) from error
    if not short.is_finite() or abs(short) >= Decimal(10) ** 38:
        raise ValueError(value)
    return short


def _whole(value: Any, least: int, greatest: int) -> int:
    if type(value) is not int or not least <= value <= greatest:
        raise ValueError(value)
    return value
