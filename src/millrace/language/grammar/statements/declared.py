"""What CREATE declares: streams, tables, sinks, aggregates and functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from millrace.language.grammar.statements.placed import Length, Name, NumberOfRows, Options, Placed
from millrace.language.grammar.statements.selects import Body


@dataclass(frozen=True)
class ColumnDefinition:
    """`name TYPE` of a column list, or `name [TYPE] AS expression` for a column that is computed of the others."""

    name: Name
    type: Name | None
    expression: exp.Expr | None = None


@dataclass(frozen=True)
class Watermark(Placed):
    """`WATERMARK FOR column AS expression` of a column list."""

    column: Name
    expression: exp.Expr


@dataclass(frozen=True)
class TimeClause(Placed):
    """`TIMESTAMP BY ...`, `INTERNAL TIMESTAMP AS ...` or `LATENT TIMESTAMP`, and each `ALSO BY ...` after it."""

    kind: Literal["external", "internal", "latent"]
    column: Name | None = None
    disorder: Length | NumberOfRows | None = None
    rows: Name | None = None
    punctuated_by: exp.Expr | None = None
    per: tuple[Name, ...] = ()
    also: tuple[TimeClause, ...] = ()


@dataclass(frozen=True)
class EtsClause(Placed):
    """`ETS ON DEMAND`, `ETS EVERY i` or `ETS NONE`, the former two with `[SKEW i] [LULL i]`."""

    kind: Literal["on_demand", "every", "none"]
    every: Length | None = None
    skew: Length | None = None
    lull: Length | None = None


@dataclass(frozen=True)
class ColumnsClause(Placed):
    """A clause that lists columns: `UPDATE KEY (...)`, and the one below."""

    columns: tuple[Name, ...]


@dataclass(frozen=True)
class PartitionsClause(ColumnsClause):
    """`PARTITIONED BY (...) [VALUES (...) | VALUES FROM table (...)] [GRACE interval]`."""

    values: tuple[exp.Expr, ...] = ()
    table: Name | None = None
    table_columns: tuple[Name, ...] = ()
    grace: Length | NumberOfRows | None = None


@dataclass(frozen=True)
class ConnectorClause:
    """`FROM format OPTIONS (...)` or `TO format OPTIONS (...)`."""

    format: Name
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class ReplayClause(Placed):
    """`REPLAY BY column [SPEED x]`."""

    column: Name
    speed: Name | None = None


@dataclass(frozen=True)
class StreamStatement:
    """`CREATE STREAM`."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    watermarks: tuple[Watermark, ...] = ()
    time: TimeClause | None = None
    partitioned: PartitionsClause | None = None
    ets: EtsClause | None = None
    max_future_skew: Length | None = None
    update_key: ColumnsClause | None = None
    late_into: Name | None = None
    quarantine_into: Name | None = None
    late_by_window: Name | None = None
    zone: Name | None = None
    connector: ConnectorClause | None = None
    replay: ReplayClause | None = None
    options: Options = field(default_factory=dict)
    replaces: bool = False


@dataclass(frozen=True)
class TableStatement:
    """`CREATE TABLE`: reference data that is read as a whole, and again at every `refresh`."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: ColumnsClause | None = None
    zone: Name | None = None
    connector: ConnectorClause | None = None
    refresh: Length | None = None
    replaces: bool = False


@dataclass(frozen=True)
class SinkStatement:
    """`CREATE SINK`."""

    name: Name
    connector: ConnectorClause
    replaces: bool = False


@dataclass(frozen=True)
class ViewStatement:
    """`CREATE VIEW`: a query under a name, which others read like a stream."""

    name: Name
    body: Body
    replaces: bool = False


@dataclass(frozen=True)
class TypeName:
    """A type with the name of a parameter, if one is written."""

    type: Name
    name: Name | None = None


@dataclass(frozen=True)
class Assignment:
    """`variable = expression` of an aggregate's blocks."""

    variable: Name
    expression: exp.Expr


@dataclass(frozen=True)
class Blocks:
    """An aggregate written in SQL: INITIALIZE, ITERATE, MERGE and TERMINATE."""

    initialize: tuple[Assignment, ...]
    iterate: tuple[Assignment, ...]
    merge: tuple[Assignment, ...] | None
    terminate: exp.Expr


@dataclass(frozen=True)
class AggregateStatement:
    """`CREATE AGGREGATE`; what it computes is a place in Python or blocks of SQL."""

    name: Name
    parameters: tuple[TypeName, ...]
    returns: Name
    computes: Name | Blocks
    replaces: bool = False


@dataclass(frozen=True)
class FunctionStatement:
    """`CREATE FUNCTION`; what it computes is a place in Python."""

    name: Name
    parameters: tuple[TypeName, ...]
    returns: Name
    computes: Name
    replaces: bool = False
