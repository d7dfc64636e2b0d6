"""Declared tables: every clause checked."""

from __future__ import annotations

import pyarrow as pa

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.declarations.streams import check_format, connector_of, in_zone, schema_of
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import ColumnsClause, TableStatement
from millrace.plan.nodes.endpoints import Table

FORMATS = ("csv", "json", "parquet", "postgres", "python", "iterable")
"""What a table is read from; rows of an iterable are given beside the network."""


def bind_table(statement: TableStatement) -> Table:
    """The table of a CREATE TABLE."""
    name, schema = statement.name, schema_of(statement.columns)
    if statement.connector is None:
        raise QueryError(
            f'table "{name.text}" has no source',
            hint="Add FROM csv OPTIONS (path 'file.csv'), or another format.",
            place=name.place,
        )
    connector = in_zone(connector_of(statement.connector), statement.zone)
    if connector.format not in FORMATS:
        raise QueryError(
            f'a table cannot be read from "{connector.format}"',
            hint=f"{did_you_mean(connector.format, FORMATS[:-1])}The formats of a table are {listed(FORMATS[:-1])}.",
            place=statement.connector.format.place,
        )
    if statement.refresh is not None and statement.refresh.micros <= 0:
        raise QueryError(
            "REFRESH EVERY takes a positive interval",
            hint="Write REFRESH EVERY INTERVAL 1 HOUR.",
            place=statement.refresh.place,
        )
    refresh = None if statement.refresh is None else statement.refresh.micros
    found = Table(name.text, schema, _key(statement.key, Scope(schema)), connector, refresh)
    check_format(found, schema, name)
    return found


def _key(clause: ColumnsClause | None, scope: Scope) -> tuple[str, ...]:
    found: list[str] = []
    for name in () if clause is None else clause.columns:
        column = scope.find(name.text)
        if column is None:
            raise scope.unknown(name.text, name.place)
        kind = scope.schema.field(column).type
        if pa.types.is_nested(kind) or column in found:
            fact = f'"{column}" is listed twice' if column in found else f'"{column}" is {sql_name(kind)}'
            raise QueryError(
                f"{fact}, and cannot be part of the primary key", hint="Name other columns.", place=name.place
            )
        found.append(column)
    return tuple(found)
