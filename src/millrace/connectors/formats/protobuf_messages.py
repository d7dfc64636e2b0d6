"""protobuf values -> records, by the descriptors that protoc writes with `--descriptor_set_out --include_imports`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from millrace.connectors.formats.schema_registry import named_schema
from millrace.errors import RequestError

OPTIONS = ("descriptor_file", "message", "schema_prefix")
"""The options of the format."""
_TIMESTAMP = "google.protobuf.Timestamp"


class ProtobufRecords:
    """Reads one message of Protobuf; with `prefixed` after the name of its schema, as a registry's clients write it."""

    def __init__(self, message: Any, *, prefixed: bool) -> None:
        self._message, self._prefixed = message, prefixed

    def __call__(self, value: bytes) -> Mapping[str, Any]:
        data = _without_indexes(named_schema(value)[1]) if self._prefixed else value
        return _fields(self._message.FromString(data))


def protobuf_records(options: Mapping[str, str], owner: str) -> ProtobufRecords:
    """What reads the messages that options name."""
    from google.protobuf import message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    file, name = options.get("descriptor_file"), options.get("message")
    if not file or not name:
        raise RequestError(
            f"{owner} has the format protobuf, and does not name its message",
            hint="Add descriptor_file 'shop.desc', which protoc --descriptor_set_out writes, and message 'shop.Click'.",
        )
    prefixed = options.get("schema_prefix", "false").lower()
    if prefixed not in ("true", "false"):
        raise RequestError(f'option "schema_prefix" does not take "{prefixed}"', hint="It takes true and false.")
    try:
        pool = DescriptorPool()
        for each in FileDescriptorSet.FromString(Path(file).read_bytes()).file:
            pool.AddSerializedFile(each.SerializeToString())
        found = pool.FindMessageTypeByName(name)
    # Protobuf raises errors of several kinds for bytes that are no descriptors.
    except Exception as error:
        raise RequestError(
            f'the message "{name}" of {owner} is not found in "{file}": {error}',
            hint="Write it with protoc --descriptor_set_out --include_imports, and name a message with its package.",
        ) from None
    return ProtobufRecords(message_factory.GetMessageClass(found), prefixed=prefixed == "true")


def _without_indexes(data: bytes) -> bytes:
    """What follows the place of the message in its schema: a count and so many numbers, or one zero."""
    count, at = _number(data, 0)
    for _ in range(count):
        _, at = _number(data, at)
    return data[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, in zigzag, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7


def _fields(message: Any) -> dict[str, Any]:
    """The fields of a message; one that says whether it is there is null if it is not."""
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        kind = entry.fields_by_name["value"]
        return [(key, _single(kind, each)) for key, each in value.items()]
    if field.is_repeated:
        return [_single(field, each) for each in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    """One value: a time, a structure, the name of a choice, or what it is."""
    if field.message_type is not None:
        return value.ToDatetime(tzinfo=UTC) if field.message_type.full_name == _TIMESTAMP else _fields(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value
