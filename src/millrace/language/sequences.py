"""As-of joins and sequences: each row with one row before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.errors import QueryError
from millrace.kernel.expressions import Expression
from millrace.language.bands import band_of
from millrace.language.join_conditions import Conjunct, Equality, Keys, keys_of, sort_conditions
from millrace.language.join_inputs import owners_of, times_of
from millrace.language.joins import Bound, Written, joined_relation
from millrace.language.statements import JoinClause, SequenceClause
from millrace.plan.join_steps import Group, all_of
from millrace.plan.join_steps import keys_of as pairs_of
from millrace.plan.limits import Limit, Limits
from millrace.plan.nodes import Following

_KEYS_ONLY = "Compare columns of both for equality, in ON; filter in WHERE, or an input in a subquery."


# As-of joins


@dataclass(frozen=True)
class AsOf:
    """What ON says of an as-of join: by which input's time, the equalities, how far back, and whether only before."""

    part: int
    equalities: tuple[Equality, ...]
    within: int | None
    strict: bool


def as_of(given: Written, position: int, timed: Sequence[int]) -> AsOf:
    """The as-of join that the clause at a position stands for; `timed` are the inputs that have a time before it."""
    clause = given.clauses[position - 1]
    if given.inputs[position].range is not None:
        raise QueryError(
            "a window stands in an as-of join",
            hint=f"Say how far back in ON: {_comparison(given, position, '>=')} - INTERVAL 5 MINUTES.",
            place=given.inputs[position].place,
        )
    inputs = given.inputs[: position + 1]
    found = sort_conditions(given.on[position - 1], inputs)
    equalities = tuple(each for each in (*found.equal, *found.spare) if position in each.sides)
    limits = [
        _time_limit(each, given, position, timed) for each in given.on[position - 1] if not _is_key(each, equalities)
    ]
    after = [each.most for each in limits if each.later == position]
    within = [each.most for each in limits if each.first == position]
    strict = _strict(after, within, given, position)
    parts = {each.first if each.later == position else each.later for each in limits}
    if len(parts) > 1:
        raise QueryError(
            "an as-of join compares with the times of two inputs", hint="Compare with one of them.", place=clause.place
        )
    return AsOf(parts.pop(), equalities, _tolerance(within, clause), strict)


def _time_limit(condition: Conjunct, given: Written, position: int, timed: Sequence[int]) -> Limit:
    """What a condition of ON says of the times, if it says nothing else."""
    inputs = given.inputs[: position + 1]
    found = band_of(condition.expression, times_of(inputs), owners_of(inputs))
    allowed = {position, *timed}
    if len(found.limits) == 1 and found.exact and {found.limits[0].first, found.limits[0].later} <= allowed:
        return found.limits[0]
    name = given.inputs[position].qualifier
    raise QueryError(
        "ON of an as-of join takes equal columns, one comparison of the times, and how far back they may be",
        hint=f"Put other conditions into WHERE, which chooses among the pairs, or into a subquery that filters "
        f'"{name}" before.',
        place=condition.place,
    )


def _is_key(given: Conjunct, equalities: Sequence[Equality]) -> bool:
    return any(frozenset(each.sides) == given.parts and each.place == given.place for each in equalities)


def _strict(after: Sequence[int], within: Sequence[int], given: Written, position: int) -> bool:
    """Whether rows at the same time are no match; refuses what is no comparison of the times."""
    found, answered = given.inputs[position], given.inputs[0]
    example = _comparison(given, position, "<=")
    place = given.clauses[position - 1].place
    if not after and within:
        raise QueryError(
            f'the as-of join looks for rows of "{found.qualifier}" after those of "{answered.qualifier}"',
            hint=f"It takes the last one before: write {example}.",
            place=place,
        )
    if len(after) != 1 or after[0] not in (0, -1):
        raise QueryError(
            f'the as-of join does not say which rows of "{found.qualifier}" come before',
            hint=f"Write ON {example}, once and without an interval.",
            place=place,
        )
    return after[0] == -1


def _comparison(given: Written, position: int, sign: str) -> str:
    sides = [given.inputs[position], given.inputs[0]]
    names = [next(iter(sorted(each.relation.times)), "ts") for each in sides]
    return f"{sides[0].qualifier}.{names[0]} {sign} {sides[1].qualifier}.{names[1]}"


def _tolerance(within: Sequence[int], clause: JoinClause) -> int | None:
    if not within:
        return None
    if min(within) < 0:
        raise QueryError(
            "no row is as far back as the as-of join asks for",
            hint="Write a.ts >= b.ts - INTERVAL 5 SECONDS.",
            place=clause.place,
        )
    return min(within)


# SEQ


def bind_sequence(given: Written, clause: SequenceClause, limited: bool) -> Bound:
    """Streams under SEQ, composed from left to right: each row of the next with one before it."""
    _check(given, clause, limited)
    equalities, above, below = _conditions(given, clause)
    keys = keys_of(equalities, given.inputs)
    last = len(given.inputs) - 1
    conditions = [[*(one for part, one in keys.single if part == each)] for each in range(last + 1)]
    conditions[last] += below
    group = Group(given.inputs[0].node(conditions[0], keys.computed[0]), (0,), 0)
    for position in range(1, last + 1):
        group = _followed(given, clause, group, position, conditions[position], keys)
    relation = joined_relation(given, {last: group.node}, Limits(0, ()), timed=(last,))
    return Bound(relation, all_of(above))


def _followed(
    given: Written, clause: SequenceClause, group: Group, position: int, below: Sequence[Expression], keys: Keys
) -> Group:
    """What has been composed so far, looked up by the rows of the next stream."""
    node = given.inputs[position].node(below, keys.computed[position])
    pairs = pairs_of(keys.columns, group, position)
    outer = clause.outer and position == len(given.inputs) - 1
    within = None if clause.within is None else clause.within.micros
    columns = (tuple(new for _, new in pairs), tuple(old for old, _ in pairs))
    following = Following((node, group.node), columns, clause.mode, within, outer=outer)
    return Group(following, (position,), position, group.all)


def _conditions(given: Written, clause: SequenceClause) -> tuple[list[Equality], list[Expression], list[Expression]]:
    """The equalities that are keys, what of WHERE stands above, and what may go below the last stream."""
    on = sort_conditions(given.on[-1], given.inputs)
    if on.rest or on.single or on.constant:
        place = next(each.place for each in given.on[-1] if not _is_key(each, [*on.equal, *on.spare]))
        raise QueryError("ON of a sequence takes equal columns alone", hint=_KEYS_ONLY, place=place)
    where = sort_conditions(given.where, given.inputs)
    keyed = [] if clause.outer else [*where.equal, *where.spare]
    equalities = [*on.equal, *on.spare, *keyed]
    last = len(given.inputs) - 1
    below: list[Expression] = []
    above: list[Expression] = []
    for each in given.where:
        if _is_key(each, keyed):
            continue
        early = each.parts == {last} and clause.mode == "recent"
        (below if early else above).append(each.expression)
    return equalities, above, below


def _check(given: Written, clause: SequenceClause, limited: bool) -> None:
    for each in given.inputs:
        if each.range is not None or each.rows is not None:
            raise QueryError(
                "a window stands in a sequence",
                hint="Say how far back with WITHIN INTERVAL 5 MINUTES.",
                place=each.place,
            )
    if clause.within is not None and clause.within.micros < 0:
        raise QueryError("WITHIN is negative", hint="Write WITHIN INTERVAL 5 MINUTES.", place=clause.within.place)
    if clause.mode == "chronicle" and clause.within is None and not limited:
        raise QueryError(
            "MODE CHRONICLE keeps rows that nothing has used for ever",
            hint="Say how far back with WITHIN INTERVAL 5 MINUTES, or how many rows with WITH (state_limit = 100000).",
            place=clause.place,
        )
