"""One step of a pipeline of joins: its keys, how long each side is kept, and what is left to check.

Rules:
- A joined row has the latest of the times of its parts, or the one that the query asks for. How far a new row may be
  after it is computed per row: the earliest end that one of its parts allows.
- Conditions that the keys and the reaches of a join do not guarantee are checked by its residual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.plan.joins.time_limits import TimeLimit, TimeLimits
from millrace.plan.nodes.conditions import all_of, later, substituted
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project


@dataclass(frozen=True)
class JoinCondition:
    """A condition of a join, over the columns of the inputs `parts`.

    It is the same as `limits` and `untils` if it is `exact`; each of these says for two inputs until when rows of the
    second match one of the first. The keys of a join guarantee one that is `keyed`. A window is a condition without an
    expression if some input has no column with its time.
    """

    expression: Expression | None
    parts: frozenset[int]
    limits: tuple[TimeLimit, ...] = ()
    untils: tuple[tuple[int, int, Expression], ...] = ()
    exact: bool = False
    keyed: bool = False


@dataclass(frozen=True)
class JoinInputs:
    """What is joined: inputs with distinct columns, and all that is known about which rows match.

    `times` are the inputs' own times as expressions, where a column has them; `keys` are columns that must be equal, by
    input. `nullable` inputs may be absent in a row. If they are `unbounded`, the latest rows match, without limit of
    time.
    """

    nodes: tuple[Node, ...]
    times: tuple[Expression | None, ...]
    keys: tuple[Mapping[int, str], ...] = ()
    conditions: tuple[JoinCondition, ...] = ()
    nullable: frozenset[int] = frozenset()
    unbounded: bool = False

    @cached_property
    def limits(self) -> TimeLimits:
        """All limits, and those that follow from them."""
        return TimeLimits(len(self.nodes), [limit for each in self.conditions for limit in each.limits])

    def untils(self, part: int, other: int) -> list[Expression]:
        """What is computed from rows of `part` to say until when rows of `other` match them."""
        found = [until for each in self.conditions for until in each.untils]
        return [expression for first, second, expression in found if (first, second) == (part, other)]


@dataclass(frozen=True)
class JoinGroup:
    """Inputs that are joined already, and which of their times the rows have.

    `beside` are inputs whose columns it has, but whose times do not count for its time.
    """

    node: Node
    parts: tuple[int, ...]
    time: JoinTime = "max"
    beside: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        return self.beside | frozenset(self.parts)


class Timeless(Exception):
    """A join has to compare the times of single rows of an input that has no column with its time."""

    def __init__(self, part: int) -> None:
        super().__init__(part)
        self.part = part


class Unbounded(Exception):
    """Rows of an input would be kept without limit: nothing says how long rows of `other` may match them."""

    def __init__(self, part: int, other: int) -> None:
        super().__init__(part, other)
        self.part = part
        self.other = other


def join_step(
    inputs: JoinInputs,
    group: JoinGroup,
    part: int,
    time: JoinTime = "max",
    *,
    outer: tuple[bool, bool] = (False, False),
    also: Sequence[Expression] = (),
) -> JoinGroup:
    """What is joined so far with one more input.

    It checks the conditions over these inputs that were not checked over earlier inputs alone, and those given `also`.
    """
    here = group.all | {part}
    conditions = [each for each in inputs.conditions if each.parts <= here and not each.parts <= group.all]
    left, right = _GroupReach(inputs, group, part), _InputReach(inputs, group, part)
    keys = key_pairs(inputs.keys, group, part)
    node, left_until = _with_until(group.node, left.untils)
    new, right_until = _with_until(inputs.nodes[part], right.untils)
    sides = (
        Side(tuple(each for each, _ in keys), left.ahead, left_until, outer[0]),
        Side(tuple(each for _, each in keys), right.ahead, right_until, outer[1]),
    )
    rest = [each for each in conditions if not _is_sure(each, part, left, right)]
    own, of_rows = _time(group, part, time)
    residual = all_of([*expressions_of(inputs, rest), *also])
    return JoinGroup(Join((node, new), sides, residual, own), (*group.parts, part), of_rows, group.beside)


def key_pairs(keys: Sequence[Mapping[int, str]], group: JoinGroup, part: int) -> list[tuple[str, str]]:
    """The pairs of columns by which an input is joined to a group."""
    return [
        (next(key[each] for each in sorted(group.all) if each in key), key[part])
        for key in keys
        if part in key and any(each in key for each in group.all)
    ]


def expressions_of(inputs: JoinInputs, conditions: Sequence[JoinCondition]) -> list[Expression]:
    """The expressions of conditions that a join has to check."""
    for each in conditions:
        if each.expression is None:
            raise Timeless(next(part for part in sorted(each.parts) if inputs.times[part] is None))
    return [each.expression for each in conditions if each.expression is not None]


def _time(group: JoinGroup, part: int, time: JoinTime) -> tuple[JoinTime, JoinTime]:
    """The time of a join of two, as a place among its inputs, and as a place among all inputs."""
    if isinstance(time, str):
        return time, time
    if time == part:
        return 1, part
    return (0, time) if time in group.parts else ("max", "max")


class _GroupReach:
    """How long rows of a group are kept for rows of a new input; `sure` are the parts whose limits that guarantees."""

    def __init__(self, inputs: JoinInputs, group: JoinGroup, part: int) -> None:
        reaches = {each: inputs.limits.of(each, part) for each in group.parts}
        self.ahead = _reach(group, reaches, "max")
        self.sure: set[int] = set(group.parts) if len(group.parts) == 1 else set()
        self.untils: list[Expression] = []
        self.own = [until for each in group.parts for until in inputs.untils(each, part)]
        for each, reach in reaches.items() if len(group.parts) > 1 else ():
            time = inputs.times[each]
            if reach is not None and time is not None:
                self.sure |= {each} - inputs.nullable
                if not _follows(inputs, group, each, part):
                    self.untils.append(later(time, reach))
        # A null end says that nothing matches; the least of several ends would ignore it.
        self.exact = len(self.own) == 1 and not self.untils
        self.untils += self.own
        if self.ahead is None and not self.untils and not inputs.unbounded:
            raise Unbounded(group.parts[0], part)


def _follows(inputs: JoinInputs, group: JoinGroup, each: int, part: int) -> bool:
    """True if how far a row may be after one part of a group follows from how far it may be after another."""
    limits = inputs.limits
    for other in group.parts:
        there, on = limits.of(each, other), limits.of(other, part)
        usable = other != each and other not in inputs.nullable and inputs.times[other] is not None
        if not usable or there is None or on is None or there + on != limits.of(each, part):
            continue
        # Of two that follow from each other the first is kept.
        if limits.of(other, each) != -there or other < each:
            return True
    return False


def _reach(group: JoinGroup, reaches: Mapping[int, int | None], tightest: Literal["max", "min"]) -> int | None:
    """How far a row of a group and one of an input may be apart, given how far each part of the group may be from it.

    If the group's rows have the `tightest` of their parts' times, the shortest reach holds; else only the longest.
    """
    known = [reach for reach in reaches.values() if reach is not None]
    if isinstance(group.time, int):
        return reaches[group.time]
    if group.time == tightest:
        return min(known, default=None)
    return max(known) if len(known) == len(reaches) else None


class _InputReach:
    """How long rows of a new input are kept for rows of a group; `sure` are the parts whose limits that guarantees."""

    def __init__(self, inputs: JoinInputs, group: JoinGroup, part: int) -> None:
        limits = inputs.limits
        self.ahead = _reach(group, {each: limits.of(part, each) for each in group.parts}, "min")
        self.sure = {each for each in group.parts if group.time in ("max", each)}
        self.untils: list[Expression] = []
        self.own = [(each, until) for each in group.parts for until in inputs.untils(part, each)]
        self.exact = len(self.own) == 1 and len(group.parts) == 1
        for each, until in self.own:
            spread = _reach(group, {other: limits.of(each, other) for other in group.parts}, "min")
            if spread is not None:
                self.untils.append(later(until, spread))
        if self.ahead is None and not self.untils and not inputs.unbounded:
            raise Unbounded(part, group.parts[0])


def _is_sure(condition: JoinCondition, part: int, left: _GroupReach, right: _InputReach) -> bool:
    """True if the keys and reaches of a join guarantee a condition."""
    if condition.keyed or not condition.exact:
        return condition.keyed
    for limit in condition.limits:
        reached = right.ahead is not None and right.ahead <= limit.most and limit.later in right.sure
        if not (reached if limit.first == part else limit.first in left.sure):
            return False
    sure = [*(left.own if left.exact else ()), *(until for _, until in right.own if right.exact)]
    return all(until in sure for _, _, until in condition.untils)


def _with_until(node: Node, untils: Sequence[Expression]) -> tuple[Node, str | None]:
    """A node with a column that says until when its rows match, in one projection where there is one already."""
    if not untils:
        return node, None
    least = untils[0] if len(untils) == 1 else Call("least", tuple(dict.fromkeys(untils)))
    name = f"{node.schema.names[0].partition('.')[0]}.__until"
    while name in node.schema.names:
        name += "_"
    if isinstance(node, Project):
        return Project(node.input, (*node.columns, (name, substituted(least, dict(node.columns))))), name
    return Project(node, (*((each, Column(each)) for each in node.schema.names), (name, least))), name
