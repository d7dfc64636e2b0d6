"""How several inputs are joined: by one multi-way join, or by a pipeline of joins of two, and in which order.

Rules:
- Inputs that are all joined on the same keys, or on none, and whose times are all within constant limits of each other,
  are one join. Every other join of more than two inputs is a pipeline.
- A pipeline begins with the pair, and goes on with the input, that is connected by a key, then the one of the shortest
  reach, then the first of the text; only such joins are made as let go of what they keep.
- The rows of a pipeline's beginning have the latest of their times, or the one that is asked for. How far a new row
  may be after them is computed for each: the earliest that one of their parts allows.
- What a join does not make sure of by its keys and reaches is left to its residual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations

import pyarrow as pa

from millrace.kernel.expressions import Call, Cast, Column, Expression, Literal
from millrace.plan.limits import Limit, Limits
from millrace.plan.nodes import Filter, Join, JoinTime, Node, Project, Side

INTERVAL = pa.duration("us")


@dataclass(frozen=True)
class Condition:
    """A condition of a join, over the columns of the inputs `parts`.

    It is the same as `limits` and `untils` if it is `exact`; each of these says for two inputs until when rows of the
    second match one of the first. Keys make sure of one that is `keyed`. A window is a condition without an expression
    if some input has no column with its time.
    """

    expression: Expression | None
    parts: frozenset[int]
    limits: tuple[Limit, ...] = ()
    untils: tuple[tuple[int, int, Expression], ...] = ()
    exact: bool = False
    keyed: bool = False


@dataclass(frozen=True)
class Inputs:
    """What is joined: inputs with distinct columns, and all that is known about which rows match.

    `times` are the inputs' own times as expressions, where there are such; `keys` are columns that must be equal, by
    input. `nullable` inputs may be absent in a row.
    """

    nodes: tuple[Node, ...]
    times: tuple[Expression | None, ...]
    keys: tuple[Mapping[int, str], ...] = ()
    conditions: tuple[Condition, ...] = ()
    nullable: frozenset[int] = frozenset()

    @property
    def limits(self) -> Limits:
        """All limits, and those that follow from them."""
        return Limits(len(self.nodes), [limit for each in self.conditions for limit in each.limits])

    def untils(self, part: int, other: int) -> list[Expression]:
        """What is computed from rows of `part` to say until when rows of `other` match them."""
        found = [until for each in self.conditions for until in each.untils]
        return [expression for first, second, expression in found if (first, second) == (part, other)]


@dataclass(frozen=True)
class Group:
    """Inputs that are joined already, and which of their times the rows have.

    `beside` are inputs of which there are columns, but whose times have no part in it.
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
    """Rows of an input would be kept for ever: nothing says how long rows of `other` may match them."""

    def __init__(self, part: int, other: int) -> None:
        super().__init__(part, other)
        self.part = part
        self.other = other


# Inner joins of any number of inputs


def joined(inputs: Inputs, time: JoinTime = "max") -> Node:
    """The join of all inputs with a time for its rows; refuses what would keep rows for ever."""
    if len(inputs.nodes) > 2 and is_multiway(inputs):
        return _multiway(inputs, time)
    limits = inputs.limits
    for order in _orders(inputs, limits):
        try:
            return _pipeline(inputs, order, time)
        except Unbounded:
            continue
    raise _unbounded(inputs, limits)


def is_multiway(inputs: Inputs) -> bool:
    """Whether one join of all inputs can be made."""
    every = range(len(inputs.nodes))
    limits = inputs.limits
    constant = all(limits.of(first, later) is not None for first in every for later in every)
    return constant and all(set(key) == set(every) for key in inputs.keys)


def _multiway(inputs: Inputs, time: JoinTime) -> Join:
    every = range(len(inputs.nodes))
    limits = inputs.limits
    reaches = [max(_known(limits, part, other) for other in every if other != part) for part in every]
    sides = tuple(Side(tuple(key[part] for key in inputs.keys), reaches[part]) for part in every)
    sure = [
        each.keyed or (each.exact and not each.untils and all(reaches[one.first] <= one.most for one in each.limits))
        for each in inputs.conditions
    ]
    rest = [each for each, is_sure in zip(inputs.conditions, sure, strict=True) if not is_sure]
    return Join(inputs.nodes, sides, all_of(_expressions(inputs, rest)), time)


def _known(limits: Limits, part: int, other: int) -> int:
    found = limits.of(part, other)
    assert found is not None
    return found


def _pipeline(inputs: Inputs, order: Sequence[int], time: JoinTime) -> Node:
    group = Group(inputs.nodes[order[0]], (order[0],), order[0])
    for part in order[1:]:
        group = step(inputs, group, part, time)
    return group.node


def _orders(inputs: Inputs, limits: Limits) -> Iterator[tuple[int, ...]]:
    """Orders to try, the best first."""
    count = len(inputs.nodes)
    starts = sorted(permutations(range(count), 2), key=lambda pair: (*_rank(inputs, limits, pair[:1], pair[1]), pair))
    for first, second in starts:
        if first > second:
            continue
        order = [first, second]
        while len(order) < count:
            rest = [part for part in range(count) if part not in order]
            order.append(min(rest, key=lambda part: (*_rank(inputs, limits, order, part), part)))
        yield tuple(order)


def _rank(inputs: Inputs, limits: Limits, group: Sequence[int], part: int) -> tuple[bool, bool, int]:
    """How well an input goes with others: by a key, within a limit, a short one."""
    keyed = any(part in key and any(each in key for each in group) for key in inputs.keys)
    reaches = [
        there + back
        for each in group
        if (there := limits.of(each, part)) is not None and (back := limits.of(part, each)) is not None
    ]
    return not keyed, not reaches, min(reaches, default=0)


def _unbounded(inputs: Inputs, limits: Limits) -> Unbounded:
    """The first input of which nothing says how long its rows match."""
    every = range(len(inputs.nodes))
    for part in every:
        for other in every:
            if limits.of(part, other) is None and not inputs.untils(part, other):
                return Unbounded(part, other)
    return Unbounded(0, 1)


# One join of two


def step(
    inputs: Inputs,
    group: Group,
    part: int,
    time: JoinTime = "max",
    *,
    outer: tuple[bool, bool] = (False, False),
    also: Sequence[Expression] = (),
) -> Group:
    """What is joined so far with one more input.

    Of the conditions those count that are over these inputs, and not over earlier ones alone, and those given `also`.
    """
    here = group.all | {part}
    conditions = [each for each in inputs.conditions if each.parts <= here and not each.parts <= group.all]
    left, right = _Reaching(inputs, group, part), _Coming(inputs, group, part)
    keys = keys_of(inputs.keys, group, part)
    node, until = _with_until(group.node, left.untils)
    new, coming = _with_until(inputs.nodes[part], right.untils)
    sides = (
        Side(tuple(each for each, _ in keys), left.ahead, until, outer[0]),
        Side(tuple(each for _, each in keys), right.ahead, coming, outer[1]),
    )
    rest = [each for each in conditions if not _is_sure(each, part, left, right)]
    own, of_rows = _time(group, part, time)
    residual = all_of([*_expressions(inputs, rest), *also])
    return Group(Join((node, new), sides, residual, own), (*group.parts, part), of_rows, group.beside)


def keys_of(keys: Sequence[Mapping[int, str]], group: Group, part: int) -> list[tuple[str, str]]:
    """The pairs of columns by which an input is joined to a group."""
    return [
        (next(key[each] for each in sorted(group.all) if each in key), key[part])
        for key in keys
        if part in key and any(each in key for each in group.all)
    ]


def _expressions(inputs: Inputs, conditions: Sequence[Condition]) -> list[Expression]:
    for each in conditions:
        if each.expression is None:
            raise Timeless(next(part for part in sorted(each.parts) if inputs.times[part] is None))
    return [each.expression for each in conditions if each.expression is not None]


def _time(group: Group, part: int, time: JoinTime) -> tuple[JoinTime, JoinTime]:
    """The time of a join of two as it is told, and which one that is among all inputs."""
    if isinstance(time, str):
        return time, time
    if time == part:
        return 1, part
    return (0, time) if time in group.parts else ("max", "max")


class _Reaching:
    """How long rows of a group wait for rows of a new input; `sure` are the parts whose limits that keeps."""

    def __init__(self, inputs: Inputs, group: Group, part: int) -> None:
        limits = inputs.limits
        reaches = {each: limits.of(each, part) for each in group.parts}
        self.ahead = _reach(group, reaches)
        self.sure: set[int] = set(group.parts) if len(group.parts) == 1 else set()
        self.untils: list[Expression] = []
        self.own = [until for each in group.parts for until in inputs.untils(each, part)]
        for each, reach in reaches.items() if len(group.parts) > 1 else ():
            time = inputs.times[each]
            if reach is not None and time is not None:
                self.untils.append(_later(time, reach))
                self.sure |= {each} - inputs.nullable
        # A null says that nothing matches; beside other ends it would be passed over.
        self.exact = len(self.own) == 1 and not self.untils
        self.untils += self.own
        if self.ahead is None and not self.untils:
            raise Unbounded(group.parts[0], part)


def _reach(group: Group, reaches: Mapping[int, int | None]) -> int | None:
    """How far a row may be after the time that a group's rows have."""
    known = [reach for reach in reaches.values() if reach is not None]
    if isinstance(group.time, int):
        return reaches[group.time]
    if group.time == "max":
        return min(known, default=None)
    return max(known) if len(known) == len(reaches) else None


class _Coming:
    """How long rows of a new input wait for rows of a group; `sure` are the parts whose limits that keeps."""

    def __init__(self, inputs: Inputs, group: Group, part: int) -> None:
        limits = inputs.limits
        self.ahead = _reach_back(group, {each: limits.of(part, each) for each in group.parts})
        self.sure = {each for each in group.parts if group.time in ("max", each)}
        self.untils: list[Expression] = []
        self.own = [(each, until) for each in group.parts for until in inputs.untils(part, each)]
        self.exact = len(self.own) == 1 and len(group.parts) == 1
        for each, until in self.own:
            spread = _reach_back(group, {other: limits.of(each, other) for other in group.parts})
            if spread is not None:
                self.untils.append(_later(until, spread))
        if self.ahead is None and not self.untils:
            raise Unbounded(part, group.parts[0])


def _reach_back(group: Group, reaches: Mapping[int, int | None]) -> int | None:
    """How far the time that a group's rows have may be after a row."""
    known = [reach for reach in reaches.values() if reach is not None]
    if isinstance(group.time, int):
        return reaches[group.time]
    if group.time == "min":
        return min(known, default=None)
    return max(known) if len(known) == len(reaches) else None


def _is_sure(condition: Condition, part: int, left: _Reaching, right: _Coming) -> bool:
    """Whether a join makes sure of a condition by its keys and reaches."""
    if condition.keyed or not condition.exact:
        return condition.keyed
    for limit in condition.limits:
        reached = right.ahead is not None and right.ahead <= limit.most and limit.later in right.sure
        if not (reached if limit.first == part else limit.first in left.sure):
            return False
    sure = [*(left.own if left.exact else ()), *(until for _, until in right.own if right.exact)]
    return all(until in sure for _, _, until in condition.untils)


def _with_until(node: Node, untils: Sequence[Expression]) -> tuple[Node, str | None]:
    """A node with a column that says until when its rows match."""
    if not untils:
        return node, None
    least = untils[0] if len(untils) == 1 else Call("least", tuple(dict.fromkeys(untils)))
    name = f"{node.schema.names[0].partition('.')[0]}.__until"
    while name in node.schema.names:
        name += "_"
    return with_columns(node, [(name, least)]), name


def with_columns(node: Node, columns: Sequence[tuple[str, Expression]]) -> Project:
    """A node with more columns, in one projection where there is one already."""
    if isinstance(node, Project):
        given = dict(node.columns)
        return Project(node.input, (*node.columns, *((name, substituted(each, given)) for name, each in columns)))
    return Project(node, (*((name, Column(name)) for name in node.schema.names), *columns))


def substituted(expression: Expression, given: Mapping[str, Expression]) -> Expression:
    """An expression over what columns stand for."""
    match expression:
        case Column(name):
            return given.get(name, expression)
        case Call(function, arguments):
            return Call(function, tuple(substituted(each, given) for each in arguments))
        case Cast(argument, kind):
            return Cast(substituted(argument, given), kind)
    return expression


def _later(time: Expression, micros: int) -> Expression:
    if micros == 0:
        return time
    return Call("+" if micros > 0 else "-", (time, Literal(abs(micros), INTERVAL)))


def all_of(conditions: Iterable[Expression]) -> Expression | None:
    """All conditions as one; None where there are none."""
    found = list(conditions)
    return reduce(lambda first, second: Call("and", (first, second)), found) if found else None


# Why


def reason(join: Join) -> str:
    """Why a join is made as it is, for people.

    >>> from millrace.plan.nodes import Connector, Scan, Stream, TimeContract
    >>> scan = Scan(Stream("s", pa.schema([("x.k", pa.int64())]), TimeContract("latent"), Connector("csv")))
    >>> reason(Join((scan, scan, scan), (Side(ahead=1), Side(ahead=1), Side(ahead=1))))
    'one multi-way join: all inputs are within constant limits of each other, without keys'
    """
    if len(join.inputs) > 2:
        keyed = "and joined on the same keys" if join.sides[0].keys else "without keys"
        return f"one multi-way join: all inputs are within constant limits of each other, {keyed}"
    below = [_join_below(each) for each in join.inputs]
    if not any(isinstance(each, Join) for each in below):
        return "a join of two inputs"
    if any(side.outer for side in join.sides):
        return "a pipeline of joins of two, as it is written: outer joins keep their order"
    return "a pipeline of joins of two: not all inputs are joined on the same keys within constant limits"


def _join_below(node: Node) -> Node:
    while isinstance(node, Project | Filter):
        node = node.input
    return node
