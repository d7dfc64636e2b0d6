"""CREATE TABLE and REFRESH TABLE."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.statements import (
    ColumnDefinition,
    ColumnsClause,
    ConnectorClause,
    Length,
    Name,
    RefreshStatement,
    TableStatement,
)
from millrace.language.grammar.stream_parser import connector_clause, refuse_constraint
from millrace.language.grammar.text.cursor import Cursor

_HINT = (
    "Write CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING) FROM csv OPTIONS (path 'users.csv') "
    "REFRESH EVERY INTERVAL 1 HOUR; without REFRESH it is read once."
)


def table_statement(cursor: Cursor) -> TableStatement:
    """`name (columns) FROM format OPTIONS (...) [REFRESH EVERY interval]`, after CREATE TABLE."""
    name = cursor.name("the name of the table", _HINT)
    if cursor.at("AS"):
        raise QueryError(
            "CREATE TABLE declares reference data, and no results",
            hint=f"Write CREATE QUERY {name.text} AS SELECT ..., or CREATE VIEW.",
            place=cursor.place(),
        )
    keys: list[ColumnsClause] = []
    definitions = cursor.parenthesised(lambda: _definition(cursor, keys), _HINT)
    connector: ConnectorClause | None = None
    refresh: Length | None = None
    zone: Name | None = None
    while cursor.token:
        place = cursor.place()
        if cursor.at_type(TokenType.WITH):
            hint = "Write FROM csv OPTIONS (path '...'); rows that keep coming are a stream, CREATE STREAM."
            raise QueryError("the options of a table stand after FROM", hint=hint, place=place)
        if connector is None and cursor.take("FROM"):
            connector = connector_clause(cursor, _HINT)
        elif zone is None and cursor.take("TIME", "ZONE"):
            zone = cursor.text("the name of a time zone", "Write TIME ZONE 'Europe/Berlin'.")
        elif refresh is None and cursor.take("REFRESH", "EVERY"):
            refresh = cursor.length(_HINT)
        elif cursor.at("TIMESTAMP"):
            raise _timed(place)
        else:
            raise cursor.wrong("a clause of CREATE TABLE", cursor.ended(_HINT))
    if len(keys) > 1:
        raise QueryError(
            f'table "{name.text}" has two primary keys',
            hint="Write one for several columns: PRIMARY KEY (a, b).",
            place=keys[1].place,
        )
    columns = tuple(each for each in definitions if each is not None)
    return TableStatement(name, columns, keys[0] if keys else None, zone, connector, refresh)


def _timed(place: Place) -> QueryError:
    return QueryError(
        "a table has no time of its own",
        hint="A row meets the table as it is at the time of the row. Rows that have a time are a stream: "
        "CREATE STREAM, and ASOF JOIN for changes.",
        place=place,
    )


def _definition(cursor: Cursor, keys: list[ColumnsClause]) -> ColumnDefinition | None:
    """`name TYPE [PRIMARY KEY]`, or `PRIMARY KEY (columns)`, which is added to the keys."""
    first = cursor.token
    if cursor.at("WATERMARK", "FOR"):
        raise _timed(cursor.place())
    if cursor.take("PRIMARY", "KEY") or cursor.take("PRIMARY KEY"):
        columns = cursor.names("a column", "Write the columns in parentheses: PRIMARY KEY (id).")
        keys.append(ColumnsClause(columns, place=cursor.place_since(first)))
        return None
    name = cursor.name("a column", _HINT)
    kind = cursor.type_name()
    if cursor.take("PRIMARY", "KEY") or cursor.take("PRIMARY KEY"):
        keys.append(ColumnsClause((name,), place=name.place))
    refuse_constraint(cursor, "table")
    return ColumnDefinition(name, kind)


def refresh_statement(cursor: Cursor) -> RefreshStatement:
    """`TABLE name`, after REFRESH."""
    hint = "Write REFRESH TABLE name. Anything else is always up to date."
    cursor.expect("TABLE", hint=hint)
    return RefreshStatement(cursor.name("the name of a table", hint))
