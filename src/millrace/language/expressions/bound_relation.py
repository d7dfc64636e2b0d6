"""The rows that a part of a query gives: their node and columns, and which columns hold their own time.

Rows of a join have the latest time of their parts. What stands above a join may go by another time; then the join is
exchanged for its variant, under all filters and projections that stand between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Column, Expression, Literal
from millrace.kernel.joins.sides import JoinTime
from millrace.language.expressions.scopes import Scope
from millrace.plan.nodes.aggregate_nodes import Unit
from millrace.plan.nodes.conditions import all_of, conjuncts
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter, Project, Rank

_EXTREMES: Mapping[str, JoinTime] = {"greatest": "max", "least": "min"}


@dataclass(frozen=True)
class JoinedTimes:
    """The times that rows of a join may have: where it stands, its variants by time, the columns that hold times.

    A column is of an input, and so much later than its time. `parts` are all inputs with a time, `free` those whose
    rows are always there. `joint` is the variant that promises pairs of times.
    """

    join: Node
    variants: Mapping[JoinTime, Node]
    columns: Mapping[str, tuple[int, int]]
    parts: frozenset[int]
    free: frozenset[int]
    joint: Node | None = None

    def choice(self, expression: Expression) -> JoinTime | None:
        """The time that an expression holds, if rows can have it: exactly, or of a column with what it adds."""
        match expression:
            case Column(name) if name in self.columns:
                time: JoinTime | None = self.columns[name][0]
                return time if time in self.free and time in self.variants else None
            case Call("greatest" | "least" as function, arguments):
                found = [self.columns.get(each.name) if isinstance(each, Column) else None for each in arguments]
                exact = {each[0] for each in found if each is not None and each[1] == 0}
                time = _EXTREMES[function]
                covers = None not in found and exact == self.parts and len(found) == len(self.parts)
                return time if covers and time in self.variants else None
        return None

    def names(self) -> list[str]:
        """The columns that can be the time of the rows, sorted."""
        return sorted(name for name in self.columns if self.choice(Column(name)) is not None)

    def choices_in(self, expressions: Sequence[Expression]) -> Iterator[tuple[JoinTime, Expression]]:
        """The times that expressions hold somewhere inside, each once with what holds it."""
        seen: set[JoinTime] = set()
        for part in (part for each in expressions for part in each.parts()):
            time = self.choice(part)
            if time is not None and time not in seen:
                seen.add(time)
                yield time, part

    def through(self, columns: Sequence[tuple[str, Expression]]) -> JoinedTimes:
        """The same above a projection."""
        kept = {
            name: self.columns[each.name]
            for name, each in columns
            if isinstance(each, Column) and each.name in self.columns
        }
        return replace(self, columns=kept)


@dataclass(frozen=True)
class BoundRelation:
    """Rows that a query reads or gives.

    `times` are the columns that hold the rows' own time, each with how much it adds to it; `hidden_times` were so
    before the query dropped them; `instants` are columns of which each value stands for one time.
    `untimed` says for a column of a union which input does not hold its time there. With unit rows the own time is a
    sequence number. `rank` is the column that holds the rank of the rows.

    Rows of a join have the time of the latest of their parts; `choices` are the others that they may have instead,
    `own` are expressions that hold the one they have, and `below` is what a select list over a join reads.
    `laterals` are further names that may stand before columns, those of exploded arrays, with these columns.
    """

    node: Node
    schema: pa.Schema
    label: str
    times: Mapping[str, int] = field(default_factory=dict)
    hidden_times: frozenset[str] = frozenset()
    untimed: Mapping[str, str] = field(default_factory=dict)
    instants: frozenset[str] = frozenset()
    unit: Unit = "time"
    rank: str | None = None
    qualifier: str | None = None
    joined: Scope | None = None
    choices: JoinedTimes | None = None
    own: tuple[Expression, ...] = ()
    below: BoundRelation | None = None
    laterals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def scope(self) -> Scope:
        return self.joined or Scope(self.schema, self.qualifier, laterals=self.laterals, unselected=self.hidden_times)

    def where(self, predicate: Expression) -> BoundRelation:
        """The rows where a condition holds."""
        return replace(self, node=filtered(self.node, predicate, self.rank))

    def renamed(self, names: Sequence[str]) -> BoundRelation:
        """The rows with other names for all columns."""
        new = dict(zip(self.schema.names, names, strict=True))
        columns = tuple((name, Column(old)) for old, name in new.items())
        return replace(
            self,
            node=self.node if list(names) == self.schema.names else Project(self.node, columns),
            schema=pa.schema([each.with_name(new[each.name]) for each in self.schema]),
            times={new[name]: more for name, more in self.times.items()},
            untimed={new[name]: label for name, label in self.untimed.items()},
            instants=frozenset(new[name] for name in self.instants),
            rank=new.get(self.rank or ""),
            choices=self.choices and self.choices.through(columns),
            below=None,
        )

    # Rows of a join by another time

    def by_time(self, time: JoinTime, held_by: Expression | None = None) -> BoundRelation:
        """The rows with another time as their own, which an expression may hold."""
        times = self.choices
        assert times is not None
        columns = {name: more for name, (part, more) in times.columns.items() if part == time}
        own = () if held_by is None or isinstance(held_by, Column) else (held_by,)
        node = _exchanged(self.node, times.join, times.variants[time])
        return replace(self, node=node, times=columns, own=own, choices=None)

    def by_pair(self) -> BoundRelation:
        """The rows of a join that promises pairs of times."""
        times = self.choices
        assert times is not None and times.joint is not None
        return replace(self, node=_exchanged(self.node, times.join, times.joint), choices=None)

    def by_times_in(self, expressions: Sequence[Expression]) -> Iterator[BoundRelation]:
        """The rows with each other time that expressions hold as their own."""
        if self.choices is not None:
            yield from (self.by_time(time, held_by) for time, held_by in self.choices.choices_in(expressions))


def _exchanged(node: Node, old: Node, new: Node) -> Node:
    """A tree with one part exchanged."""
    if node is old or node == old:
        return new
    return node.map_children(lambda each: _exchanged(each, old, new))


# Conditions on a rank


def filtered(node: Node, predicate: Expression, rank: str | None) -> Node:
    """The rows where a condition holds; what it says of the rank becomes the rank's limit."""
    if rank is None:
        return Filter(node, predicate)
    rest: list[Expression] = []
    for part in conjuncts(predicate):
        limit = _limit(part, rank)
        if limit is not None:
            node = _limited(node, limit)
        if limit is None or (isinstance(part, Call) and part.function == "=" and limit > 1):
            rest.append(part)
    left = all_of(rest)
    return node if left is None else Filter(node, left)


def _limit(part: Expression, rank: str) -> int | None:
    """The greatest rank that a condition lets through, if that is all it says."""
    match part:
        case Call("<=" | "=", (Column(name), Literal(value=int(value)))) | Call(
            ">=" | "=", (Literal(value=int(value)), Column(name))
        ):
            limit = value
        case Call("<", (Column(name), Literal(value=int(value)))) | Call(
            ">", (Literal(value=int(value)), Column(name))
        ):
            limit = value - 1
        case _:
            return None
    return limit if name == rank and limit >= 1 else None


def _limited(node: Node, limit: int) -> Node:
    if isinstance(node, Rank):
        return replace(node, limit=limit if node.limit is None else min(limit, node.limit))
    assert isinstance(node, Filter | Project)
    return replace(node, input=_limited(node.input, limit))
