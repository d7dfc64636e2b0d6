"""The columns of a message that are not in its value: they are declared under names that begin with `kafka_`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import TIMESTAMP

_TEXTS = (pa.string(), pa.binary())
_HEADERS = tuple(pa.map_(pa.string(), kind) for kind in _TEXTS)
TYPES: Mapping[str, tuple[pa.DataType, ...]] = {
    "kafka_key": _TEXTS,
    "kafka_topic": (pa.string(),),
    "kafka_partition": (pa.int32(), pa.int64()),
    "kafka_offset": (pa.int64(),),
    "kafka_timestamp": (TIMESTAMP,),
    "kafka_headers": _HEADERS,
}
"""The types that each column may have."""
_PREFIX = "kafka_"
Mask = npt.NDArray[np.bool_]


def is_of_message(column: str) -> bool:
    """True if a column is not in the value of a message."""
    return column.startswith(_PREFIX)


def check_columns(schema: pa.Schema, owner: str) -> None:
    """Refuse columns of messages that there are not, and those of another type."""
    for field in schema:
        if not is_of_message(field.name):
            continue
        if field.name not in TYPES:
            raise RequestError(
                f'{owner} has a column "{field.name}", which is no column of a message of Kafka',
                hint=f"{did_you_mean(field.name, TYPES)}They are {listed(TYPES)}.",
            )
        if not any(field.type.equals(kind) for kind in TYPES[field.name]):
            names = " or ".join(sql_name(kind) for kind in TYPES[field.name])
            raise RequestError(
                f'column "{field.name}" of {owner} is {sql_name(field.type)}', hint=f"Declare it as {names}."
            )


def column_of(field: pa.Field, messages: Sequence[Any]) -> pa.Array:
    """A column of some messages."""
    return _COLUMNS[field.name](messages, field.type)


def readable(schema: pa.Schema, messages: Sequence[Any]) -> Mask:
    """True for each message whose key and headers are text where they are declared as such."""
    fits = np.ones(len(messages), np.bool_)
    if "kafka_key" in schema.names and pa.types.is_string(schema.field("kafka_key").type):
        fits &= [_is_text(message.key()) for message in messages]
    if "kafka_headers" in schema.names and pa.types.is_string(schema.field("kafka_headers").type.item_type):
        fits &= [all(_is_text(value) for _, value in message.headers() or ()) for message in messages]
    return fits


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _key(messages: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([message.key() for message in messages], pa.binary()).cast(kind)


def _timestamp(messages: Sequence[Any], kind: pa.DataType) -> pa.Array:
    stamps = (message.timestamp() for message in messages)
    # The first says what the time is: 0 that there is none.
    return pa.array([each * 1000 if which else None for which, each in stamps], pa.int64()).cast(kind)


def _headers(messages: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The headers of each message by name; of several with one name the last."""
    return pa.array([list(dict(message.headers() or ()).items()) for message in messages], _HEADERS[1]).cast(kind)


_COLUMNS: Mapping[str, Callable[[Sequence[Any], pa.DataType], pa.Array]] = {
    "kafka_key": _key,
    "kafka_topic": lambda messages, kind: pa.array([message.topic() for message in messages], kind),
    "kafka_partition": lambda messages, kind: pa.array([message.partition() for message in messages], kind),
    "kafka_offset": lambda messages, kind: pa.array([message.offset() for message in messages], kind),
    "kafka_timestamp": _timestamp,
    "kafka_headers": _headers,
}
