"""Messages of Protobuf by the schema that each names, from a registry, which gives descriptors in base64.

After the number of its schema a message has its place in that schema: a count and so many indexes, from the messages of
the file inwards; one zero stands for the first message.
"""

from __future__ import annotations

import base64
from typing import Any

from millrace.connectors.formats.schema_registry import SchemaRegistry, UnknownSchema, named_schema

_OWN = "google/protobuf/"
"""Files that Protobuf brings itself."""


class RegisteredMessages:
    """The class of each message, and its bytes; each schema is asked for once."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._files: dict[int, Any] = {}
        self._classes: dict[tuple[int, tuple[int, ...]], Any] = {}

    def of(self, value: bytes) -> tuple[Any, bytes]:
        """The class of the message in a value, and its bytes."""
        number, rest = named_schema(value)
        indexes, data = place_in_schema(rest)
        if (number, indexes) not in self._classes:
            self._classes[number, indexes] = self._class(number, indexes)
        return self._classes[number, indexes], data

    def _class(self, number: int, indexes: tuple[int, ...]) -> Any:
        from google.protobuf import message_factory

        if number not in self._files:
            self._files[number] = self._file(number)
        pool, file = self._files[number]
        messages, name = file.message_type, file.package
        for index in indexes:
            if not 0 <= index < len(messages):
                raise UnknownSchema(f"names a message that schema {number} does not have")
            name = f"{name}.{messages[index].name}".lstrip(".")
            messages = messages[index].nested_type
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def _file(self, number: int) -> tuple[Any, Any]:
        """A pool with a schema and all that it imports, and the schema."""
        from google.protobuf.descriptor_pool import DescriptorPool

        pool = DescriptorPool()
        return pool, self._added(pool, f"schemas/ids/{number}", f"schema-{number}.proto", set())

    def _added(self, pool: Any, place: str, name: str, known: set[str]) -> Any:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.descriptor_pool import Default

        answer = self._registry.answer(f"{place}?format=serialized")
        file = FileDescriptorProto.FromString(base64.b64decode(answer["schema"]))
        file.name = name
        for reference in answer.get("references") or ():
            if reference["name"] not in known:
                known.add(reference["name"])
                below = f"subjects/{reference['subject']}/versions/{reference['version']}"
                self._added(pool, below, reference["name"], known)
        for imported in file.dependency:
            if imported.startswith(_OWN) and imported not in known:
                known.add(imported)
                pool.AddSerializedFile(Default().FindFileByName(imported).serialized_pb)
        pool.AddSerializedFile(file.SerializeToString())
        return file


def place_in_schema(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The indexes of a message in its schema, and what follows them.

    >>> place_in_schema(b"\\x00rest"), place_in_schema(b"\\x04\\x02\\x06rest")
    (((0,), b'rest'), ((1, 3), b'rest'))
    """
    count, at = _number(data, 0)
    indexes = []
    for _ in range(count):
        index, at = _number(data, at)
        indexes.append(index)
    return tuple(indexes) or (0,), data[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, in zigzag, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7
