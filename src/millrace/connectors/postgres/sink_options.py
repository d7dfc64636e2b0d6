"""The options of a sink in PostgreSQL, checked against the columns of its query.

Rules:
- Results are appended, or upserted by a key: the one that the query's results have, or one that `key` names.
- Where several results can have one value of a named key, `version` says which of them is newer. Results of the
  query's own key come in order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.connectors.postgres.connection import CONNECTION_OPTIONS
from millrace.connectors.retries import retry_seconds
from millrace.errors import RequestError, did_you_mean, listed

_OF_UPSERTS = ("key", "version", "deleted")
_OWN = ("table", "mode", *_OF_UPSERTS, "retry_seconds")
_GIVEN = ("run", "results_key")


@dataclass(frozen=True)
class SinkOptions:
    """Which table results go to, and how."""

    table: str
    key: tuple[str, ...] = ()
    """The columns by which rows are replaced; none if results are appended."""
    version: str | None = None
    deleted: str | None = None
    retry_seconds: float = 30.0

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """The columns that the table has of those of the results."""
        return pa.schema([each for each in schema if each.name != self.deleted])


def sink_options(options: Mapping[str, str], schema: pa.Schema, query: str) -> SinkOptions:
    """The options of a sink; refuses those that it does not have, and columns that are not there.

    >>> sink_options({"mode": "upsert", "results_key": '["k"]'}, pa.schema({"k": pa.string()}), "q").key
    ('k',)
    """
    known = (*CONNECTION_OPTIONS, *_OWN)
    for name in options:
        if name not in (*known, *_GIVEN):
            raise RequestError(
                f'a sink in PostgreSQL has no option "{name}"',
                hint=f"{did_you_mean(name, known)}The options are {listed(known)}.",
            )
    mode = options.get("mode", "append").lower()
    if mode not in ("append", "upsert"):
        raise RequestError(f'option "mode" does not take "{options["mode"]}"', hint="It takes append or upsert.")
    if mode == "append":
        for name in _OF_UPSERTS:
            if name in options:
                raise RequestError(f'option "{name}" is for upserts', hint="Write mode 'upsert' beside it.")
    found = SinkOptions(
        options.get("table", query),
        _key(options, schema) if mode == "upsert" else (),
        _column(options, "version", schema),
        _column(options, "deleted", schema),
        retry_seconds(options),
    )
    _check_columns(found, schema)
    return found


def _key(options: Mapping[str, str], schema: pa.Schema) -> tuple[str, ...]:
    own = json.loads(options.get("results_key", "[]"))
    named = [name.strip() for name in options["key"].split(",")] if "key" in options else own
    if not named:
        raise RequestError(
            "nothing tells the results of the query apart, so they cannot be upserted",
            hint="Name the columns: key 'a, b', and version 'ts', the column that says which row is newer; or select "
            "the columns of GROUP BY and window_start.",
        )
    for name in named:
        _existing(name, "key", schema)
    if not (own and set(own) <= set(named)) and "version" not in options:
        raise RequestError(
            f"the query can give several results of one key ({', '.join(named)}), in any order",
            hint="Name the column that says which of them is newer: version 'ts'.",
        )
    return tuple(named)


def _column(options: Mapping[str, str], option: str, schema: pa.Schema) -> str | None:
    return _existing(options[option], option, schema) if option in options else None


def _existing(name: str, option: str, schema: pa.Schema) -> str:
    if name not in schema.names:
        raise RequestError(
            f'the option "{option}" names "{name}", which the results do not have',
            hint=f"{did_you_mean(name, schema.names)}The columns are {listed(schema.names)}.",
        )
    return name


def _check_columns(options: SinkOptions, schema: pa.Schema) -> None:
    if options.deleted is not None and not pa.types.is_boolean(schema.field(options.deleted).type):
        raise RequestError(
            f'the option "deleted" names "{options.deleted}", which is no BOOLEAN',
            hint="Name a column that is true in rows that delete their key.",
        )
    for name in (options.version, options.deleted):
        if name is not None and name in options.key:
            raise RequestError(f'"{name}" is a part of the key', hint="Name another column.")
