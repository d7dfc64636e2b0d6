"""The options of a sink in Kafka, checked against the columns of its query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.connectors.kafka.kafka_client import is_passed_on
from millrace.connectors.retries import retry_seconds
from millrace.errors import RequestError, did_you_mean, listed

_OWN = (
    "bootstrap_servers", "topic", "format", "value", "key", "headers", "timestamp", "deleted", "delivery",
    "retry_seconds",
)  # fmt: skip
_GIVEN = ("run", "results_key")
_CHOICES = {"format": ("json", "raw"), "delivery": ("exactly_once", "at_least_once")}


@dataclass(frozen=True)
class MessageOptions:
    """Which topic results go to, and what messages are made of."""

    topic: str
    key: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    value: str | None = None
    """The one column that is the value as it is; None: an object of JSON with all columns."""
    timestamp: str | None = None
    deleted: str | None = None
    exactly_once: bool = True
    retry_seconds: float = 30.0


def message_options(options: Mapping[str, str], schema: pa.Schema, query: str) -> MessageOptions:
    """The options of a sink; refuses those that it does not have, and columns that are not there or do not fit.

    >>> message_options({"bootstrap_servers": "b:9092", "key": "k"}, pa.schema({"k": pa.string()}), "q").topic
    'q'
    """
    for name in options:
        if name not in (*_OWN, *_GIVEN) and not is_passed_on(name):
            raise RequestError(
                f'a sink in Kafka has no option "{name}"',
                hint=f"{did_you_mean(name, _OWN)}The options are {listed(_OWN)}, and those of the client.",
            )
    if not options.get("bootstrap_servers"):
        raise RequestError("no broker is named", hint="Add bootstrap_servers 'host:9092' to the options.")
    chosen = {name: options.get(name, known[0]).lower() for name, known in _CHOICES.items()}
    for name, known in _CHOICES.items():
        if chosen[name] not in known:
            raise RequestError(f'option "{name}" does not take "{chosen[name]}"', hint=f"It takes {listed(known)}.")
    found = MessageOptions(
        options.get("topic", query),
        _key(options, schema),
        _columns(options, "headers", schema),
        _value(options, chosen["format"], schema),
        _one(options, "timestamp", schema, "TIMESTAMP", pa.types.is_timestamp),
        _one(options, "deleted", schema, "BOOLEAN", pa.types.is_boolean),
        chosen["delivery"] == "exactly_once",
        retry_seconds(options),
    )
    if found.deleted is not None and not found.key:
        raise RequestError("a message that deletes needs a key", hint="Name its columns: key 'a, b'.")
    return found


def _key(options: Mapping[str, str], schema: pa.Schema) -> tuple[str, ...]:
    """The columns of the key: those that are named, or that tell the results of the query apart."""
    if "key" in options:
        return _columns(options, "key", schema)
    return tuple(json.loads(options.get("results_key", "[]")))


def _columns(options: Mapping[str, str], option: str, schema: pa.Schema) -> tuple[str, ...]:
    names = tuple(each.strip() for each in options.get(option, "").split(",") if each.strip())
    for name in names:
        if name not in schema.names:
            raise RequestError(
                f'the option "{option}" names "{name}", which the results do not have',
                hint=f"{did_you_mean(name, schema.names)}The columns are {listed(schema.names)}.",
            )
    return names


def _one(options: Mapping[str, str], option: str, schema: pa.Schema, kind: str, fits: object) -> str | None:
    names = _columns(options, option, schema)
    if not names:
        return None
    if len(names) > 1 or not (callable(fits) and fits(schema.field(names[0]).type)):
        raise RequestError(
            f'option "{option}" does not take "{options[option]}"', hint=f"It takes one column, of type {kind}."
        )
    return names[0]


def _value(options: Mapping[str, str], format: str, schema: pa.Schema) -> str | None:
    if format == "json":
        if "value" in options:
            raise RequestError('option "value" is for raw messages', hint="Write format 'raw' beside it.")
        return None
    if "value" not in options:
        raise RequestError("raw messages need a value", hint="Name its column: value 'payload'.")
    return _one(options, "value", schema, "STRING or BINARY", _is_bytes)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
