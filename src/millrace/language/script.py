"""A script into a network: streams and sinks wherever they stand, queries in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.expressions import Expression
from millrace.language.catalogue import Declarations, declare, declared_twice
from millrace.language.declarations.future_guard import guarded
from millrace.language.declarations.query_options import bind_options, refuse_without_effect, said, with_baselines
from millrace.language.declarations.released_rows import with_releases
from millrace.language.declarations.streams import aside_queries, aside_scans, check_format
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.script_parser import parse_expression, parse_script
from millrace.language.grammar.statements import (
    AlterStatement,
    Asked,
    Body,
    Declared,
    DescribeStatement,
    DropStatement,
    ExplainStatement,
    Inspected,
    Name,
    Options,
    QueryStatement,
    RefreshStatement,
    SetStatement,
    ShowStatement,
    Statement,
)
from millrace.language.inspection import shown
from millrace.language.month_columns import months_as_text
from millrace.language.select.node_places import NodePlaces
from millrace.language.select.query_binder import QueryBinder
from millrace.language.updates.queue_options import effective
from millrace.language.updates.update_queries import ALTERED, altered_queue, bind_access, check_query
from millrace.language.windows.late_by_window import with_open_windows
from millrace.plan.evolution.changes import (
    Added,
    Altered,
    Change,
    Dropped,
    Listed,
    Refreshed,
    Shown,
    WaitsListed,
    amended,
)
from millrace.plan.nodes.endpoints import Connector, Sink, Table
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.updates.queue_configuration import is_append

ALTERABLE = ("strategy", "share", "breaks", "ets_arcs", *ALTERED)
"""The options that ALTER QUERY may set: those that change how a query is run, and not what it answers."""


def parse_network(text: str) -> QueryNetwork:
    """The network that a script describes. Paths in options stay as they are written.

    >>> network = parse_network('''
    ...     CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
    ...     SELECT window_end, k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;
    ... ''')
    >>> network.queries[0].root.schema.names
    ['window_end', 'k', 'n']
    """
    return bind_network(parse_script(text))


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
    return bind_script(statements, known, parts=parts)[0]


def bind_script(
    statements: Sequence[Statement], known: Declarations | None = None, *, parts: bool = False
) -> tuple[QueryNetwork, tuple[Shown, ...]]:
    """The network that statements describe, and the answers to SHOW, DESCRIBE and EXPLAIN among them, in order."""
    queries: dict[str, Query] = {}
    declared = declare(statements, known)
    answers = tuple(each for each in changes(statements, declared, queries, parts=parts) if isinstance(each, Shown))
    everything = (*aside_queries(declared.streams, declared.sinks, queries), *queries.values())
    # A query may have guarded a stream that queries before it read too.
    return QueryNetwork(everything).with_streams({each.name: each for each in declared.streams.values()}), answers


def changes(
    statements: Iterable[Statement],
    declared: Declarations,
    queries: dict[str, Query],
    *,
    parts: bool = False,
    live: bool = False,
) -> Iterator[Change]:
    """The changes that statements make to `queries` (by name in lower case), which is updated with each of them.

    With `parts` the selects are parts of queries; `live` says that they run. A query with `max_future_skew` replaces
    its streams in `declared`.
    """
    asked = [each for each in statements if not isinstance(each, Declared | SetStatement)]
    names = {
        each.name.text.lower() for each in asked if not isinstance(each, RefreshStatement | Inspected) and each.name
    }
    binder = QueryBinder(
        declared.streams,
        frozenset({*names, *queries}),
        aside_scans(declared.streams),
        declared.functions,
        declared.aggregates,
        parts=parts,
        tables=declared.tables,
    )
    for name, view in declared.views.items():
        replace(binder, limited=True, named=declared.views, reading=(name,)).body(view, inside=True)
    binder = replace(binder, named=_readable(declared, queries))
    for statement in asked:
        if isinstance(statement, QueryStatement) and statement.replaces and _name(statement) in queries:
            yield _amend(queries, Dropped(queries[_name(statement)].name))
        try:
            change = _change(statement, binder, declared, queries, names, live=live)
        except RecursionError:
            place = statement.body.place if isinstance(statement, QueryStatement) else None
            raise QueryError("a query is nested too deeply", hint="Split it.", place=place) from None
        if isinstance(change, Added):
            name = change.query.name.lower()
            queries[name] = change.query
            if name in declared.queries:
                # Not a new dictionary: a file may have thousands of queries.
                binder.named.setdefault(name, declared.queries[name])
        elif not isinstance(change, Shown):
            _amend(queries, change)
            binder = replace(binder, named=_readable(declared, queries))
        yield change


def _readable(declared: Declarations, queries: Mapping[str, Query]) -> dict[str, Body]:
    """What a query may read by name beside streams: views, and the queries that are there."""
    return {**{name: body for name, body in declared.queries.items() if name in queries}, **declared.views}


def _amend(queries: dict[str, Query], change: Change) -> Change:
    """The change, made to the queries."""
    after = amended(tuple(queries.values()), change)
    queries.clear()
    queries.update({query.name.lower(): query for query in after})
    return change


def _change(
    statement: Asked,
    binder: QueryBinder,
    declared: Declarations,
    queries: dict[str, Query],
    names: set[str],
    *,
    live: bool,
) -> Change:
    match statement:
        case DropStatement():
            return Dropped(_existing(statement.name, queries).name)
        case AlterStatement():
            query = _existing(statement.name, queries)
            written = with_baselines(statement.options)
            altered_queue(query, written)
            return Altered(query.name, _alterable(written))
        case RefreshStatement(name=name):
            return Refreshed(_joined_table(name, declared.tables, queries, live=live))
        case ShowStatement(what="queries" | "waits" as what) if live:
            return WaitsListed() if what == "waits" else Listed()
        case ShowStatement() | DescribeStatement() | ExplainStatement():
            return shown(
                statement, binder, declared.sinks, queries, lambda each: _query("query", each, binder, declared)
            )
        case QueryStatement(name=Name() as name):
            if any(name.text.lower() in each for each in (queries, binder.aside, declared.views)):
                raise declared_twice(name)
            if name.text.lower() in declared.streams:
                fact = f'"{name.text}" is both a stream and a query'
                raise QueryError(fact, hint="Give the query a name of its own.", place=name.place)
            return Added(_query(name.text, statement, binder, declared))
        case QueryStatement(into=into):
            taken = queries, names, declared.views
            free = (each for each in _names(into) if not any(each.lower() in some for some in taken))
            return Added(_query(next(free), statement, binder, declared))


def _name(statement: QueryStatement) -> str:
    return "" if statement.name is None else statement.name.text.lower()


def _names(sink: Name | None) -> Iterator[str]:
    """Names for a query without one: INSERT INTO takes that of its sink."""
    if sink is not None:
        yield sink.text
    yield from (f"{'query' if sink is None else sink.text}_{number}" for number in count(1 if sink is None else 2))


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
    if statement.into is not None:
        sink = _sink(statement.into, declared)
    elif statement.name is not None:
        sink = Sink(name, Connector("memory"))
    else:
        limit = {} if statement.limit is None else {"limit": str(statement.limit.number)}
        sink = Sink(name, Connector("console", limit))
    relation = months_as_text(relation)
    root = relation.node if binder.parts else with_open_windows(relation.node, place)
    root = with_releases(root, written, options)
    check_format(sink, root.schema, statement.into)
    query = Query(name, root, sink, options, access=access)
    guard = written.get("max_future_skew")
    return query if guard is None else guarded(query, guard, declared.streams)


def _sink(name: Name, declared: Declarations) -> Sink:
    sinks = declared.sinks
    others: dict[str, Mapping[str, object]] = {
        "stream": declared.streams,
        "table": declared.tables,
        "view": declared.views,
    }
    for kind, known in others.items():
        if name.text.lower() in known and name.text.lower() not in sinks:
            hint = "Results go to a sink: CREATE SINK name TO csv OPTIONS (path 'folder'), then INSERT INTO name."
            raise QueryError(f'"{name.text}" is a {kind}, not a sink', hint=hint, place=name.place)
    if name.text.lower() in sinks:
        return sinks[name.text.lower()]
    names = [sink.name for sink in sinks.values()]
    there = f"The sinks are {listed(names)}." if names else "Declare it with CREATE SINK."
    raise QueryError(
        f'sink "{name.text}" does not exist', hint=f"{did_you_mean(name.text, names)}{there}", place=name.place
    )


def _existing(name: Name, queries: dict[str, Query]) -> Query:
    if name.text.lower() not in queries:
        names = [query.name for query in queries.values()]
        known = f"The queries before it are {listed(names)}." if names else "No query stands before it."
        raise QueryError(
            f'query "{name.text}" does not exist', hint=f"{did_you_mean(name.text, names)}{known}", place=name.place
        )
    return queries[name.text.lower()]


def _joined_table(name: Name, tables: dict[str, Table], queries: dict[str, Query], *, live: bool) -> str:
    """The table of a name that some query of a running network joins, or that lists the partitions of its streams."""
    if not live:
        raise QueryError(
            "REFRESH TABLE is for a running network",
            hint="Use the command millrace control, or write REFRESH EVERY INTERVAL 1 HOUR in CREATE TABLE.",
            place=name.place,
        )
    joined = [each.name for each in QueryNetwork(tuple(queries.values())).tables()]
    found = tables.get(name.text.lower())
    if found is None or found.name not in joined:
        known = f"The tables that queries use are {listed(joined)}." if joined else "No query uses a table."
        fact = f'table "{name.text}" ' + ("does not exist" if found is None else "is not used by any query")
        raise QueryError(fact, hint=f"{did_you_mean(name.text, joined)}{known}", place=name.place)
    return found.name


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
