"""Declared streams and sinks: every clause checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from millrace.errors import Place, QueryError, listed
from millrace.kernel.columns.sql_types import read_type, sql_name
from millrace.kernel.elements import PARTITION, RESERVED, TIMESTAMP
from millrace.kernel.updates.queue_settings import LOSSLESS
from millrace.language.declarations.computed_columns import computed_schema
from millrace.language.declarations.contracts import Attributes, bind_contract, time_clause
from millrace.language.declarations.partitions import declared_partitions, grace_of, listing_table
from millrace.language.declarations.query_options import BASELINE, bind_options, said, with_baselines
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.progressing import ATTRIBUTES
from millrace.language.expressions.refused_expressions import unknown_type
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.zone_names import check_zone
from millrace.language.grammar.statements import (
    ColumnDefinition,
    ColumnsClause,
    ConnectorClause,
    Name,
    Options,
    ReplayClause,
    SinkStatement,
    StreamStatement,
    TimeClause,
)
from millrace.plan.nodes.endpoints import Connector, Replay, Sink, Stream, Table
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Scan
from millrace.secrets import HOW_TO_REFER, plain_secret
from millrace.source_index import has_source

QUEUE_OPTIONS = ("queue", "keep", "update_window", "close", "tick", "memory", "budget")
"""The options of a stream: those of the queues of queries that read it."""
_OF_UPDATES = ("update_window", "close", "tick")


def bind_sink(statement: SinkStatement) -> Sink:
    """The sink of a CREATE SINK."""
    return Sink(statement.name.text, connector_of(statement.connector))


def connector_of(clause: ConnectorClause) -> Connector:
    """The format of a clause, and its options."""
    named = clause.format.text
    # A format with dots is the class of a source of Spark's, where case counts.
    format = named if "." in named else named.lower()
    for key, setting in clause.options.items():
        if (why := plain_secret(key, setting.value.text)) is not None:
            raise QueryError(why, hint=HOW_TO_REFER, place=setting.key.place)
    return Connector(format, {key: setting.value.text for key, setting in clause.options.items()})


def in_zone(connector: Connector, zone: Name | None) -> Connector:
    """The connector of a file whose times are of a zone unless they say another."""
    if zone is None:
        return connector
    if connector.format not in ("csv", "json", "parquet"):
        raise QueryError(
            f'TIME ZONE is for times in files, and not for "{connector.format}"',
            hint="Leave it out, and write to_utc_timestamp(ts, 'Europe/Berlin') in the query.",
            place=zone.place,
        )
    return replace(connector, options={**connector.options, "time_zone": check_zone(zone)})


def bind_stream(statement: StreamStatement, functions: Functions, tables: Mapping[str, Table]) -> Stream:
    """The stream of a CREATE STREAM; a table may list its partitions."""
    time = time_clause(statement)
    schema, computed = computed_schema(schema_of(statement.columns), statement.columns, functions)
    schema = _with_internal_column(schema, time)
    scope = Scope(schema)
    column = None if time.column is None else _time_column(time, scope)
    attributes = Attributes(
        column,
        _columns_of(statement.partitioned, scope),
        tuple(_existing(name, scope) for name in time.per),
        _further_times(time, column, scope),
        TIMESTAMP if column is None else schema.field(column).type,
    )
    binder = ExpressionBinder(scope, functions)
    contract = bind_contract(statement, time, attributes, binder)
    table = None
    if (partitioned := statement.partitioned) is not None:
        declared = declared_partitions(partitioned, attributes.partitions, binder)
        fields = [schema.field(each) for each in attributes.partitions]
        table, listing = listing_table(partitioned, fields, tables)
        contract = replace(contract, declared=declared, listed_in=listing, grace=grace_of(partitioned, contract.unit))
    if computed:
        contract = replace(contract, computed=computed, layout=tuple(schema.names))
    replay = None if statement.replay is None else _replay(statement.replay, scope)
    if statement.connector is None:
        raise QueryError(
            f'stream "{statement.name.text}" has no source',
            hint="Add FROM csv OPTIONS (path 'file.csv'), or another format.",
            place=statement.name.place,
        )
    connector = connector_of(statement.connector)
    if has_source(connector.format, connector.options):
        contract = contract.by_source_partition()
        if statement.replay is not None:
            raise QueryError(
                f'stream "{statement.name.text}" comes from "{connector.format}", which is read as rows come',
                hint="Leave REPLAY BY out: it is for files.",
                place=statement.replay.column.place,
            )
    found = Stream(
        statement.name.text,
        schema,
        contract,
        in_zone(connector, statement.zone),
        replay,
        None if statement.late_into is None else statement.late_into.text,
        update_key=None if statement.update_key is None else _update_key(statement.update_key, scope, attributes),
        options=_bind_options(statement),
        quarantine_into=None if statement.quarantine_into is None else statement.quarantine_into.text,
        partition_table=table,
    )
    check_format(found, schema, statement.name)
    return found


# Columns


def schema_of(columns: tuple[ColumnDefinition, ...]) -> pa.Schema:
    """The columns of a column list, each once."""
    seen: set[str] = set()
    for definition in columns:
        name = definition.name
        if name.text.lower() in seen:
            raise QueryError(
                f'column "{name.text}" is declared twice',
                hint="Choose another name; case makes no difference.",
                place=name.place,
            )
        if name.text.lower() in (*RESERVED, PARTITION):
            raise QueryError(f'the name "{name.text}" is reserved', hint="Choose another name.", place=name.place)
        seen.add(name.text.lower())
    return pa.schema([(each.name.text, type_of(each.type)) for each in columns if each.type is not None])


def type_of(name: Name) -> pa.DataType:
    """The type that a text names."""
    kind = read_type(name.text)
    if kind is None or pa.types.is_duration(kind):
        raise unknown_type(name.text, name.place)
    return kind


def _existing(name: Name, scope: Scope) -> str:
    found = scope.find(name.text)
    if found is None:
        raise scope.unknown(name.text, name.place)
    return found


def _columns_of(clause: ColumnsClause | None, scope: Scope) -> tuple[str, ...]:
    names = () if clause is None else clause.columns
    for name in names:
        if pa.types.is_nested(kind := scope.schema.field(_existing(name, scope)).type):
            fact = f'"{name.text}" is {sql_name(kind)}, and rows cannot be partitioned by it'
            raise QueryError(fact, hint="Partition by text, numbers, booleans or times.", place=name.place)
    return tuple(_existing(name, scope) for name in names)


def check_format(endpoint: Stream | Table | Sink, schema: pa.Schema, name: Name | None) -> None:
    """Refuse csv for columns that it has no way to write."""
    nested = next((each for each in schema if pa.types.is_nested(each.type)), None)
    if endpoint.connector.format == "csv" and nested is not None:
        what = type(endpoint).__name__.lower()
        instead = "Select to_json(...) of it, or its fields" if what == "sink" else "Declare it as STRING"
        raise QueryError(
            f'column "{nested.name}" is {sql_name(nested.type)}, which csv cannot hold',
            hint=f"{instead}, or let the {what} be json or parquet.",
            place=None if name is None else name.place,
        )


def _update_key(clause: ColumnsClause, scope: Scope, attributes: Attributes) -> tuple[str, ...]:
    """The columns of UPDATE KEY, each once, of types by which rows can be told apart, and none of them a time."""
    found: list[str] = []
    for name in clause.columns:
        column = _existing(name, scope)
        kind = scope.schema.field(column).type
        if column in found:
            raise QueryError(f'"{column}" is listed twice in UPDATE KEY', hint="Name it once.", place=name.place)
        if column in (attributes.time, *attributes.also):
            raise QueryError(
                f'"{column}" is a time of the stream and cannot be part of its update key',
                hint="A later row updates an earlier one of the same key: name the columns that stay the same.",
                place=name.place,
            )
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise QueryError(
                f'"{column}" is {sql_name(kind)} and cannot be part of an update key',
                hint="Fractions that should be equal often are not: use whole numbers, text, dates or booleans.",
                place=name.place,
            )
        found.append(column)
    return tuple(found)


def _further_times(time: TimeClause, column: str | None, scope: Scope) -> tuple[str, ...]:
    """The columns of ALSO BY, each another one."""
    found: list[str] = []
    for clause in time.also:
        assert clause.column is not None
        name = _time_column(clause, scope)
        if column is not None and _is_number(name, scope) != _is_number(column, scope):
            raise QueryError(
                f'"{name}" and "{column}" are not counted in the same unit',
                hint="All times of a stream are BIGINT, or all are TIMESTAMP or DATE.",
                place=clause.column.place,
            )
        if name in (column, *found):
            raise QueryError(
                f'"{name}" is already a time of the stream', hint="Name another column.", place=clause.column.place
            )
        found.append(name)
    return tuple(found)


def _time_column(clause: TimeClause, scope: Scope) -> str:
    """The column of a time: what the system stamps is a TIMESTAMP, what rows bring may be a DATE or a BIGINT."""
    assert clause.column is not None
    return _column_of(clause.column, scope, ATTRIBUTES if clause.kind == "external" else (TIMESTAMP,))


def _column_of(name: Name, scope: Scope, kinds: Sequence[pa.DataType]) -> str:
    found = _existing(name, scope)
    kind = scope.schema.field(found).type
    if kind not in kinds:
        names = " or ".join([", ".join(map(sql_name, kinds[:-1])), sql_name(kinds[-1])] if kinds[1:] else ["TIMESTAMP"])
        raise QueryError(
            f'column "{found}" is {sql_name(kind)}, not {names}',
            hint=f"Declare the time column as {names}.",
            place=name.place,
        )
    return found


def _is_number(column: str, scope: Scope) -> bool:
    return bool(scope.schema.field(column).type == pa.int64())


def _with_internal_column(schema: pa.Schema, time: TimeClause) -> pa.Schema:
    """The schema, with the internal time column at its end if it is not declared."""
    if time.kind != "internal" or time.column is None or Scope(schema).find(time.column.text) is not None:
        return schema
    return schema.append(pa.field(time.column.text, TIMESTAMP))


# Replay


def _replay(clause: ReplayClause, scope: Scope) -> Replay:
    column = _column_of(clause.column, scope, (TIMESTAMP,))
    return Replay(column) if clause.speed is None else Replay(column, _speed(clause.speed.text, clause.speed.place))


def _speed(text: str, place: Place | None) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise QueryError(
            f'SPEED cannot be "{text}"', hint="Write a positive number: 10 is ten times as fast.", place=place
        )
    return speed


# Options


def _bind_options(statement: StreamStatement) -> dict[str, str]:
    """The options of WITH in CREATE STREAM: those of queues."""
    written = with_baselines(statement.options)
    for key, setting in written.items():
        if key not in QUEUE_OPTIONS:
            names = [each for each in QUEUE_OPTIONS if each != "memory"]
            raise QueryError(
                f"{said(setting)} is not for a stream",
                hint=f"The options of a stream are {listed([*names, BASELINE])}; others stand in WITH of a query.",
                place=setting.key.place,
            )
    options = bind_options(written)
    if statement.update_key is None:
        _refuse_without_key(statement, written, options)
    return options


def _refuse_without_key(statement: StreamStatement, written: Options, options: Mapping[str, str]) -> None:
    """Refuse options for updates where a stream has none."""
    for key, setting in written.items():
        if key in _OF_UPDATES or (key == "queue" and options[key] not in LOSSLESS):
            raise QueryError(
                f"{said(setting, value=True)} is for update streams",
                hint=f'Add UPDATE KEY (column) to "{statement.name.text}", or leave it out.',
                place=setting.key.place,
            )


# Rows that are set aside


def check_aside_names(statements: Sequence[StreamStatement]) -> None:
    """Refuse a stream of late or quarantined rows under a name that is taken."""
    taken = {each.name.text.lower() for each in statements}
    names = [
        (clause, name)
        for each in statements
        for clause, name in (("LATE", each.late_into), ("QUARANTINE", each.quarantine_into))
    ]
    for clause, name in names:
        if name is None:
            continue
        if name.text.lower() in taken:
            raise QueryError(
                f'"{name.text}" is declared twice',
                hint=f"{clause} INTO names a stream that is not declared elsewhere.",
                place=name.place,
            )
        taken.add(name.text.lower())


def aside_scans(streams: Mapping[str, Stream]) -> dict[str, Scan]:
    """Late and quarantined rows by the name, in lower case, under which they can be read."""
    return {name.lower(): Scan(each, outlet) for each in streams.values() for outlet, name in each.aside().items()}


def aside_queries(
    streams: Mapping[str, Stream], sinks: Mapping[str, Sink], queries: Mapping[str, Query]
) -> Iterator[Query]:
    """A query for late or quarantined rows that have a sink of their name, and no query that reads them."""
    scans = [node for query in queries.values() for node in walk(query.root) if isinstance(node, Scan)]
    read = {scan.source for scan in scans}
    used = {scan.stream.name for scan in scans}
    for name, scan in aside_scans(streams).items():
        if name in sinks and scan.stream.name in used and scan.source not in read:
            yield Query(scan.name, scan, sinks[name])
