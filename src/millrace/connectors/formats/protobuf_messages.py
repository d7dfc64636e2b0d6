"""protobuf values -> records, by the descriptors that protoc writes, or by the schema that each message names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from millrace.connectors.formats.protobuf_schemas import RegisteredMessages, place_in_schema
from millrace.connectors.formats.schema_registry import SchemaRegistry, named_schema
from millrace.errors import RequestError

OPTIONS = ("descriptor_file", "message", "schema_prefix")
"""The options of the format."""
_TIMESTAMP = "google.protobuf.Timestamp"


class ProtobufRecords:
    """Reads one message of Protobuf, whose class and bytes `of` finds in a value."""

    def __init__(self, of: Callable[[bytes], tuple[Any, bytes]]) -> None:
        self._of = of

    def __call__(self, value: bytes) -> Mapping[str, Any]:
        message, data = self._of(value)
        return _fields(message.FromString(data))


def protobuf_records(options: Mapping[str, str], owner: str) -> ProtobufRecords:
    """What reads the messages that options name."""
    if options.get("schema_registry"):
        given = [name for name in OPTIONS if options.get(name)]
        if given:
            raise RequestError(
                f'{owner} has a schema registry and the option "{given[0]}"',
                hint="The registry says what messages are: leave the option out.",
            )
        return ProtobufRecords(RegisteredMessages(SchemaRegistry.of(options, owner)).of)
    from google.protobuf import message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    file, name = options.get("descriptor_file"), options.get("message")
    if not file or not name:
        raise RequestError(
            f"{owner} has the format protobuf, and does not name its message",
            hint="Add descriptor_file 'shop.desc', which protoc --descriptor_set_out writes, and message 'shop.Click'; "
            "or schema_registry 'http://host:8081'.",
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
    message = message_factory.GetMessageClass(found)
    if prefixed == "true":
        return ProtobufRecords(lambda value: (message, place_in_schema(named_schema(value)[1])[1]))
    return ProtobufRecords(lambda value: (message, value))


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
