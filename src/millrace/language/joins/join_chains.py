"""Joins of several kinds, made from left to right as they are written.

Rules:
- ON of an outer join says what matches. A condition on the side whose rows are kept anyway, or on earlier inputs alone,
  is a residual; one on the other side goes below.
- WHERE stands above. A condition of it goes down to the join where its inputs are together under two conditions: later
  joins keep all rows of that join (inner, left and as-of joins do), and that join is inner or keeps the rows that the
  condition is about.
- A window of an input that may be absent holds for the join that brings it, not for later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.sides import JoinTime
from millrace.language.joins.join_conditions import Conjunct, Equality, Keys, keys_of, sort_conditions
from millrace.language.joins.join_inputs import times_of
from millrace.language.joins.joined_rows import BoundJoin, check_limits, joined_relation, variants_of, windows_of
from millrace.language.joins.sequences import AsOf, as_of
from millrace.language.joins.written_join import WrittenJoin
from millrace.plan.joins.join_steps import JoinCondition, JoinGroup, JoinInputs, join_step, key_pairs
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.join_nodes import Following
from millrace.plan.nodes.node import Node

_KEPT = {"left": (True, False), "right": (False, True), "full": (True, True)}


@dataclass
class _Step:
    """One join of the chain: its conditions over both sides, its keys, and what else must hold of a pair.

    `absent` are the inputs that may be absent from the rows before it.
    """

    kind: str
    conditions: list[JoinCondition] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)
    also: list[Expression] = field(default_factory=list)
    absent: frozenset[int] = frozenset()
    as_of: AsOf | None = None


class _Chain:
    """A chain of joins with its conditions laid out; `below` are conditions on single inputs."""

    def __init__(self, given: WrittenJoin, unbounded: bool) -> None:
        self.given = given
        self.unbounded = unbounded
        self.below: list[list[Expression]] = [[] for _ in given.inputs]
        self.above: list[Expression] = []
        self.timed: list[int] = [0]
        self.nullable: frozenset[int] = frozenset()
        self.steps: list[_Step] = []
        for position, clause in enumerate(given.clauses, 1):
            self._add(position, clause.kind)
        for each in given.where:
            self._place(each)

    def _add(self, position: int, kind: str) -> None:
        found = _Step(kind, absent=self.nullable)
        self.steps.append(found)
        if kind == "asof":
            self._add_as_of(position, found)
            return
        self._sort(position, self.given.on[position - 1])
        before = frozenset(range(position))
        kept = _KEPT.get(kind, (False, False))
        self.nullable |= (before if kept[1] else frozenset()) | (frozenset((position,)) if kept[0] else frozenset())
        self.timed.append(position)

    def _add_as_of(self, position: int, found: _Step) -> None:
        """An as-of join: from here on rows have the time that it compares."""
        free = [each for each in self.timed if each not in self.nullable]
        found.as_of = as_of(self.given, position, free)
        found.equalities = list(found.as_of.equalities)
        self.timed = [found.as_of.part]

    def _sort(self, position: int, conjuncts: Sequence[Conjunct]) -> None:
        """The conditions of one join."""
        found = self.steps[position - 1]
        crossing = [each for each in conjuncts if position in each.parts and len(each.parts) > 1]
        inputs = self.given.inputs[: position + 1]
        times = {name: each for name, each in times_of(inputs).items() if each[0] in self.timed or each[0] == position}
        ordered = sort_conditions(crossing, inputs, times)
        found.conditions += ordered.conditions()
        found.equalities += ordered.keys()
        for each in conjuncts:
            if each in crossing:
                continue
            if each.parts == {position} and found.kind in ("inner", "left"):
                self.below[position].append(each.expression)
            else:
                found.also.append(each.expression)

    def _place(self, condition: Conjunct) -> None:
        """Assign a condition of WHERE to an input, to a join, or to the rows above."""
        position = max(condition.parts, default=0)
        kinds = [each.kind for each in self.steps]
        # Joins after the one that brings the last of its inputs, or all of them where that is the first.
        after = kinds[position:]
        own = kinds[position - 1] if position else "inner"
        single = len(condition.parts) == 1
        if not condition.parts or any(kind in ("right", "full") for kind in after):
            self.above.append(condition.expression)
        elif single and (own == "inner" or own == "right"):
            self.below[position].append(condition.expression)
        elif own == "inner":
            self._sort(position, [condition])
        else:
            self.above.append(condition.expression)

    # The nodes

    def keys(self) -> tuple[list[Keys], list[Node]]:
        """The keys of each join, and the inputs with all that they bring."""
        inputs = self.given.inputs
        found: list[Keys] = []
        number = 0
        for each in self.steps:
            found.append(keys_of(each.equalities, inputs, number))
            number += len(found[-1].columns)
        for keys, each in zip(found, self.steps, strict=True):
            each.also += [expression for _, expression in keys.single]
        computed = [
            {name: e for keys in found for name, e in keys.computed[part].items()} for part in range(len(inputs))
        ]
        return found, [one.node(self.below[part], computed[part]) for part, one in enumerate(inputs)]

    def build(self, time: JoinTime, keys: Sequence[Keys], nodes: Sequence[Node]) -> Node:
        """All joins, with a time for their rows."""
        group = JoinGroup(nodes[0], (0,), 0)
        for position, each in enumerate(self.steps, 1):
            if each.as_of is not None:
                group = self._as_of(group, position, each.as_of, keys[position - 1], nodes[position])
                continue
            inputs = self.inputs(position, keys, nodes)
            compared = next((one.as_of.part for one in self.steps[position:] if one.as_of is not None), time)
            outer = _KEPT.get(each.kind, (False, False))
            group = join_step(inputs, group, position, compared, outer=outer, also=each.also)
        return group.node

    def _as_of(self, group: JoinGroup, position: int, found: AsOf, keys: Keys, node: Node) -> JoinGroup:
        pairs = key_pairs(keys.columns, group, position)
        columns = (tuple(old for old, _ in pairs), tuple(new for _, new in pairs))
        outer = self.given.clauses[position - 1].outer
        following = Following((group.node, node), columns, "recent", found.within, found.strict, outer=outer)
        return JoinGroup(following, (found.part,), found.part, group.all - {found.part} | {position})

    def inputs(self, position: int, keys: Sequence[Keys], nodes: Sequence[Node]) -> JoinInputs:
        """What is known when the join at a position is made."""
        conditions = [condition for each in self.steps[:position] for condition in each.conditions]
        here = self.given.inputs[: position + 1]
        absent = self.steps[position - 1].absent
        beside = self._beside(position)
        windows = [each for each in windows_of(here, absent) if not each.parts & beside]
        times = tuple(each.time for each in here)
        return JoinInputs(
            tuple(nodes[: position + 1]),
            times,
            keys[position - 1].columns,
            (*conditions, *windows),
            absent,
            self.unbounded,
        )

    def _beside(self, position: int) -> frozenset[int]:
        """The inputs whose times have no part in that of the rows, when the join at a position is made."""
        found: frozenset[int] = frozenset()
        for number, each in enumerate(self.steps[:position], 1):
            if each.as_of is not None:
                found = frozenset(range(number + 1)) - {each.as_of.part}
        return found


def bind_chain(given: WrittenJoin, *, unbounded: bool = False) -> BoundJoin:
    """Joins of several kinds; if they are `unbounded`, rows may match however far apart their times are."""
    window = given.inputs[0].window
    if window is not None and all(each.kind == "asof" for each in given.clauses):
        raise QueryError(
            "an as-of join cannot have a window", hint="It answers every row once: leave the window out.", place=window
        )
    chain = _Chain(given, unbounded)
    keys, nodes = chain.keys()
    limits = chain.inputs(len(given.clauses), keys, nodes).limits
    check_limits(limits, given)
    free = [each for each in chain.timed if each not in chain.nullable]
    times: list[JoinTime] = ["max", "min", *free]
    variants = variants_of(given, lambda time: chain.build(time, keys, nodes), times)
    relation = joined_relation(given, variants, limits, timed=chain.timed, nullable=chain.nullable)
    return BoundJoin(relation, all_of(chain.above))
