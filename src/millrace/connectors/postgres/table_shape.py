"""The table of a sink: made from the columns of its query, or compared with them.

Rules:
- A table that is there has all columns of the results, of types that hold their values. What it has beside them takes
  null or has a default.
- For upserts a unique index is on exactly the columns of the key, and takes two nulls for equal ones. A table that is
  made here has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millrace.connectors.postgres.column_types import takes, type_of
from millrace.connectors.postgres.connection import faults, table_name
from millrace.connectors.postgres.sink_options import SinkOptions
from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.columns.sql_types import sql_name

if TYPE_CHECKING:
    from psycopg import Connection, sql

_COLUMNS = """SELECT attname, format_type(atttypid, atttypmod), attnotnull,
    atthasdef OR attidentity <> '' FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_KEYS = """SELECT array(SELECT attname::text FROM pg_attribute
        WHERE attrelid = indrelid AND attnum = ANY((indkey::int2[])[0:indnkeyatts - 1])),
    indnullsnotdistinct OR NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = indrelid AND attnum = ANY((indkey::int2[])[0:indnkeyatts - 1]) AND NOT attnotnull)
    FROM pg_index
    WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL"""
_OLDEST = 15
"""The first version of PostgreSQL whose unique indexes can take two nulls for equal ones."""
_LOCK = 7_171_929_011
"""Held while tables are made: two processes that make one at a time would fail."""


@dataclass(frozen=True)
class _Column:
    """A column of a table that is there."""

    name: str
    type: str
    not_null: bool
    has_default: bool


def make_table(connection: Connection[Any], options: SinkOptions, schema: pa.Schema, ledger: str) -> None:
    """Make the table of a sink, and the ledger of epochs, where they are not there; refuse a table of another shape."""
    with faults(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(ledger)
        if not _columns(connection, options):
            _check_version(connection, options)
            connection.execute(_creation(options, schema))
    check_table(connection, options, schema)


def check_table(connection: Connection[Any], options: SinkOptions, schema: pa.Schema) -> None:
    """Refuse a table that does not take the results; one that is not there will be made."""
    with faults():
        found = {each.name: each for each in _columns(connection, options)}
        _check_version(connection, options)
        if not found:
            for field in options.stored(schema):
                type_of(field)
            return
        for field in options.stored(schema):
            _check_column(options, found, field)
        for each in found.values():
            if each.name not in schema.names and each.not_null and not each.has_default:
                raise _other_shape(
                    options, f'its column "{each.name}" takes no null, and the results do not have it', "select it"
                )
        if options.key:
            _check_key(connection, options)


def _columns(connection: Connection[Any], options: SinkOptions) -> list[_Column]:
    name = table_name(options.table).as_string(connection)
    return [_Column(*row) for row in connection.execute(_COLUMNS, (name,)).fetchall()]


def _creation(options: SinkOptions, schema: pa.Schema) -> sql.Composed:
    from psycopg import sql

    parts: list[sql.Composable] = [
        sql.SQL("{} {}").format(sql.Identifier(each.name), sql.SQL(type_of(each))) for each in options.stored(schema)
    ]
    if options.key:
        names = sql.SQL(", ").join(map(sql.Identifier, options.key))
        parts.append(sql.SQL("UNIQUE NULLS NOT DISTINCT ({})").format(names))
    return sql.SQL("CREATE TABLE {} ({})").format(table_name(options.table), sql.SQL(", ").join(parts))


def _check_version(connection: Connection[Any], options: SinkOptions) -> None:
    version = connection.info.server_version
    if options.key and version < _OLDEST * 10_000:
        raise RequestError(
            f"upserts need PostgreSQL {_OLDEST} or newer, and the server is {version // 10_000}",
            hint="Use a newer server, or mode 'append'.",
        )


def _check_column(options: SinkOptions, found: dict[str, _Column], field: pa.Field) -> None:
    each = found.get(field.name)
    if each is None:
        raise _other_shape(
            options,
            f'it has no column "{field.name}"',
            f"{did_you_mean(field.name, found)}Its columns are {listed(found)}. Add the column",
        )
    if not takes(each.type, field):
        raise _other_shape(
            options,
            f'its column "{field.name}" is {each.type}, which does not hold every {sql_name(field.type)}',
            f"Let it be {type_of(field)}, cast the column in the query",
        )


def _check_key(connection: Connection[Any], options: SinkOptions) -> None:
    name, names = table_name(options.table).as_string(connection), ", ".join(options.key)
    indexes = connection.execute(_KEYS, (name,)).fetchall()
    fitting = [takes_nulls for columns, takes_nulls in indexes if set(columns) == set(options.key)]
    if not any(fitting):
        fact = f"takes rows with nulls in ({names}) twice" if fitting else f"has no unique index on ({names})"
        quoted = ", ".join(f'"{each}"' for each in options.key)
        raise _other_shape(
            options, f"it {fact}", f"CREATE UNIQUE INDEX ON {name} ({quoted}) NULLS NOT DISTINCT; mend it so"
        )


def _other_shape(options: SinkOptions, fact: str, mend: str) -> RequestError:
    hint = f"{mend[0].upper()}{mend[1:]}, or name another table, which is made if it is not there."
    return RequestError(f'the table "{options.table}" does not take the results: {fact}', hint=hint)
