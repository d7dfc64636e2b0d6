"""A script into a network: streams and sinks wherever they stand, queries in order."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

import pyarrow as pa

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.user_functions import UserFunction
from millrace.language.declarations.future_guard import guarded
from millrace.language.declarations.query_options import bind_options, refuse_without_effect, said, with_baselines
from millrace.language.declarations.streams import (
    bind_sink,
    bind_stream,
    check_format,
    check_late_names,
    late_queries,
    late_streams,
)
from millrace.language.declarations.user_code import bind_aggregate, bind_function
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.script_parser import parse_expression, parse_script
from millrace.language.grammar.statements import (
    AggregateStatement,
    AlterStatement,
    Asked,
    Declared,
    DropStatement,
    FunctionStatement,
    Name,
    Options,
    QueryStatement,
    ShowStatement,
    SinkStatement,
    Statement,
    StreamStatement,
)
from millrace.language.select.query_binder import NodePlaces, QueryBinder
from millrace.language.updates.queue_options import effective
from millrace.language.updates.update_queries import ALTERED, altered_queue, bind_access, check_query
from millrace.language.windows.late_by_window import with_open_windows
from millrace.plan.evolution.changes import Added, Altered, Change, Dropped, Listed, WaitsListed, amended
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.updates.queue_configuration import is_append

Declaration = TypeVar("Declaration", StreamStatement, SinkStatement, AggregateStatement | FunctionStatement)

ALTERABLE = ("strategy", "share", "breaks", "ets_arcs", *ALTERED)
"""The options that ALTER QUERY may set: those that change how a query is run, and not what it answers."""


def parse_network(text: str, *, parts: bool = False) -> QueryNetwork:
    """The network that a script describes. Paths in options stay as they are written.

    With `parts` its selects may become parts of queries, whose options decide whether they have update semantics.

    >>> network = parse_network('''
    ...     CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
    ...     SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;
    ... ''')
    >>> network.queries[0].root.schema.names
    ['window_start', 'window_end', 'k', 'n']
    """
    return bind_network(parse_script(text), parts=parts)


@dataclass(frozen=True)
class Declarations:
    """What has been declared, by name in lower case."""

    streams: dict[str, Stream] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    aggregates: dict[str, UserAggregate] = field(default_factory=dict)
    functions: dict[str, UserFunction] = field(default_factory=dict)


def bind_network(
    statements: Sequence[Statement], known: Declarations | None = None, *, parts: bool = False
) -> QueryNetwork:
    """The network that statements describe, beside what is `known` already.

    The statements may be parsed from a text or built in Python: `grammar.statements` needs no places, and errors about
    parts without a place have none. Declarations hold wherever they stand, queries are bound in order.

    >>> from millrace.language.grammar.statements import *
    >>> columns = (ColumnDefinition(Name("k"), Name("STRING")), ColumnDefinition(Name("ts"), Name("TIMESTAMP")))
    >>> csv = ConnectorClause(Name("csv"), {"path": Setting(Name("path"), Name("s.csv"))})
    >>> declared = declare(
    ...     [StreamStatement(Name("s"), columns, time=TimeClause("external", Name("ts")), connector=csv)]
    ... )
    >>> item = SelectItem(parse_expression("upper(k)"), Name("upper"))
    >>> select = Select((item,), FromItem((Name("s"),)), where=parse_expression("k > 'a'"))
    >>> bind_network([QueryStatement(Body((select,)), Name("q"))], declared).queries[0].root.schema.names
    ['upper']
    """
    queries: dict[str, Query] = {}
    declared = declare(statements, known)
    for change in changes(statements, declared, queries, parts=parts):
        if isinstance(change, Listed | WaitsListed):
            asked, command = ("QUERIES", "control") if isinstance(change, Listed) else ("WAITS", "why")
            raise QueryError(
                f"SHOW {asked} is for a running network",
                hint=f"Use the command millrace {command}.",
                place=next(each.place for each in statements if isinstance(each, ShowStatement)),
            )
    everything = (*late_queries(declared.streams, declared.sinks, queries), *queries.values())
    # A query may have guarded a stream that queries before it read too.
    return QueryNetwork(everything).with_streams({each.name: each for each in declared.streams.values()})


def declare(statements: Iterable[Statement], known: Declarations | None = None) -> Declarations:
    """What is `known` and what statements declare, which may call the functions of both; queries are passed over."""
    known = known or Declarations()
    statements = list(statements)
    streams = _declared((each for each in statements if isinstance(each, StreamStatement)), known.streams)
    check_late_names([statement for _, statement in streams])
    sinks = _declared((each for each in statements if isinstance(each, SinkStatement)), known.sinks)
    code = (each for each in statements if isinstance(each, AggregateStatement | FunctionStatement))
    called = _declared(code, {*known.aggregates, *known.functions})
    functions = {name: bind_function(each) for name, each in called if isinstance(each, FunctionStatement)}
    functions = {**known.functions, **functions}
    aggregates = {
        name: bind_aggregate(each, functions) for name, each in called if isinstance(each, AggregateStatement)
    }
    return Declarations(
        {**known.streams, **{name: bind_stream(statement, functions) for name, statement in streams}},
        {**known.sinks, **{name: bind_sink(statement) for name, statement in sinks}},
        {**known.aggregates, **aggregates},
        functions,
    )


def _declared(statements: Iterable[Declaration], known: Container[str]) -> list[tuple[str, Declaration]]:
    """Each statement under its name in lower case; refuses a second one of a name."""
    found: dict[str, Declaration] = {}
    for statement in statements:
        if statement.name.text.lower() in found or statement.name.text.lower() in known:
            raise _declared_twice(statement.name)
        found[statement.name.text.lower()] = statement
    return list(found.items())


def _declared_twice(name: Name) -> QueryError:
    """The error for a name that is taken."""
    return QueryError(
        f'"{name.text}" is declared twice', hint="Choose another name; case makes no difference.", place=name.place
    )


def changes(
    statements: Iterable[Statement], declared: Declarations, queries: dict[str, Query], *, parts: bool = False
) -> Iterator[Change]:
    """The changes that statements make to `queries` (by name in lower case), which is updated with each of them.

    With `parts` the selects are parts of queries. A query with `max_future_skew` replaces its streams in `declared`.
    """
    asked = [each for each in statements if not isinstance(each, Declared)]
    names = {each.name.text.lower() for each in asked if not isinstance(each, ShowStatement) and each.name}
    binder = QueryBinder(
        declared.streams,
        frozenset({*names, *queries}),
        late_streams(declared.streams),
        declared.functions,
        declared.aggregates,
        parts=parts,
    )
    for statement in asked:
        try:
            change = _change(statement, binder, declared, queries, names)
        except RecursionError:
            place = statement.body.place if isinstance(statement, QueryStatement) else None
            raise QueryError("a query is nested too deeply", hint="Split it.", place=place) from None
        if isinstance(change, Added):
            queries[change.query.name.lower()] = change.query
        else:
            after = amended(tuple(queries.values()), change)
            queries.clear()
            queries.update({query.name.lower(): query for query in after})
        yield change


def _change(
    statement: Asked, binder: QueryBinder, declared: Declarations, queries: dict[str, Query], names: set[str]
) -> Change:
    match statement:
        case DropStatement():
            return Dropped(_existing(statement.name, queries).name)
        case AlterStatement():
            query = _existing(statement.name, queries)
            written = with_baselines(statement.options)
            altered_queue(query, written)
            return Altered(query.name, _alterable(written))
        case ShowStatement(waits=waits):
            return WaitsListed() if waits else Listed()
        case QueryStatement(name=Name() as name):
            if name.text.lower() in queries or name.text.lower() in binder.late:
                raise _declared_twice(name)
            return Added(_query(name.text, statement, binder, declared))
        case QueryStatement():
            free = (each for number in count(1) if (each := f"query_{number}") not in queries and each not in names)
            return Added(_query(next(free), statement, binder, declared))


def _query(name: str, statement: QueryStatement, binder: QueryBinder, declared: Declarations) -> Query:
    written = with_baselines(statement.options)
    own = bind_options(written)
    binder = replace(binder, limited="state_limit" in own, updates=not is_append(own), places=NodePlaces())
    relation = binder.body(statement.body)
    place = statement.body.place
    options = own if binder.parts else effective(own, written, relation.node, place)
    if binder.updates and is_append(options):
        relation = replace(binder, updates=False).body(statement.body)
    refuse_without_effect(written, relation.node)
    if not binder.parts:
        check_query(relation.node, options, binder.places, place)
    access = bind_access(statement.access, relation.node, options, binder.functions)
    if statement.name is None:
        sink = Sink(name, Connector("console"))
    elif statement.into is None:
        sink = Sink(name, Connector("memory"))
    else:
        sink = _sink(statement.into, declared.sinks)
    check_format(sink, relation.node.schema, statement.into)
    root = relation.node if binder.parts else with_open_windows(relation.node, place)
    query = Query(name, root, sink, options, access=access)
    guard = written.get("max_future_skew")
    return query if guard is None else guarded(query, guard, declared.streams)


def _sink(name: Name, sinks: dict[str, Sink]) -> Sink:
    if name.text.lower() in sinks:
        return sinks[name.text.lower()]
    names = [sink.name for sink in sinks.values()]
    known = f"The sinks are {listed(names)}." if names else "Declare it with CREATE SINK."
    raise QueryError(
        f'sink "{name.text}" does not exist', hint=f"{did_you_mean(name.text, names)}{known}", place=name.place
    )


def _existing(name: Name, queries: dict[str, Query]) -> Query:
    if name.text.lower() not in queries:
        names = [query.name for query in queries.values()]
        known = f"The queries before it are {listed(names)}." if names else "No query stands before it."
        raise QueryError(
            f'query "{name.text}" does not exist', hint=f"{did_you_mean(name.text, names)}{known}", place=name.place
        )
    return queries[name.text.lower()]


def _alterable(options: Options) -> dict[str, str]:
    """The options, if a running query can change all of them."""
    for key, setting in options.items():
        if key not in ALTERABLE:
            raise QueryError(
                f"{said(setting)} of a query cannot be altered",
                hint=f"{listed(ALTERABLE)} can; for others drop the query and add it anew.",
                place=setting.key.place,
            )
    return bind_options(options)


def bind_expression(text: str, schema: pa.Schema) -> Expression:
    """An expression over rows of a schema.

    >>> str(bind_expression("len > 10", pa.schema([("len", pa.int32())])))
    '(len > 10)'
    """
    return ExpressionBinder(Scope(schema)).bind(parse_expression(text)).expression
