"""What a join gives: the relation of its rows, with the times that they may have; and joins that are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millrace.errors import QueryError, UnboundedState
from millrace.kernel.columns.expressions import Call, Expression
from millrace.kernel.joins.sides import JoinTime
from millrace.language.expressions.bound_relation import BoundRelation, JoinedTimes
from millrace.language.joins.bands import is_comparison
from millrace.language.joins.join_inputs import (
    JoinInput,
    compared_columns,
    time_columns,
    times_of,
)
from millrace.language.joins.written_join import WrittenJoin
from millrace.language.windows.extents import LONGEST
from millrace.plan.joins.join_steps import JoinCondition, Timeless, Unbounded
from millrace.plan.joins.time_limits import TimeLimit, TimeLimits
from millrace.plan.nodes.conditions import later
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node


@dataclass(frozen=True)
class BoundJoin:
    """The relation of a join, and what of WHERE has still to be checked above it."""

    relation: BoundRelation
    above: Expression | None = None


def windows_of(inputs: Sequence[JoinInput], leave: frozenset[int] = frozenset()) -> list[JoinCondition]:
    """The conditions that windows stand for, but for the windows of the inputs `leave`: rows of all other inputs are at
    most the length of the window later."""
    found: list[JoinCondition] = []
    for first, each in enumerate(inputs):
        for other, against in enumerate(inputs):
            if each.range is None or first == other or first in leave:
                continue
            expression = None
            if each.time is not None and against.time is not None:
                expression = Call("<=", (against.time, later(each.time, each.range)))
            limit = TimeLimit(first, other, each.range)
            found.append(JoinCondition(expression, frozenset((first, other)), (limit,), exact=True))
    return found


def check_limits(limits: TimeLimits, given: WrittenJoin) -> None:
    """Refuse conditions on times that no rows can satisfy, and intervals that are too long."""
    if max((abs(most) for most in limits.most.values()), default=0) > LONGEST:
        raise QueryError(
            "an interval in the conditions of the join is too long",
            hint="It is at most 1,000,000 days.",
            place=given.clauses[-1].place,
        )
    if limits.contradict():
        raise QueryError(
            "no rows can satisfy the conditions of the join on their times",
            hint="Check the signs: y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS.",
            place=given.clauses[-1].place,
        )


def variants_of(
    given: WrittenJoin, build: Callable[[JoinTime], Node], times: Sequence[JoinTime]
) -> dict[JoinTime, Node]:
    """The join by the times that it can give; it must be able to give the first."""
    found: dict[JoinTime, Node] = {}
    for time in times:
        try:
            found[time] = build(time)
        except Unbounded as error:
            if not found:
                raise _unbounded(error, given) from None
        except Timeless as error:
            if not found:
                raise _timeless(error, given) from None
    return found


def _unbounded(error: Unbounded, given: WrittenJoin) -> QueryError:
    """The refusal of a join that would keep rows for ever, with what would bound it."""
    kept, other = given.inputs[error.part], given.inputs[error.other]
    if (mixed := _mixed(given, (kept, other))) is not None:
        hint = mixed
    elif kept.range is not None:
        hint = f"A window of an input that may be null only applies to the join that adds it: {_added(given, error)}"
    else:
        added = _added(given, error)
        hint = f"Give it a window, {_windowed(kept, '')}" + (f", or {added}" if added else "")
    return UnboundedState(
        f'the join would keep rows of "{kept.qualifier}" for ever: nothing says how long after them rows of '
        f'"{other.qualifier}" match',
        hint=f"{hint}.",
        place=kept.place,
    )


def _windowed(given: JoinInput, by: str) -> str:
    named = "" if given.qualifier == given.relation.label else f" AS {given.qualifier}"
    return f"{given.relation.label} [RANGE {_length(given)}{by}]{named}"


def _length(given: JoinInput) -> str:
    """A length as an example, in the unit of an input."""
    return "5 MINUTES" if given.relation.unit == "time" else "10"


def _added(given: WrittenJoin, error: Unbounded) -> str | None:
    """What to write so that rows of an input can be dropped; None where no columns hold the times."""
    names = [given.inputs[each].time_name for each in (error.part, error.other)]
    if None in names:
        return None
    kept = given.inputs[error.part]
    condition = f"{names[1]} <= {names[0]} + {'INTERVAL ' if kept.relation.unit == 'time' else ''}{_length(kept)}"
    if kept.relation.unit == "number":
        condition += f", or {names[0]} div 10 = {names[1]} div 10 (/ gives a fraction)"
    clause = given.clauses[max(error.part, error.other) - 1]
    if all(each.kind == "inner" and each.on is None for each in given.clauses):
        return f"add to WHERE: {condition}"
    if clause.using:
        return f"write ON with equal columns instead of USING, and add: {condition}"
    return f"add to ON: {condition}"


def _mixed(given: WrittenJoin, inputs: Sequence[JoinInput]) -> str | None:
    """The hint where conditions compare two times of one input, which has only one of them as its own."""
    pool = [each for one in (*given.on, given.where) for each in one if len(each.parts) > 1]
    compared = [each.expression for each in pool if is_comparison(each.expression)]
    for each in inputs:
        times = sorted(time_columns(each, compared_columns(each, compared)))
        further = [name for name in times if name not in each.relation.times]
        if len(times) > 1 and further and each.window is None:
            window = _windowed(each, f" WA {further[0]}")
            return (
                f'Conditions compare "{each.qualifier}" by {" and ".join(times)}, and only one of them is its time: '
                f"compare only that one, or say which, {window}"
            )
    return None


def _timeless(error: Timeless, given: WrittenJoin) -> QueryError:
    kept = given.inputs[error.part]
    return QueryError(
        f'no column of "{kept.qualifier}" holds its time, which a join of several inputs needs',
        hint="Select its time column, or join it to one other input in a subquery.",
        place=kept.place,
    )


# What a join gives


def joined_relation(
    given: WrittenJoin,
    variants: Mapping[JoinTime, Node],
    limits: TimeLimits,
    *,
    timed: Sequence[int] | None = None,
    nullable: frozenset[int] = frozenset(),
) -> BoundRelation:
    """The rows of a join; `timed` are the inputs whose times have a part in that of its rows, by default all."""
    node = next(iter(variants.values()))
    parts = tuple(range(len(given.inputs))) if timed is None else tuple(timed)
    columns = {name: each for name, each in times_of(given.inputs).items() if each[0] in parts}
    free = frozenset(parts) - nullable
    joint = None
    if isinstance(node, Join) and len(given.inputs) == 2 and not nullable and node.time == "max":
        joint = Join(node.inputs, node.sides, node.residual, node.time, joint=True)
    choices = JoinedTimes(node, variants, columns, frozenset(parts), free, joint)
    names = {name.partition(".")[2] for name in columns}
    label = " JOIN ".join(each.relation.label for each in given.inputs)
    return BoundRelation(
        node,
        given.scope.schema,
        label,
        _own_times(columns, parts, free, limits),
        frozenset(names),
        unit=given.inputs[0].relation.unit,
        joined=given.scope,
        choices=choices,
    )


def _own_times(
    columns: Mapping[str, tuple[int, int]], parts: Sequence[int], free: frozenset[int], limits: TimeLimits
) -> dict[str, int]:
    """The columns that hold the time of joined rows: of an input that is never before the others."""
    for part in parts:
        reaches = {other: limits.of(part, other) for other in parts}
        if part in free and all(reach is not None and reach <= 0 for reach in reaches.values()):
            # How much later than the latest another input always is; below zero if it is earlier.
            fixed = {
                other: reach
                for other, reach in reaches.items()
                if reach is not None and limits.of(other, part) == -reach and other in free
            }
            return {name: more + fixed[other] for name, (other, more) in columns.items() if other in fixed}
    return {}
