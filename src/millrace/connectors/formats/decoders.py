"""The decoder that the options of a stream name."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millrace.connectors.files.file_options import read_options
from millrace.connectors.formats.avro_messages import AvroRecords, schemas_of
from millrace.connectors.formats.csv_messages import CsvMessages
from millrace.connectors.formats.debezium_messages import DebeziumMessages
from millrace.connectors.formats.decoded import Decoder
from millrace.connectors.formats.json_messages import JsonMessages
from millrace.connectors.formats.protobuf_messages import OPTIONS as PROTOBUF_OPTIONS
from millrace.connectors.formats.protobuf_messages import protobuf_records
from millrace.connectors.formats.raw_messages import RawMessages
from millrace.connectors.formats.record_messages import RecordMessages
from millrace.connectors.formats.schema_registry import OPTIONS as REGISTRY_OPTIONS
from millrace.errors import RequestError, did_you_mean, listed

FORMATS = ("json", "csv", "raw", "avro", "protobuf", "debezium")
"""The formats of messages, as the option `format` names them."""
_TEXT = ("timestamp_format", "on_malformed")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "json": _TEXT,
    "csv": (*_TEXT, "delimiter", "quote", "null_value", "null_values"),
    "debezium": _TEXT,
    "raw": ("on_malformed",),
    "avro": ("on_malformed", "schema", "schema_file", *REGISTRY_OPTIONS),
    "protobuf": ("on_malformed", *PROTOBUF_OPTIONS, *REGISTRY_OPTIONS),
}
"""The options of each format."""


def message_format(options: Mapping[str, str]) -> str:
    """The format that options name, json without one."""
    format = options.get("format", "json").lower()
    if format not in FORMATS:
        raise RequestError(
            f'there is no format of messages "{format}"',
            hint=f"{did_you_mean(format, FORMATS)}The formats are {listed(FORMATS)}.",
        )
    return format


def open_decoder(schema: pa.Schema, declared: pa.Schema, options: Mapping[str, str], owner: str) -> Decoder:
    """The decoder of some of the declared columns; `options` are those of the format."""
    format = message_format(options)
    given = {name: value for name, value in options.items() if name in OPTIONS[format]}
    if format == "raw":
        return RawMessages(_one_column(schema, declared, owner))
    if format == "avro":
        return RecordMessages(schema, AvroRecords(schemas_of(options, owner)))
    if format == "protobuf":
        return RecordMessages(schema, protobuf_records(options, owner))
    checked = read_options("csv" if format == "csv" else "json", given)
    if format == "debezium":
        return DebeziumMessages(schema, checked, owner)
    if format == "csv":
        return CsvMessages(schema, declared.names, checked)
    return JsonMessages(schema, checked)


def skips_malformed(options: Mapping[str, str]) -> bool:
    """True if messages that cannot be decoded are counted, and not an error."""
    given = {name: value for name, value in options.items() if name == "on_malformed"}
    return read_options("json", given).skip_malformed


def _one_column(schema: pa.Schema, declared: pa.Schema, owner: str) -> pa.Schema:
    kinds = (pa.string(), pa.binary())
    if len(declared) != 1 or declared.field(0).type not in kinds:
        raise RequestError(
            f"{owner} has the format raw, and not one column for the value",
            hint="Declare one column besides those of Kafka: value STRING, or value BINARY.",
        )
    return schema
