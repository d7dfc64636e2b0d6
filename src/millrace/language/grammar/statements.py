"""What a script says, statement by statement, before any name in it is looked up.

Expressions stay sqlglot's trees here; the binder turns them into the kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from millrace.errors import Place


@dataclass(frozen=True)
class Placed:
    """A part of a statement, and where it stands: None for a statement that was built without a text."""

    place: Place | None = field(default=None, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class Name(Placed):
    """A word."""

    text: str


@dataclass(frozen=True)
class Length(Placed):
    """An interval in microseconds."""

    micros: int


@dataclass(frozen=True)
class NumberOfRows(Placed):
    """A number of rows, or a length where rows progress by a number: it has no unit."""

    number: int


@dataclass(frozen=True)
class Setting:
    """`key value` of OPTIONS or WITH: the key in lower case, the value as text."""

    key: Name
    value: Name


Options = Mapping[str, Setting]
"""Settings by key."""


@dataclass(frozen=True)
class ColumnDefinition:
    """`name TYPE` of a column list."""

    name: Name
    type: Name


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
    """`PARTITIONED BY (...) [VALUES (...)] [GRACE interval]`."""

    values: tuple[exp.Expr, ...] = ()
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
    late_by_window: Name | None = None
    connector: ConnectorClause | None = None
    replay: ReplayClause | None = None
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class SinkStatement:
    """`CREATE SINK`."""

    name: Name
    connector: ConnectorClause


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


@dataclass(frozen=True)
class FunctionStatement:
    """`CREATE FUNCTION`; what it computes is a place in Python."""

    name: Name
    parameters: tuple[TypeName, ...]
    returns: Name
    computes: Name


WindowKind = Literal["range", "rows", "session", "unlimited"]


@dataclass(frozen=True)
class WindowClause(Placed):
    """`[RANGE i SLIDE j WA col]`, `[ROWS n SLIDE m PARTITION BY k]`, or a window written in another system's way.

    `qualifier` is the name before the attribute: `WA m1.ts`; `bare` says that it is written `WINDOW i`, `borrowed` that
    it means what it means in the system that writes it so.
    """

    kind: WindowKind
    size: Length | NumberOfRows | None = None
    slide: Length | NumberOfRows | None = None
    attribute: Name | None = None
    partition: tuple[Name, ...] = ()
    qualifier: Name | None = None
    bare: bool = False
    borrowed: bool = False


@dataclass(frozen=True)
class FromItem(Placed):
    """One stream or subquery, or a union of them, with the window and the name that hold for the whole.

    `truth` is the stream of a union that wins where two have an update of one key at one time.
    """

    sources: tuple[Name | Body, ...]
    window: WindowClause | None = None
    alias: Name | None = None
    truth: Name | None = None


JoinKind = Literal["inner", "left", "right", "full", "asof", "seq"]


@dataclass(frozen=True)
class JoinClause(Placed):
    """One more input: after a comma or CROSS JOIN (inner, without a condition), after JOIN, ASOF JOIN or SEQ.

    `outer` says of an as-of join that rows without a match are kept; `match` is its MATCH_CONDITION. A `natural` join
    is USING all columns that both sides have.
    """

    kind: JoinKind
    item: FromItem
    on: exp.Expr | None = None
    using: tuple[Name, ...] = ()
    match: exp.Expr | None = None
    outer: bool = False
    natural: bool = False


@dataclass(frozen=True)
class SequenceClause(Placed):
    """`[ON condition] MODE RECENT | CHRONICLE [OUTER] [WITHIN i]` after streams under SEQ."""

    mode: Literal["recent", "chronicle"]
    on: exp.Expr | None = None
    outer: bool = False
    within: Length | NumberOfRows | None = None


GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer")
"""The functions that give several rows for one."""


@dataclass(frozen=True)
class ExplodeClause(Placed):
    """`LATERAL VIEW [OUTER] explode(a) t AS c` or `UNNEST(a) WITH ORDINALITY AS t (c, n)`: a row per element.

    `columns` are the names of the columns of an element, if they are written; `table` may stand before them.
    """

    generator: str
    argument: exp.Expr
    columns: tuple[Name, ...] = ()
    table: Name | None = None
    optional: bool = False
    ordinality: bool = False

    @property
    def outer(self) -> bool:
        """True if a row without elements is given once, with nulls."""
        return self.optional or self.generator.endswith("_outer")

    @property
    def position(self) -> bool:
        """True if the place of an element is its first column."""
        return self.generator.startswith("posexplode")

    @property
    def fields(self) -> bool:
        """True if the fields of a struct are columns of their own."""
        return self.generator.startswith("inline") or self.generator == "unnest"


@dataclass(frozen=True)
class SelectItem(Placed):
    """An expression of a select list with its name, if one is written."""

    expression: exp.Expr
    alias: Name | None = None


@dataclass(frozen=True)
class Select(Placed):
    """`SELECT [DISTINCT] ... FROM ... WHERE ... WINDOW i GROUP BY ... HAVING ... QUALIFY ...`.

    `window` holds for all inputs of a join, and for an aggregate over it; `distinct` is the word DISTINCT; `by_all` is
    GROUP BY ALL.
    """

    items: tuple[SelectItem, ...]
    source: FromItem
    where: exp.Expr | None = None
    groups: tuple[exp.Expr, ...] = ()
    having: exp.Expr | None = None
    windows: tuple[WindowClause, ...] = ()
    distinct: Placed | None = None
    qualify: exp.Expr | None = None
    joins: tuple[JoinClause, ...] = ()
    sequence: SequenceClause | None = None
    window: WindowClause | None = None
    by_all: bool = False
    explodes: tuple[ExplodeClause, ...] = ()


@dataclass(frozen=True)
class OrderItem:
    """One expression of `ORDER BY`."""

    expression: exp.Expr
    descending: bool = False


@dataclass(frozen=True)
class Body(Placed):
    """Selects under UNION, and the order of the whole."""

    selects: tuple[Select | Body, ...]
    order: tuple[OrderItem, ...] = ()


@dataclass(frozen=True)
class AccessClause(Placed):
    """`EVERY i [WHEN condition]` of ACCESS: how often the answers of some keys are read."""

    every: Length
    when: exp.Expr | None = None


@dataclass(frozen=True)
class QueryStatement:
    """`CREATE QUERY`, `ADD QUERY`, or a bare select when it has no name."""

    body: Body
    name: Name | None = None
    into: Name | None = None
    options: Options = field(default_factory=dict)
    access: tuple[AccessClause, ...] = ()


@dataclass(frozen=True)
class DropStatement:
    """`DROP QUERY`."""

    name: Name


@dataclass(frozen=True)
class AlterStatement:
    """`ALTER QUERY name SET (key = value, ...)`."""

    name: Name
    options: Options


@dataclass(frozen=True)
class ShowStatement(Placed):
    """`SHOW QUERIES` or `SHOW WAITS`."""

    waits: bool = False


Declared = StreamStatement | SinkStatement | AggregateStatement | FunctionStatement
Asked = QueryStatement | DropStatement | AlterStatement | ShowStatement
Statement = Declared | Asked
