"""Queries: FROM with its joins and windows, selects, UNION and ORDER BY."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from millrace.language.grammar.statements.placed import Length, MonthLength, Name, NumberOfRows, Placed

WindowKind = Literal["range", "rows", "session", "unlimited"]


@dataclass(frozen=True)
class WindowClause(Placed):
    """`[RANGE i SLIDE j WA col]`, `[ROWS n SLIDE m PARTITION BY k]`, or a window written in another system's way.

    `qualifier` is the name before the attribute: `WA m1.ts`; `bare` says that it is written `WINDOW i`, `borrowed` that
    it means what it means in the system that writes it so. `offset` moves the starts of windows, `zone` says by whose
    clock they are.
    """

    kind: WindowKind
    size: Length | MonthLength | NumberOfRows | None = None
    slide: Length | MonthLength | NumberOfRows | None = None
    attribute: Name | None = None
    partition: tuple[Name, ...] = ()
    qualifier: Name | None = None
    bare: bool = False
    borrowed: bool = False
    offset: Length | NumberOfRows | None = None
    zone: Name | None = None


@dataclass(frozen=True)
class FromItem(Placed):
    """One stream or subquery, or a union of them, with the window and the name that hold for the whole.

    `truth` is the stream of a union that wins where two have an update of one key at one time. `as_of` is the time of
    FOR SYSTEM_TIME AS OF: the input of a join as it was then.
    """

    sources: tuple[Name | Body, ...]
    window: WindowClause | None = None
    alias: Name | None = None
    truth: Name | None = None
    as_of: exp.Expr | None = None
    common: tuple[str, ...] = field(default=(), compare=False)
    """The names of the common tables that it may mean."""


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
JSON_TUPLE = "json_tuple"
"""The function that gives several columns for one."""


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
    """An expression of a select list with its name, if one is written; `names` are several: `AS (a, b)`."""

    expression: exp.Expr
    alias: Name | None = None
    names: tuple[Name, ...] = ()


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
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Body(Placed):
    """Selects under UNION, the order of the whole, and names for its columns where others are given."""

    selects: tuple[Select | Body, ...]
    order: tuple[OrderItem, ...] = ()
    columns: tuple[Name, ...] = ()
