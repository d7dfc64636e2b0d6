"""A script into a network: streams and sinks wherever they stand, queries in order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from millrace.errors import QueryError
from millrace.kernel.expressions import Column, Expression
from millrace.language.binder import Binder, is_star
from millrace.language.ddl import bind_sink, bind_stream
from millrace.language.expressions import ExpressionBinder
from millrace.language.options import bind_options
from millrace.language.places import Source, listed, near
from millrace.language.scopes import Scope
from millrace.language.script_parser import parse_expression_text, parse_item_text, parse_script
from millrace.language.statements import (
    DropStatement,
    Name,
    QueryStatement,
    Script,
    SelectItem,
    SinkStatement,
    StreamStatement,
)
from millrace.plan.nodes import Connector, Network, Query, Sink, Stream

Declaration = TypeVar("Declaration", StreamStatement, SinkStatement)


def parse_network(text: str, *, base: Path | None = None) -> Network:
    """The network that a script describes. Paths in options stay as they are written, also with a `base`.

    >>> network = parse_network('''
    ...     CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
    ...     SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;
    ... ''')
    >>> network.queries[0].root.schema.names
    ['window_start', 'window_end', 'k', 'n']
    """
    source = Source(text)
    try:
        return _bind(parse_script(text), source)
    except RecursionError:
        raise QueryError("a query is nested too deeply", hint="Split it.", place=source.place(0, 0)) from None


def _bind(script: Script, source: Source) -> Network:
    streams = {
        name: bind_stream(statement, source)
        for name, statement in _declared(each for each in script.statements if isinstance(each, StreamStatement))
    }
    sinks = {
        name: bind_sink(statement)
        for name, statement in _declared(each for each in script.statements if isinstance(each, SinkStatement))
    }
    return Network(tuple(_queries(script, source, streams, sinks).values()))


def _declared(statements: Iterable[Declaration]) -> list[tuple[str, Declaration]]:
    """Each statement under its name in lower case; refuses a second one of a name."""
    found: dict[str, Declaration] = {}
    for statement in statements:
        if statement.name.text.lower() in found:
            raise _declared_twice(statement.name)
        found[statement.name.text.lower()] = statement
    return list(found.items())


def _declared_twice(name: Name) -> QueryError:
    return QueryError(
        f'"{name.text}" is declared twice', hint="Choose another name; case makes no difference.", place=name.place
    )


def _queries(script: Script, source: Source, streams: dict[str, Stream], sinks: dict[str, Sink]) -> dict[str, Query]:
    statements = [each for each in script.statements if isinstance(each, (QueryStatement, DropStatement))]
    names = {each.name.text.lower() for each in statements if each.name is not None}
    binder = Binder(source, streams, frozenset(names))
    found: dict[str, Query] = {}
    number = 0
    for statement in statements:
        if isinstance(statement, DropStatement):
            _drop(statement.name, found)
            continue
        name = statement.name.text if statement.name else ""
        while not name:
            number += 1
            name = f"query_{number}" if f"query_{number}" not in names else ""
        if statement.name is not None and name.lower() in found:
            raise _declared_twice(statement.name)
        found[name.lower()] = _query(name, statement, binder, sinks)
    return found


def _query(name: str, statement: QueryStatement, binder: Binder, sinks: dict[str, Sink]) -> Query:
    options = bind_options(statement.options)
    relation = binder.body(statement.body)
    if statement.name is None:
        sink = Sink(name, Connector("console"))
    elif statement.into is None:
        sink = Sink(name, Connector("memory"))
    else:
        sink = _sink(statement.into, sinks)
    return Query(name, relation.node, sink, options)


def _sink(name: Name, sinks: dict[str, Sink]) -> Sink:
    if name.text.lower() in sinks:
        return sinks[name.text.lower()]
    names = [sink.name for sink in sinks.values()]
    known = f"The sinks are {listed(names)}." if names else "Declare it with CREATE SINK."
    raise QueryError(f'sink "{name.text}" does not exist', hint=f"{near(name.text, names)}{known}", place=name.place)


def _drop(name: Name, found: dict[str, Query]) -> None:
    if name.text.lower() not in found:
        names = [query.name for query in found.values()]
        known = f"The queries before it are {listed(names)}." if names else "No query stands before it."
        raise QueryError(
            f'query "{name.text}" does not exist', hint=f"{near(name.text, names)}{known}", place=name.place
        )
    del found[name.text.lower()]


def bind_expression(text: str, schema: pa.Schema) -> Expression:
    """An expression over rows of a schema.

    >>> str(bind_expression("len > 10", pa.schema([("len", pa.int32())])))
    '(len > 10)'
    """
    return ExpressionBinder(Source(text), Scope(schema)).bind(parse_expression_text(text)).expression


def bind_select_item(text: str, schema: pa.Schema) -> tuple[str, Expression]:
    """The name and the expression of a select item; the name is its alias, its column, or the text itself.

    >>> bind_select_item("len * 2 AS twice", pa.schema([("len", pa.int32())]))[0]
    'twice'
    """
    item: SelectItem = parse_item_text(text)
    if is_star(item.expression):
        raise QueryError("* is no single column", hint="Name the columns.", place=item.place)
    expression = ExpressionBinder(Source(text), Scope(schema)).bind(item.expression).expression
    if item.alias is not None:
        return item.alias.text, expression
    return expression.name if isinstance(expression, Column) else text.strip(), expression
