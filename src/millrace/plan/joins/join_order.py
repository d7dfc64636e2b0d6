"""How several inputs are joined: by one multi-way join, or by a pipeline of joins of two, and in which order.

Rules:
- Inputs that are all joined on the same keys, or on none, and whose times are all within constant limits of each other,
  are one join. Every other join of more than two inputs is a pipeline.
- Update streams are one join always: it keeps one row per key and input, however many conditions are left to check.
- A pipeline begins with a pair and goes on with one input at a time. Connected by a key comes first, then the shortest
  reach, then the order of the text. Every join that is made keeps its rows for a limited time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

from millrace.kernel.columns.expressions import Call, Column
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.plan.joins.join_steps import JoinCondition, JoinGroup, JoinInputs, Unbounded, expressions_of, join_step
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node


def joined(inputs: JoinInputs, time: JoinTime = "max") -> Node:
    """The join of all inputs with a time for its rows; raises `Unbounded` if it would keep rows without limit."""
    if inputs.unbounded or (len(inputs.nodes) > 2 and is_multiway(inputs)):
        return _multiway(inputs, time)
    for order in _orders(inputs):
        try:
            return _pipeline(inputs, order, time)
        except Unbounded:
            continue
    raise _unbounded(inputs)


def is_multiway(inputs: JoinInputs) -> bool:
    """True if one join of all inputs can be made."""
    every = range(len(inputs.nodes))
    constant = all(inputs.limits.of(first, later) is not None for first in every for later in every)
    return constant and all(set(key) == set(every) for key in inputs.keys)


def _multiway(inputs: JoinInputs, time: JoinTime) -> Join:
    every = frozenset(range(len(inputs.nodes)))
    keys = [key for key in inputs.keys if set(key) == every]
    reaches = [_reach(inputs, part) for part in sorted(every)]
    sides = tuple(Side(tuple(key[part] for key in keys), reaches[part]) for part in sorted(every))
    rest = [each for each in inputs.conditions if not _is_sure(each, reaches)]
    equal = [
        Call("=", (Column(first), Column(other)))
        for key in inputs.keys
        if key not in keys
        for first, other in pairwise(key.values())
    ]
    return Join(inputs.nodes, sides, all_of([*equal, *expressions_of(inputs, rest)]), time)


def _reach(inputs: JoinInputs, part: int) -> int | None:
    """How far rows of other inputs may be after one of an input; None if one of them has no limit."""
    others = [inputs.limits.of(part, other) for other in range(len(inputs.nodes)) if other != part]
    known = [each for each in others if each is not None]
    return max(known) if len(known) == len(others) else None


def _is_sure(condition: JoinCondition, reaches: Sequence[int | None]) -> bool:
    """True if the keys or reaches of one join of all inputs guarantee a condition."""
    if condition.keyed or not condition.exact or condition.untils:
        return condition.keyed
    return all((reach := reaches[each.first]) is not None and reach <= each.most for each in condition.limits)


def _pipeline(inputs: JoinInputs, order: Sequence[int], time: JoinTime) -> Node:
    group = JoinGroup(inputs.nodes[order[0]], (order[0],), order[0])
    for part in order[1:]:
        group = join_step(inputs, group, part, time)
    return group.node


def _orders(inputs: JoinInputs) -> Iterator[tuple[int, ...]]:
    """Orders to try, the best first."""
    count = len(inputs.nodes)
    starts = sorted(permutations(range(count), 2), key=lambda pair: (*_rank(inputs, pair[:1], pair[1]), pair))
    for first, second in starts:
        if first > second:
            continue
        order = [first, second]
        while len(order) < count:
            rest = [part for part in range(count) if part not in order]
            order.append(min(rest, key=lambda part: (*_rank(inputs, order, part), part)))
        yield tuple(order)


def _rank(inputs: JoinInputs, group: Sequence[int], part: int) -> tuple[bool, bool, int]:
    """How well an input goes with others: by a key, within a limit, a short one."""
    limits = inputs.limits
    keyed = any(part in key and any(each in key for each in group) for key in inputs.keys)
    reaches = [
        there + back
        for each in group
        if (there := limits.of(each, part)) is not None and (back := limits.of(part, each)) is not None
    ]
    return not keyed, not reaches, min(reaches, default=0)


def _unbounded(inputs: JoinInputs) -> Unbounded:
    """The first input of which nothing says how long its rows match."""
    every = range(len(inputs.nodes))
    for part in every:
        for other in every:
            if inputs.limits.of(part, other) is None and not inputs.untils(part, other):
                return Unbounded(part, other)
    return Unbounded(0, 1)
