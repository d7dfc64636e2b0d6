"""What is asked of a network: queries to add, to alter and to drop, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from millrace.language.grammar.statements.placed import Length, Name, NumberOfRows, Options, Placed
from millrace.language.grammar.statements.selects import Body


@dataclass(frozen=True)
class AccessClause(Placed):
    """`EVERY i [WHEN condition]` of ACCESS: how often the answers of some keys are read."""

    every: Length
    when: exp.Expr | None = None


@dataclass(frozen=True)
class QueryStatement:
    """`CREATE QUERY`, `ADD QUERY`, `INSERT INTO` when it has a sink and no name, or a bare select when it has neither.

    A bare select may show `limit` rows and end; `replaces` is OR REPLACE.
    """

    body: Body
    name: Name | None = None
    into: Name | None = None
    options: Options = field(default_factory=dict)
    access: tuple[AccessClause, ...] = ()
    limit: NumberOfRows | None = None
    replaces: bool = False


@dataclass(frozen=True)
class DropStatement:
    """`DROP QUERY`."""

    name: Name


@dataclass(frozen=True)
class RefreshStatement:
    """`REFRESH TABLE`."""

    name: Name


@dataclass(frozen=True)
class AlterStatement:
    """`ALTER QUERY name SET (key = value, ...)`."""

    name: Name
    options: Options


@dataclass(frozen=True)
class ShowStatement(Placed):
    """`SHOW STREAMS`, `SHOW QUERIES` and so on: `what` is the word in lower case."""

    what: str


@dataclass(frozen=True)
class DescribeStatement:
    """`DESCRIBE name`."""

    name: Name


@dataclass(frozen=True)
class ExplainStatement(Placed):
    """`EXPLAIN [(FORMAT json)] SELECT ...`."""

    query: QueryStatement
    format: str = "text"


@dataclass(frozen=True)
class SetStatement:
    """`SET name = value`, which is in force before a text is read."""

    name: Name
