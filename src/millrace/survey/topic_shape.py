"""How the messages of a topic are read: the format of their values, and for csv the delimiter, from some of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millrace.plan.nodes.endpoints import Connector
from millrace.survey.file_shape import csv_rows, delimiter_of, width_of
from millrace.survey.topic_messages import VALUE, TopicMessages

_PROBED = 1_000
_NEARLY_ALL = 0.95
_FRAME = 5
"""Bytes with which clients of a schema registry begin a message: a zero, and the number of its schema."""


@dataclass(frozen=True)
class TopicShape:
    """How a topic is read: the format of its messages, and the options of a stream of it.

    `sure` says of each finding how sure it is: sure, likely or a guess. `remark` is what else was seen of the values.
    """

    path: str
    format: str
    options: Mapping[str, str]
    sure: Mapping[str, str] = field(default_factory=dict)
    width: int = 1
    """The number of fields of csv."""
    remark: str = ""

    def connector(self) -> Connector:
        """The connector that reads it."""
        return Connector("kafka", self.options)


def topic_shape(messages: TopicMessages) -> TopicShape:
    """How the messages of a topic are read."""
    values = _some(messages)
    format, sure, found, width = _format(values)
    remark = _remark(values) if format == "raw" else ""
    options = {**messages.options, "format": format, **found}
    return TopicShape(messages.path, format, options, {"format": sure, "delimiter": sure}, width, remark)


def _some(messages: TopicMessages) -> list[bytes]:
    """Values of all partitions, from their beginning to their end."""
    values = [
        value
        for table in messages.partitions.values()
        for value in table.column(VALUE).to_pylist()
        if value is not None
    ]
    return values[:: max(1, len(values) // _PROBED)]


def _format(values: Sequence[bytes]) -> tuple[str, str, dict[str, str], int]:
    """The format, how sure it is, its options, and its number of fields."""
    objects = sum(map(_is_object, values))
    if values and objects >= _NEARLY_ALL * len(values):
        return "json", "sure" if objects == len(values) else "likely", {}, 1
    if not values or not all(map(is_text, values)):
        return "raw", "sure", {}, 1
    lines = "\n".join(value.decode().rstrip("\r\n") for value in values)
    delimiter, sure = delimiter_of(lines)
    width = width_of(csv_rows(lines, delimiter))
    if width == 1 or sure == "a guess":
        return "raw", "likely", {}, 1
    return "csv", "likely", {} if delimiter == "," else {"delimiter": "\\t" if delimiter == "\t" else delimiter}, width


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def is_text(value: bytes) -> bool:
    """True if a value is UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _remark(values: Sequence[bytes]) -> str:
    """What values that are neither json nor csv look like."""
    if values and all(len(value) > _FRAME and value[0] == 0 for value in values):
        number = int.from_bytes(values[0][1:_FRAME], "big")
        return f"they begin with the number of a schema, {number}: see avro and protobuf in docs/kafka.md"
    return "" if values else "no message has a value"
