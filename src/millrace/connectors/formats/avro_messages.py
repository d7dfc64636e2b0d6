"""avro values -> records, by a schema that is given, or by the one that each message names."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from millrace.connectors.formats.schema_registry import SchemaRegistry, named_schema
from millrace.errors import RequestError


class Schemas(Protocol):
    """Finds the schema of a message."""

    def of(self, value: bytes) -> tuple[Any, bytes]:
        """The schema of a value, and the record in it."""


class AvroRecords:
    """Reads one record, and nothing after it, by the schema of its message."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._read = _fastavro().schemaless_reader

    def __call__(self, value: bytes) -> Mapping[str, Any]:
        schema, data = self._schemas.of(value)
        stream = io.BytesIO(data)
        found: Mapping[str, Any] = self._read(stream, schema)
        if not isinstance(found, dict) or stream.tell() != len(data):
            raise ValueError("bytes are left")
        return found


class GivenSchema:
    """One schema for all messages."""

    def __init__(self, text: str) -> None:
        self._schema = parsed(text)

    def of(self, value: bytes) -> tuple[Any, bytes]:
        """The schema, and the whole value."""
        return self._schema, value


class RegisteredSchemas:
    """The schema that each message names, from a registry."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._known: dict[int, Any] = {}

    def of(self, value: bytes) -> tuple[Any, bytes]:
        """The schema of a value, and the record after its name."""
        number, data = named_schema(value)
        if number not in self._known:
            self._known[number] = parsed(self._registry.schema(number))
        return self._known[number], data


def schemas_of(options: Mapping[str, str], owner: str) -> Schemas:
    """The schemas that options name: one in them or in a file, or those of a registry."""
    given = [name for name in ("schema", "schema_file", "schema_registry") if options.get(name)]
    if len(given) != 1:
        raise RequestError(
            f"{owner} has the format avro, and {'several schemas' if given else 'no schema'}",
            hint="Give one of schema (its text), schema_file (a file) and schema_registry (an address).",
        )
    if given == ["schema_registry"]:
        return RegisteredSchemas(SchemaRegistry.of(options, owner))
    if given == ["schema"]:
        return GivenSchema(options["schema"])
    try:
        return GivenSchema(Path(options["schema_file"]).read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(
            f'the schema of {owner}, "{options["schema_file"]}", cannot be read: {error.strerror}',
            hint="Name a file that holds a schema in JSON.",
        ) from None


def parsed(text: str) -> Any:
    """A schema of Avro from its text."""
    try:
        return _fastavro().parse_schema(json.loads(text))
    except Exception as error:
        raise RequestError(f"a schema of Avro cannot be read: {error}", hint="Write it as JSON.") from None


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise RequestError(
            'the format "avro" needs the package fastavro, which is not installed',
            hint="Install it with pip install 'millrace[avro]'.",
        ) from None
    return fastavro
