"""Joins: inputs, conditions and windows into a join node, with the times that its rows may have.

Rules:
- ON and WHERE of inner joins are one pool. What reads one input goes below the join, what reads several is a key, a
  limit on the times or a residual.
- With an outer or as-of join among them, joins are made from left to right as they are written; WHERE stands above
  where it cannot go below (join_chains).
- A side with a ROWS window makes a join by rows, which reads its inputs as they are (rows_joins).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.expressions import Call, Expression
from millrace.kernel.joins.sides import JoinTime
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.joined_times import JoinedTimes
from millrace.language.expressions.scopes import Relation, Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import JoinClause, Name, Select
from millrace.language.joins.bands import is_comparison
from millrace.language.joins.join_conditions import Conjunct, conjuncts, keys_of, sort_conditions
from millrace.language.joins.join_inputs import Input, compared_columns, owners_of, scope_of, time_columns, times_of
from millrace.language.joins.join_scopes import JoinScope, Merged
from millrace.language.windows.windows import LONGEST
from millrace.plan.joins.join_order import joined
from millrace.plan.joins.join_steps import Condition, Inputs, Timeless, Unbounded
from millrace.plan.joins.time_limits import TimeLimit, TimeLimits
from millrace.plan.nodes.conditions import all_of, later
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node


@dataclass(frozen=True)
class Bound:
    """The relation of a join, and what of WHERE has still to be checked above it."""

    relation: Relation
    above: Expression | None = None


@dataclass(frozen=True)
class Written:
    """A join as it is written, with all names looked up: inputs, the conditions of each ON, and those of WHERE."""

    select: Select
    inputs: tuple[Input, ...]
    scope: JoinScope
    on: tuple[tuple[Conjunct, ...], ...]
    where: tuple[Conjunct, ...]

    @property
    def clauses(self) -> tuple[JoinClause, ...]:
        return self.select.joins


def written(
    select: Select, functions: Functions, inputs: tuple[Input, ...], refuse_in_where: Callable[[Scope, exp.Expr], None]
) -> Written:
    """The conditions of a join looked up; `refuse_in_where` refuses what cannot stand in WHERE."""
    merged: tuple[Merged, ...] = ()
    on: list[tuple[Conjunct, ...]] = []
    for position, clause in enumerate(select.joins, 1):
        before, here = scope_of(inputs[:position], merged), scope_of(inputs[: position + 1], merged)
        found = [_using(name, clause, before, inputs[position]) for name in clause.using]
        owners = owners_of(inputs[: position + 1])
        conditions = [_conjunct(equal, owners) for equal, _ in found]
        of_sequence = select.sequence if position == len(select.joins) else None
        written_on = of_sequence.on if of_sequence is not None else clause.on
        if written_on is not None:
            conditions += conjuncts(ExpressionBinder(here, functions), written_on, "the condition of ON", owners)
        if clause.match is not None:
            conditions += conjuncts(ExpressionBinder(here, functions), clause.match, "MATCH_CONDITION", owners)
        merged = (*(each for each in merged if not _replaced(each, found)), *(each for _, each in found))
        on.append(tuple(conditions))
    scope = scope_of(inputs, merged)
    kept: list[Conjunct] = []
    if select.where is not None:
        refuse_in_where(scope, select.where)
        binder = ExpressionBinder(scope, functions)
        kept = conjuncts(binder, select.where, "the condition of WHERE", owners_of(inputs))
    return Written(select, inputs, scope, tuple(on), tuple(kept))


def _conjunct(equal: Typed, owners: Mapping[str, int]) -> Conjunct:
    return Conjunct(equal.expression, frozenset(owners[name] for name in equal.expression.columns()), equal.place)


def _replaced(merged: Merged, found: Sequence[tuple[Typed, Merged]]) -> bool:
    return any(merged.columns <= each.columns for _, each in found)


def _using(name: Name, clause: JoinClause, before: JoinScope, new: Input) -> tuple[Typed, Merged]:
    """The equality of a column of USING, and the one column that stands for both."""
    column = new.scope.find(name.text)
    if column is None or before.find(name.text) is None:
        raise _not_in_both(name, before, new)
    left = before.column(exp.column(name.text), name.place)
    right = scope_of([new]).column(exp.column(column), name.place)
    first, second = typed.unify([left, right], name.place)
    value = {"right": second.expression, "full": Call("coalesce", (first.expression, second.expression))}
    columns = frozenset((*before.candidates(name.text), *right.expression.columns()))
    chosen = value.get(clause.kind, first.expression)
    merged = Merged(before.shown_alone(left) or column, chosen, first.type, columns)
    return typed.call("=", [first, second], name.place), merged


def _not_in_both(name: Name, before: JoinScope, new: Input) -> QueryError:
    """The refusal of a column of USING, with those that there are."""
    both = [each for each in new.scope.schema.names if before.find(each) is not None]
    lacking = [] if before.find(name.text) is not None else list(before.inputs)
    lacking += [] if new.scope.find(name.text) is not None else [new.qualifier]
    which = " and ".join(f'"{each}"' for each in lacking)
    known = (
        f"The columns that both inputs have are {listed(both)}." if both else "The inputs have no columns in common."
    )
    return QueryError(
        f'column "{name.text}" of USING does not exist in {which}',
        hint=f"{did_you_mean(name.text, both)}{known}",
        place=name.place,
    )


# Inner joins


def bind_inner(given: Written, *, unbounded: bool = False) -> Bound:
    """Inner joins of all inputs; if they are `unbounded`, rows may match however far apart their times are."""
    pool = [*(each for one in given.on for each in one), *given.where]
    found = sort_conditions(pool, given.inputs)
    keys = keys_of(found.keys(), given.inputs)
    conditions = [*found.conditions(), *windows_of(given.inputs)]
    singles = [(next(iter(each.parts)), each.expression) for each in found.single] + list(keys.single)
    nodes = tuple(
        each.node([one for part, one in singles if part == position], keys.computed[position])
        for position, each in enumerate(given.inputs)
    )
    inputs = Inputs(
        nodes, tuple(each.time for each in given.inputs), keys.columns, tuple(conditions), unbounded=unbounded
    )
    check_limits(inputs.limits, given)
    times: list[JoinTime] = ["max", "min", *range(len(nodes))]
    variants = variants_of(given, lambda time: joined(inputs, time), times)
    relation = joined_relation(given, variants, inputs.limits)
    return Bound(relation, all_of(each.expression for each in found.constant))


def windows_of(inputs: Sequence[Input], leave: frozenset[int] = frozenset()) -> list[Condition]:
    """What the windows of inputs say: rows of all others are at most so much later; of some nothing is said."""
    found: list[Condition] = []
    for first, each in enumerate(inputs):
        for other, against in enumerate(inputs):
            if each.range is None or first == other or first in leave:
                continue
            expression = None
            if each.time is not None and against.time is not None:
                expression = Call("<=", (against.time, later(each.time, each.range)))
            limit = TimeLimit(first, other, each.range)
            found.append(Condition(expression, frozenset((first, other)), (limit,), exact=True))
    return found


def check_limits(limits: TimeLimits, given: Written) -> None:
    """Refuse conditions on times that no rows can meet, and lengths of time beyond all reason."""
    if max((abs(most) for most in limits.most.values()), default=0) > LONGEST:
        raise QueryError(
            "what the join says about times is too long",
            hint="It is at most 1,000,000 days.",
            place=given.clauses[-1].place,
        )
    if limits.contradict():
        raise QueryError(
            "no rows can meet what the join says about their times",
            hint="Check the signs: y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS.",
            place=given.clauses[-1].place,
        )


def variants_of(given: Written, build: Callable[[JoinTime], Node], times: Sequence[JoinTime]) -> dict[JoinTime, Node]:
    """The join by the times that it can give; it must be able to give the first."""
    found: dict[JoinTime, Node] = {}
    for time in times:
        try:
            found[time] = build(time)
        except Unbounded as error:
            if not found:
                raise unbounded(error, given) from None
        except Timeless as error:
            if not found:
                raise _timeless(error, given) from None
    return found


def unbounded(error: Unbounded, given: Written) -> QueryError:
    """The refusal of a join that would keep rows for ever, with what would bound it."""
    kept, other = given.inputs[error.part], given.inputs[error.other]
    if (mixed := _mixed(given, (kept, other))) is not None:
        hint = mixed
    elif kept.range is not None:
        hint = f"A window of an input that may be null holds for the join that brings it alone: {_added(given, error)}"
    else:
        added = _added(given, error)
        hint = f"Give it a window, {_windowed(kept, '')}" + (f", or {added}" if added else "")
    return QueryError(
        f'the join would keep rows of "{kept.qualifier}" for ever: nothing says how long after them rows of '
        f'"{other.qualifier}" match',
        hint=f"{hint}.",
        place=kept.place,
    )


def _windowed(given: Input, by: str) -> str:
    named = "" if given.qualifier == given.relation.label else f" AS {given.qualifier}"
    return f"{given.relation.label} [RANGE 5 MINUTES{by}]{named}"


def _added(given: Written, error: Unbounded) -> str | None:
    """What to write so that rows of an input are let go; None where no columns hold the times."""
    names = [_time_name(given.inputs[each]) for each in (error.part, error.other)]
    if None in names:
        return None
    condition = f"{names[1]} <= {names[0]} + INTERVAL 5 MINUTES"
    clause = given.clauses[max(error.part, error.other) - 1]
    if all(each.kind == "inner" and each.on is None for each in given.clauses):
        return f"add to WHERE: {condition}"
    if clause.using:
        return f"write ON with equal columns instead of USING, and add: {condition}"
    return f"add to ON: {condition}"


def _mixed(given: Written, inputs: Sequence[Input]) -> str | None:
    """What to do where conditions compare two times of an input, so that it goes by one and is not bounded by it."""
    pool = [each for one in (*given.on, given.where) for each in one if len(each.parts) > 1]
    compared = [each.expression for each in pool if is_comparison(each.expression)]
    for each in inputs:
        times = sorted(time_columns(each, compared_columns(each, compared)))
        further = [name for name in times if name not in each.relation.times]
        if len(times) > 1 and further and each.window is None:
            window = _windowed(each, f" WA {further[0]}")
            return (
                f'Conditions compare "{each.qualifier}" by {" and ".join(times)}, and it goes by one of them: '
                f"compare that one alone, or say which, {window}"
            )
    return None


def _time_name(given: Input) -> str | None:
    names = sorted(given.relation.times.items(), key=lambda item: (abs(item[1]), item[0]))
    return f"{given.qualifier}.{names[0][0]}" if names else None


def _timeless(error: Timeless, given: Written) -> QueryError:
    kept = given.inputs[error.part]
    return QueryError(
        f'no column of "{kept.qualifier}" holds its time, which joins with several others need',
        hint="Select its time column, or join it to one other input in a subquery.",
        place=kept.place,
    )


# What a join gives


def joined_relation(
    given: Written,
    variants: Mapping[JoinTime, Node],
    limits: TimeLimits,
    *,
    timed: Sequence[int] | None = None,
    nullable: frozenset[int] = frozenset(),
) -> Relation:
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
    return Relation(
        node,
        given.scope.schema,
        label,
        _own_times(columns, parts, free, limits),
        frozenset(names),
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
