"""Answers to SHOW, DESCRIBE and EXPLAIN, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES, KNOWN
from millrace.language.grammar.statements import DescribeStatement, ExplainStatement, Inspected, Name, QueryStatement
from millrace.language.select.query_binder import QueryBinder
from millrace.plan.evolution.changes import Shown
from millrace.plan.explain.picture_formats import rendered
from millrace.plan.explain.plan_text import explain
from millrace.plan.explain.query_picture import query_picture
from millrace.plan.nodes.endpoints import Sink, Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.physical.stages import physical

Rows = Iterable[Sequence[str]]


def shown(
    statement: Inspected,
    binder: QueryBinder,
    sinks: Mapping[str, Sink],
    queries: Mapping[str, Query],
    bind: Callable[[QueryStatement], Query],
) -> Shown:
    """The answer to a statement; `bind` binds a query of EXPLAIN."""
    if isinstance(statement, ExplainStatement):
        network = physical(QueryNetwork((bind(statement.query),)))
        formatted = statement.format != "text"
        plan = rendered(query_picture(network), statement.format) if formatted else explain(network)
        return _rows("EXPLAIN", ["plan"], ([line] for line in plan.splitlines()))
    if isinstance(statement, DescribeStatement):
        return _described(statement.name, binder, sinks, queries)
    return _SHOWN[statement.what](statement, binder, sinks, queries)


def _rows(title: str, columns: Sequence[str], rows: Rows) -> Shown:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return Shown(title, pa.table([pa.array(each, pa.string()) for each in values], names=list(columns)))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {sql_name(each.type)}" for each in schema)


# SHOW


def _streams(_: object, binder: QueryBinder, *rest: object) -> Shown:
    rows = ((each.name, _columns(each.schema), _time(each), each.connector.format) for each in binder.streams.values())
    return _rows("SHOW STREAMS", ["stream", "columns", "time", "source"], rows)


def _time(stream: Stream) -> str:
    return stream.time.column or "of arrival"


def _tables(_: object, binder: QueryBinder, *rest: object) -> Shown:
    rows = (
        (each.name, _columns(each.schema), ", ".join(each.key), each.connector.format)
        for each in binder.tables.values()
    )
    return _rows("SHOW TABLES", ["table", "columns", "primary key", "source"], rows)


def _sinks(_: object, binder: QueryBinder, sinks: Mapping[str, Sink], queries: object) -> Shown:
    rows = ((each.name, each.connector.format, each.connector.options.get("path", "")) for each in sinks.values())
    return _rows("SHOW SINKS", ["sink", "format", "path"], rows)


def _views(_: object, binder: QueryBinder, *rest: object) -> Shown:
    names = [name for name in binder.named if name not in binder.queries]
    return _rows("SHOW VIEWS", ["view", "columns"], ((each, _columns(_read(Name(each), binder))) for each in names))


def _queries(_: object, binder: QueryBinder, sinks: object, queries: Mapping[str, Query]) -> Shown:
    rows = ((each.name, each.sink.name, _columns(each.root.schema)) for each in queries.values())
    return _rows("SHOW QUERIES", ["query", "sink", "columns"], rows)


def _functions(_: object, binder: QueryBinder, *rest: object) -> Shown:
    known = {name: "aggregate" if name in AGGREGATE_NAMES else "function" for name in KNOWN}
    known |= dict.fromkeys(binder.functions, "function of a user") | dict.fromkeys(
        binder.aggregates, "aggregate of a user"
    )
    return _rows("SHOW FUNCTIONS", ["function", "kind"], sorted(known.items()))


def _waits(statement: Inspected, *rest: object) -> Shown:
    hint = "Use the command millrace why, or handle.why() in Python."
    raise QueryError("SHOW WAITS is for a running network", hint=hint, place=getattr(statement, "place", None))


_SHOWN: Mapping[str, Callable[..., Shown]] = {
    "streams": _streams,
    "tables": _tables,
    "sinks": _sinks,
    "views": _views,
    "queries": _queries,
    "functions": _functions,
    "waits": _waits,
}


# DESCRIBE


def _described(name: Name, binder: QueryBinder, sinks: Mapping[str, Sink], queries: Mapping[str, Query]) -> Shown:
    """The columns of what has a name: a stream, a view, a query, or the query that writes to a sink."""
    key = name.text.lower()
    stream = binder.streams.get(key)
    query = queries.get(key) or next((each for each in queries.values() if each.sink.name.lower() == key), None)
    if stream is not None or key in binder.named or key in binder.aside:
        schema = _read(name, binder)
    elif key in binder.tables:
        schema = binder.tables[key].schema
    elif query is not None:
        schema = query.root.schema
    elif key in sinks:
        schema = pa.schema([])
    else:
        raise _unknown(name, [*binder.streams, *binder.tables, *binder.named, *binder.aside, *queries, *sinks])
    notes = {each: note for each, note in ({} if stream is None else _notes(stream)).items() if each}
    if stream is None and key in binder.tables:
        notes = dict.fromkeys(binder.tables[key].key, "primary key")
    rows = [(each.name, sql_name(each.type), notes.get(each.name, "")) for each in schema]
    return _rows(f"DESCRIBE {name.text}", ["column", "type", "note"], rows)


def _read(name: Name, binder: QueryBinder) -> pa.Schema:
    return binder.relation(name).schema


def _notes(stream: Stream) -> dict[str | None, str]:
    return {**dict.fromkeys(stream.update_key or (), "update key"), stream.time.column: "time"}


def _unknown(name: Name, known: Sequence[str]) -> QueryError:
    names = list(dict.fromkeys(known))
    there = f"There are {listed(names)}." if names else "Nothing is declared."
    return QueryError(
        f'"{name.text}" does not exist', hint=f"{did_you_mean(name.text, names)}{there}", place=name.place
    )
