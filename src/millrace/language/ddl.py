"""Declared streams and sinks: every clause checked, those without an engine part refused."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.kernel.elements import RESERVED
from millrace.kernel.expressions import SQL_TYPES, sql_name
from millrace.kernel.progress import EtsKind, TimeContract
from millrace.language.ddl_later import refuse_later_clauses
from millrace.language.expressions import ExpressionBinder
from millrace.language.places import Source, listed
from millrace.language.scopes import Scope
from millrace.language.statements import (
    ColumnDefinition,
    ConnectorClause,
    EtsClause,
    Length,
    Name,
    ReplayClause,
    SinkStatement,
    StreamStatement,
    TimeClause,
    Watermark,
)
from millrace.plan.intervals import interval_text
from millrace.plan.nodes import TIMESTAMP, Connector, Replay, Sink, Stream

_OTHER_NAMES = {
    "INTEGER": "INT", "LONG": "BIGINT", "SHORT": "SMALLINT", "BYTE": "TINYINT", "BOOL": "BOOLEAN", "REAL": "FLOAT",
    "VARCHAR": "STRING", "TEXT": "STRING", "CHAR": "STRING",
}  # fmt: skip
_CHOICES = (
    "Say what its time is: TIMESTAMP BY column ORDERED, TIMESTAMP BY column DISORDER INTERVAL 5 SECONDS, "
    "INTERNAL TIMESTAMP AS column, or LATENT TIMESTAMP."
)


def bind_sink(statement: SinkStatement) -> Sink:
    """The sink of a CREATE SINK."""
    return Sink(statement.name.text, _connector(statement.connector))


def _connector(clause: ConnectorClause) -> Connector:
    return Connector(clause.format.text.lower(), {key: setting.value.text for key, setting in clause.options.items()})


def bind_stream(statement: StreamStatement, source: Source) -> Stream:
    """The stream of a CREATE STREAM."""
    time = _time_clause(statement)
    schema = _with_internal_column(_schema(statement.columns), time)
    scope = Scope(schema)
    column = None if time.column is None else _time_column(time.column, scope)
    if time.punctuated_by is not None:
        ExpressionBinder(source, scope).bind(time.punctuated_by)
    contract = _contract(statement, time, column)
    replay = None if statement.replay is None else _replay(statement.replay, scope)
    for clause in (statement.partitioned, statement.update_key):
        for name in clause.columns if clause else ():
            _existing(name, scope)
    for name in time.per:
        _existing(name, scope)
    if statement.connector is None:
        raise QueryError(
            f'stream "{statement.name.text}" has no source',
            hint="Add FROM csv OPTIONS (path 'file.csv'), or another format.",
            place=statement.name.place,
        )
    refuse_later_clauses(statement, time)
    return Stream(statement.name.text, schema, contract, _connector(statement.connector), replay)


# Columns


def _schema(columns: tuple[ColumnDefinition, ...]) -> pa.Schema:
    seen: set[str] = set()
    for definition in columns:
        name = definition.name
        if name.text.lower() in seen:
            raise QueryError(
                f'column "{name.text}" is declared twice',
                hint="Choose another name; case makes no difference.",
                place=name.place,
            )
        if name.text.lower() in RESERVED:
            raise QueryError(f'the name "{name.text}" is reserved', hint="Choose another name.", place=name.place)
        seen.add(name.text.lower())
    return pa.schema([(each.name.text, _type(each.type)) for each in columns])


def _type(name: Name) -> pa.DataType:
    kind = SQL_TYPES.get(_OTHER_NAMES.get(name.text, name.text))
    if kind is None:
        raise QueryError(
            f'type "{name.text}" is unknown here', hint=f"The types are {listed(SQL_TYPES)}.", place=name.place
        )
    return kind


def _existing(name: Name, scope: Scope) -> str:
    found = scope.find(name.text)
    if found is None:
        raise scope.unknown(name.text, name.place)
    return found


def _time_column(name: Name, scope: Scope) -> str:
    found = _existing(name, scope)
    kind = scope.schema.field(found).type
    if kind != TIMESTAMP:
        raise QueryError(
            f'column "{found}" is {sql_name(kind)}, not TIMESTAMP',
            hint="Declare the time column as TIMESTAMP.",
            place=name.place,
        )
    return found


def _with_internal_column(schema: pa.Schema, time: TimeClause) -> pa.Schema:
    """The schema, with the internal time column at its end if it is not declared."""
    if time.kind != "internal" or time.column is None or Scope(schema).find(time.column.text) is not None:
        return schema
    return schema.append(pa.field(time.column.text, TIMESTAMP))


# Time


def _time_clause(statement: StreamStatement) -> TimeClause:
    """The one clause that says what the stream's time is."""
    from_watermarks = [_of_watermark(each) for each in statement.watermarks]
    clauses = [*from_watermarks, *([statement.time] if statement.time else [])]
    if not clauses:
        raise QueryError(f'stream "{statement.name.text}" has no time', hint=_CHOICES, place=statement.name.place)
    if len(clauses) > 1:
        raise QueryError(
            f'stream "{statement.name.text}" has two times', hint="Keep one of them.", place=clauses[1].place
        )
    return clauses[0]


def _of_watermark(watermark: Watermark) -> TimeClause:
    """`WATERMARK FOR ts AS ts - INTERVAL i` is `TIMESTAMP BY ts DISORDER INTERVAL i`."""
    node = watermark.expression
    if _names(node, watermark.column):
        return TimeClause("external", watermark.place, watermark.column)
    if isinstance(node, exp.Sub) and _names(node.this, watermark.column) and isinstance(node.expression, exp.Interval):
        disorder = Length(int(node.expression.this.name), watermark.place)
        return TimeClause("external", watermark.place, watermark.column, disorder)
    name = watermark.column.text
    raise QueryError(
        "a watermark is the time column less an interval",
        hint=f"Write WATERMARK FOR {name} AS {name} - INTERVAL 5 SECONDS.",
        place=watermark.place,
    )


def _names(node: exp.Expr, column: Name) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == column.text.lower()


def _contract(statement: StreamStatement, time: TimeClause, column: str | None) -> TimeContract:
    disorder = 0 if time.disorder is None else time.disorder.micros
    if time.disorder is not None and disorder < 0:
        raise QueryError(
            "DISORDER is negative", hint="Write ORDERED, or a positive interval.", place=time.disorder.place
        )
    if time.kind != "external":
        return TimeContract(time.kind, column, 0, _own_clock_ets(statement.ets))
    ets, skew = _external_ets(statement.ets, disorder)
    return TimeContract("external", column, disorder, ets, skew)


def _own_clock_ets(clause: EtsClause | None) -> EtsKind:
    """Internal and latent times are the system's clock, so a silent stream can always be spoken for."""
    if clause is not None and clause.kind == "on_demand" and clause.length is not None:
        raise QueryError(
            "SKEW is for external timestamps",
            hint="Leave SKEW out: this stream has our own clock.",
            place=clause.length.place,
        )
    return "none" if clause is not None and clause.kind == "none" else "on_demand"


def _external_ets(clause: EtsClause | None, disorder: int) -> tuple[EtsKind, int | None]:
    if clause is None or clause.kind != "on_demand":
        return "none", None
    if clause.length is None:
        raise QueryError(
            "ETS ON DEMAND needs a SKEW for external timestamps",
            hint=f"Add how far a row may lag the clock, as in SKEW INTERVAL {interval_text(disorder or 1_000_000)}.",
            place=clause.place,
        )
    if clause.length.micros < disorder:
        raise QueryError(
            f"SKEW is less than DISORDER, which is {interval_text(disorder)}",
            hint=f"Write at least SKEW INTERVAL {interval_text(disorder)}, or rows within the disorder come late.",
            place=clause.length.place,
        )
    return "on_demand", clause.length.micros


# Replay


def _replay(clause: ReplayClause, scope: Scope) -> Replay:
    column = _time_column(clause.column, scope)
    return Replay(column) if clause.speed is None else Replay(column, _speed(clause.speed.text, clause.speed.place))


def _speed(text: str, place: Place) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise QueryError(
            f'SPEED cannot be "{text}"', hint="Write a positive number: 10 is ten times as fast.", place=place
        )
    return speed
