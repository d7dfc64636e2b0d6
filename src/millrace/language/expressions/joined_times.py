"""The times that rows of a join may have: the latest or earliest of their parts', or that of one input.

A join is bound with the latest. What stands above it may say that it goes by another; then the join is exchanged for
its variant, under all filters and projections that stand between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.joins.sides import JoinTime
from millrace.language.expressions.scopes import Relation
from millrace.plan.nodes.node import Node

_EXTREMES: Mapping[str, JoinTime] = {"greatest": "max", "least": "min"}


@dataclass(frozen=True)
class JoinedTimes:
    """Where a join stands in a tree, its variants by the time that they give, and the columns that hold times.

    A column is of an input, and so much later than its time. `parts` are all inputs with a time, `free` those whose
    rows are always there.
    """

    join: Node
    variants: Mapping[JoinTime, Node]
    columns: Mapping[str, tuple[int, int]]
    parts: frozenset[int]
    free: frozenset[int]
    joint: Node | None = None

    def choice(self, expression: Expression) -> JoinTime | None:
        """The time that an expression holds, if rows may have it: a column that may add to it, or exactly."""
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

    def through(self, columns: Sequence[tuple[str, Expression]]) -> JoinedTimes:
        """The same above a projection."""
        kept = {
            name: self.columns[each.name]
            for name, each in columns
            if isinstance(each, Column) and each.name in self.columns
        }
        return replace(self, columns=kept)


def choices_in(relation: Relation, expressions: Sequence[Expression]) -> list[tuple[JoinTime, Expression]]:
    """The times that expressions hold somewhere inside and that the rows do not have yet, each once."""
    if relation.choices is None:
        return []
    found: dict[JoinTime, Expression] = {}
    for each in expressions:
        for part in _parts(each):
            time = relation.choices.choice(part)
            if time is not None:
                found.setdefault(time, part)
    return list(found.items())


def _parts(expression: Expression) -> list[Expression]:
    """An expression and all that it is made of."""
    return [expression, *(part for each in expression.children() for part in _parts(each))]


def by_time(relation: Relation, time: JoinTime, held_by: Expression | None = None) -> Relation:
    """The rows of a join with another time as their own."""
    times = relation.choices
    assert times is not None
    node = exchanged(relation.node, times.join, times.variants[time])
    columns = {name: more for name, (part, more) in times.columns.items() if part == time}
    own = () if held_by is None or isinstance(held_by, Column) else (held_by,)
    return replace(relation, node=node, times=columns, own=own, choices=None)


def by_pair(relation: Relation) -> Relation:
    """The rows of a join that promises pairs of times."""
    times = relation.choices
    assert times is not None and times.joint is not None
    return replace(relation, node=exchanged(relation.node, times.join, times.joint), choices=None)


def exchanged(node: Node, old: Node, new: Node) -> Node:
    """A tree with one part exchanged."""
    if node is old or node == old:
        return new
    return node.map_children(lambda each: exchanged(each, old, new))
