"""What statements declare: streams, tables, sinks, views, functions and aggregates, and which queries can be read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from millrace.errors import QueryError
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.columns.user_functions import UserFunction
from millrace.language.declarations.declared_tables import bind_table
from millrace.language.declarations.streams import bind_sink, bind_stream, check_aside_names
from millrace.language.declarations.user_code import bind_aggregate, bind_function
from millrace.language.grammar.statements import (
    AggregateStatement,
    Body,
    Declared,
    FunctionStatement,
    Name,
    QueryStatement,
    SinkStatement,
    Statement,
    StreamStatement,
    TableStatement,
    ViewStatement,
)
from millrace.plan.nodes.endpoints import Sink, Stream, Table

Declaration = TypeVar(
    "Declaration", StreamStatement, TableStatement, SinkStatement, ViewStatement, AggregateStatement | FunctionStatement
)
Bound = TypeVar("Bound", Stream, Table, Sink, UserAggregate, UserFunction)


@dataclass(frozen=True)
class Declarations:
    """What has been declared, by name in lower case."""

    streams: dict[str, Stream] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    aggregates: dict[str, UserAggregate] = field(default_factory=dict)
    functions: dict[str, UserFunction] = field(default_factory=dict)
    views: dict[str, Body] = field(default_factory=dict)
    queries: dict[str, Body] = field(default_factory=dict)
    """What named queries compute, for the queries that read them."""
    tables: dict[str, Table] = field(default_factory=dict)


def declare(statements: Iterable[Statement], known: Declarations | None = None) -> Declarations:
    """What is `known` and what statements declare, which may call the functions of both; queries are passed over."""
    known = known or Declarations()
    statements = list(statements)
    streams = _declared((each for each in statements if isinstance(each, StreamStatement)), known.streams)
    check_aside_names([statement for _, statement in streams])
    sinks = _declared((each for each in statements if isinstance(each, SinkStatement)), known.sinks)
    code = (each for each in statements if isinstance(each, AggregateStatement | FunctionStatement))
    called = _declared(code, {*known.aggregates, *known.functions})
    functions = {name: bind_function(each) for name, each in called if isinstance(each, FunctionStatement)}
    functions = {**known.functions, **functions}
    aggregates = {
        name: bind_aggregate(each, functions) for name, each in called if isinstance(each, AggregateStatement)
    }
    views = _declared((each for each in statements if isinstance(each, ViewStatement)), known.views)
    tables = _declared((each for each in statements if isinstance(each, TableStatement)), known.tables)
    for each in [view for _, view in views] + [table for _, table in tables]:
        if each.name.text.lower() in {*known.streams, *dict(streams)}:
            other = dict(streams).get(each.name.text.lower())
            raise declared_twice(each.name if other is None else _later(each.name, other.name))
    for name, view in views:
        if name in {*known.tables, *dict(tables)}:
            raise declared_twice(view.name)
    named = [each for each in statements if isinstance(each, QueryStatement) and each.name is not None]
    all_tables = _together(known.tables, {name: bind_table(each) for name, each in tables}, dict(tables))
    bound = {name: bind_stream(each, functions, all_tables) for name, each in streams}
    return Declarations(
        _together(known.streams, bound, dict(streams)),
        _together(known.sinks, {name: bind_sink(each) for name, each in sinks}, dict(sinks)),
        _together(known.aggregates, aggregates, dict(called)),
        _together(known.functions, functions, dict(called)),
        {**known.views, **{name: each.body for name, each in views}},
        {**known.queries, **{each.name.text.lower(): each.body for each in named if each.name}},
        all_tables,
    )


def _later(one: Name, other: Name) -> Name:
    """The name that stands later in a text."""
    if one.place is None or other.place is None:
        return one
    return max(one, other, key=lambda each: (each.place.line, each.place.column) if each.place else (0, 0))


def _declared(statements: Iterable[Declaration], known: Container[str]) -> list[tuple[str, Declaration]]:
    """Each statement under its name in lower case; refuses a second one of a name, unless it says OR REPLACE."""
    found: dict[str, Declaration] = {}
    for statement in statements:
        name = statement.name.text.lower()
        if not statement.replaces and (name in found or name in known):
            raise declared_twice(statement.name)
        found[name] = statement
    return list(found.items())


def _together(
    known: Mapping[str, Bound], new: Mapping[str, Bound], statements: Mapping[str, Declared]
) -> dict[str, Bound]:
    """What is known and what is new; refuses to replace what a running network may use by something else."""
    for name, each in new.items():
        if name in known and each != known[name]:
            raise QueryError(
                f'"{statements[name].name.text}" cannot be replaced while the network runs',
                hint="Change it in the file, and start the run again on its checkpoint.",
                place=statements[name].name.place,
            )
    return {**known, **new}


def declared_twice(name: Name) -> QueryError:
    """The error for a name that is taken."""
    return QueryError(
        f'"{name.text}" is declared twice', hint="Choose another name; case makes no difference.", place=name.place
    )
