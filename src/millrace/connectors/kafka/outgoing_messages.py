"""Rows as messages of Kafka.

Rules:
- A key of one column is its value: text and bytes as they are, all else as text; null is no key. A key of several
  columns is an object of JSON. Headers are written like keys of one column; one that is null is left out.
- A value is an object of JSON with all columns but the one that says that a row is deleted, written as in files, or one
  column as it is. A row that is deleted has no value: a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.times.timestamps import text_of
from millrace.connectors.kafka.message_options import MessageOptions
from millrace.kernel.columns.nested.json_text import JsonText

MOST = 50_000
"""Messages that are made at a time."""
_JSON = JsonText(null_fields=True, time=text_of)
_NOTHING = pa.scalar(None, pa.binary())


def messages_of(batch: pa.RecordBatch, options: MessageOptions) -> Iterator[list[dict[str, Any]]]:
    """The rows of a batch as messages, in order, in lists of at most `MOST`.

    >>> rows = pa.record_batch({"k": ["a"], "n": [1]})
    >>> list(messages_of(rows, MessageOptions("t", key=("k",))))
    [[{'value': b'{"k":"a","n":1}', 'key': b'a'}]]
    """
    for start in range(0, batch.num_rows, MOST):
        rows = batch.slice(start, MOST)
        columns = {"value": _values(rows, options)}
        if options.key:
            columns["key"] = _keys(rows, options.key)
        if options.timestamp is not None:
            # Kafka's are milliseconds; 0 stands for now.
            millis = pc.cast(pc.floor_temporal(rows.column(options.timestamp), unit="millisecond"), pa.timestamp("ms"))
            columns["timestamp"] = pc.fill_null(pc.cast(millis, pa.int64()), 0)
        messages = pa.RecordBatch.from_pydict(columns).to_pylist()
        if options.headers:
            _add_headers(messages, rows, options.headers)
        yield messages


def _values(rows: pa.RecordBatch, options: MessageOptions) -> pa.Array:
    if options.value is not None:
        value = pc.cast(rows.column(options.value), pa.binary())
    else:
        names = [name for name in rows.schema.names if name != options.deleted]
        value = pc.cast(_JSON.object_of(names, [rows.column(name) for name in names]), pa.binary())
    if options.deleted is None:
        return value
    return pc.if_else(pc.fill_null(rows.column(options.deleted), False), _NOTHING, value)


def _keys(rows: pa.RecordBatch, names: Sequence[str]) -> pa.Array:
    if len(names) == 1:
        return _bytes(rows.column(names[0]))
    return pc.cast(_JSON.object_of(list(names), [rows.column(name) for name in names]), pa.binary())


def _bytes(column: Any) -> pa.Array:
    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        return pc.cast(column, pa.binary())
    if pa.types.is_timestamp(column.type):
        return pc.cast(text_of(column), pa.binary())
    plain = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) or pa.types.is_date(column.type)
    return pc.cast(pc.cast(column, pa.string()) if plain else _JSON.of(column), pa.binary())


def _add_headers(messages: list[dict[str, Any]], rows: pa.RecordBatch, names: Sequence[str]) -> None:
    for name in names:
        for message, value in zip(messages, _bytes(rows.column(name)).to_pylist(), strict=True):
            if value is not None:
                message.setdefault("headers", []).append((name, value))
