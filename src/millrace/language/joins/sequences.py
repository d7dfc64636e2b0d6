"""As-of joins and sequences: each row with one row before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, UnboundedState
from millrace.kernel.columns.expressions import Call, Expression
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.progressing import kinds_of
from millrace.language.grammar.statements import JoinClause, Length, SequenceClause
from millrace.language.grammar.text.lengths import measured
from millrace.language.grammar.text.places import placed_as
from millrace.language.joins.bands import band_of, is_comparison
from millrace.language.joins.join_conditions import Conjunct, Equality, Keys, keys_of, sort_conditions
from millrace.language.joins.join_inputs import JoinInput, owners_of, times_of
from millrace.language.joins.joined_rows import BoundJoin, joined_relation
from millrace.language.joins.written_join import WrittenJoin
from millrace.language.windows.extents import LONGEST, extent
from millrace.plan.explain.time_text import interval_text
from millrace.plan.joins.join_steps import JoinGroup, key_pairs
from millrace.plan.joins.time_limits import TimeLimit, TimeLimits
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.join_nodes import Following

_KEYS_ONLY = "Compare columns of both for equality, in ON; filter in WHERE, or an input in a subquery."


# As-of joins


@dataclass(frozen=True)
class AsOf:
    """What ON says of an as-of join: `part` is the input whose time is compared, `strict` excludes equal times."""

    part: int
    equalities: tuple[Equality, ...]
    within: int | None
    strict: bool


def as_of(given: WrittenJoin, position: int, timed: Sequence[int]) -> AsOf:
    """The as-of join that the clause at a position stands for; `timed` are the inputs that have a time before it."""
    clause = given.clauses[position - 1]
    if (window := given.inputs[position].window) is not None:
        looked_up, answered = (
            given.inputs[each].time_name or f"{given.inputs[each].qualifier}.ts" for each in (position, 0)
        )
        raise QueryError(
            "an as-of join cannot have a window",
            hint=f"Say how far back in ON: {looked_up} >= {answered} - INTERVAL 5 MINUTES.",
            place=window,
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


def _time_limit(condition: Conjunct, given: WrittenJoin, position: int, timed: Sequence[int]) -> TimeLimit:
    """What a condition of ON says of the times, if it says nothing else."""
    inputs = given.inputs[: position + 1]
    times, schema = times_of(inputs), pa.schema([each for one in inputs for each in one.fields])
    found = band_of(condition.expression, times, owners_of(inputs), kinds_of(times, schema))
    allowed = {position, *timed}
    if len(found.limits) == 1 and found.exact and {found.limits[0].first, found.limits[0].later} <= allowed:
        return found.limits[0]
    name = given.inputs[position].qualifier
    for each in (inputs[part] for part in sorted(condition.parts & allowed) if is_comparison(condition.expression)):
        if not each.relation.times:
            raise _untimed(each, condition.place)
    raise QueryError(
        "ON of an as-of join takes equal columns, one comparison of the times, and how far back they may be",
        hint=f"Put other conditions into WHERE, which chooses among the pairs, or into a subquery that filters "
        f'"{name}" before.',
        place=condition.place,
    )


def _is_key(given: Conjunct, equalities: Sequence[Equality]) -> bool:
    return any(Call("=", tuple(each.sides.values())) == given.expression for each in equalities)


def _strict(after: Sequence[int], within: Sequence[int], given: WrittenJoin, position: int) -> bool:
    """True if rows of equal time do not match; refuses conditions that do not compare the times."""
    found, answered = given.inputs[position], given.inputs[0]
    place = given.clauses[position - 1].place
    for each in (found, answered):
        if not each.relation.times:
            raise _untimed(each, place)
    example = _comparison(found, answered)
    where = f"MATCH_CONDITION ({example}) before USING" if given.clauses[position - 1].using else f"ON {example}"
    if within and min(after, default=1) > 0:
        raise QueryError(
            f'the as-of join looks for rows of "{found.qualifier}" after those of "{answered.qualifier}"',
            hint=f"It takes the last one before: write {example}. All rows that come soon after are those of a join: "
            "JOIN ... ON y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 MINUTES.",
            place=place,
        )
    if len(after) != 1 or after[0] not in (0, -1):
        raise QueryError(
            f'the as-of join does not say which rows of "{found.qualifier}" come before',
            hint=f"Write {where}, once and without another interval.",
            place=place,
        )
    return after[0] == -1


def _comparison(found: JoinInput, answered: JoinInput) -> str:
    """A comparison of columns that says "not after", or "before" for results, whose time is their end."""
    ahead, left, right = min(
        (
            (further - more, f"{found.qualifier}.{name}", f"{answered.qualifier}.{other}")
            for name, more in found.relation.times.items()
            for other, further in answered.relation.times.items()
        ),
        key=lambda each: (abs(each[0]), each),
    )
    if ahead in (0, -1):
        return f"{left} <= {right}"
    timed = found.relation.unit == "time"
    if ahead > 1:
        return f"{left} <= {right} - " + (f"INTERVAL {interval_text(ahead + 1)}" if timed else str(ahead + 1))
    further = f"INTERVAL {interval_text(1 - ahead)}" if timed else str(1 - ahead)
    return f"{left} < {right}" + ("" if ahead == 1 else f" + {further}")


def _untimed(given: JoinInput, place: Place | None) -> QueryError:
    """The refusal of an input without a column that holds its time."""
    return QueryError(
        f'no column of "{given.qualifier}" holds the time of its rows',
        hint="Select the time column of the stream. The time of a window result is its end: aggregate over a window "
        "such as [RANGE 1 DAY SLIDE 1 DAY], and compare window_end.",
        place=place,
    )


def _tolerance(within: Sequence[int], clause: JoinClause) -> int | None:
    if not within:
        return None
    if min(within) > LONGEST:
        raise QueryError("the as-of join looks too far back", hint="It is at most 1,000,000 days.", place=clause.place)
    if min(within) < 0:
        raise QueryError(
            "no row is as far back as the as-of join asks for",
            hint="Write a.ts >= b.ts - INTERVAL 5 SECONDS.",
            place=clause.place,
        )
    return min(within)


# FOR SYSTEM_TIME AS OF


def of_system_time(clause: JoinClause, relation: BoundRelation) -> JoinClause:
    """A join with an input as it was at a time, as the as-of join that it means; any other as it is."""
    asked = clause.item.as_of
    if asked is None:
        return clause
    if clause.kind not in ("inner", "left") or clause.item.window is not None:
        raise QueryError(
            "FOR SYSTEM_TIME AS OF takes JOIN or LEFT JOIN, without a window",
            hint="Write FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k.",
            place=clause.item.place,
        )
    time = min(relation.times.items(), key=lambda item: (abs(item[1]), item[0]), default=None)
    if time is None:
        raise QueryError(
            f'no column of "{relation.qualifier}" holds the time of its rows',
            hint="Select the time column of the stream.",
            place=clause.item.place,
        )
    known = exp.column(time[0], table=relation.qualifier)
    match = placed_as(exp.GTE(this=asked, expression=placed_as(known, asked)), asked)
    item = replace(clause.item, as_of=None)
    return replace(clause, kind="asof", item=item, match=match, outer=clause.kind == "left")


# SEQ


def bind_sequence(given: WrittenJoin, clause: SequenceClause, limited: bool) -> BoundJoin:
    """Streams under SEQ, composed from left to right: each row of the next with one before it."""
    _check(given, clause, limited)
    equalities, above, below = _conditions(given, clause)
    keys = keys_of(equalities, given.inputs)
    last = len(given.inputs) - 1
    conditions = [[*(one for part, one in keys.single if part == each)] for each in range(last + 1)]
    conditions[last] += below
    group = JoinGroup(given.inputs[0].node(conditions[0], keys.computed[0]), (0,), 0)
    for position in range(1, last + 1):
        group = _followed(given, clause, group, position, conditions[position], keys)
    relation = joined_relation(given, {last: group.node}, TimeLimits(0, ()), timed=(last,))
    return BoundJoin(relation, all_of(above))


def _followed(
    given: WrittenJoin, clause: SequenceClause, group: JoinGroup, position: int, below: Sequence[Expression], keys: Keys
) -> JoinGroup:
    """The sequence so far, looked up by the rows of the next stream."""
    node = given.inputs[position].node(below, keys.computed[position])
    pairs = key_pairs(keys.columns, group, position)
    outer = clause.outer and position == len(given.inputs) - 1
    within = None if clause.within is None else measured(clause.within, given.inputs[0].relation.unit, "WITHIN")
    columns = (tuple(new for _, new in pairs), tuple(old for old, _ in pairs))
    following = Following((node, group.node), columns, clause.mode, within, outer=outer)
    return JoinGroup(following, (position,), position, group.all)


def _conditions(
    given: WrittenJoin, clause: SequenceClause
) -> tuple[list[Equality], list[Expression], list[Expression]]:
    """The equalities that are keys, the conditions of WHERE above the join, and those that may go below it."""
    on = sort_conditions(given.on[-1], given.inputs)
    if on.rest or on.single or on.constant:
        place = next(each.place for each in given.on[-1] if not _is_key(each, [*on.equal, *on.spare]))
        raise QueryError("ON of a sequence takes only equal columns", hint=_KEYS_ONLY, place=place)
    where = sort_conditions(given.where, given.inputs)
    keyed = [*where.equal, *where.spare]
    if clause.outer and keyed:
        raise QueryError(
            "WHERE cannot match the rows of an outer sequence",
            hint="Put it into ON, before MODE: a SEQ b ON a.k = b.k MODE RECENT OUTER. WHERE would drop the rows that "
            "OUTER keeps.",
            place=keyed[0].place,
        )
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


def _check(given: WrittenJoin, clause: SequenceClause, limited: bool) -> None:
    for each in given.inputs:
        if each.range is not None or each.rows is not None:
            raise QueryError(
                "a sequence cannot have a window",
                hint="Say how far back with WITHIN INTERVAL 5 MINUTES.",
                place=each.window or each.place,
            )
    if isinstance(clause.within, Length) and clause.within.micros < 0:
        raise QueryError("WITHIN is negative", hint="Write WITHIN INTERVAL 5 MINUTES.", place=clause.within.place)
    if clause.within is not None:
        extent(clause.within, "WITHIN", given.inputs[0].relation.unit, least=0)
    if clause.mode == "chronicle" and clause.within is None and not limited:
        raise UnboundedState(
            "MODE CHRONICLE would keep unmatched rows for ever",
            hint="Say how far back with WITHIN INTERVAL 5 MINUTES, or how many rows with WITH (state_limit = 100000).",
            place=clause.place,
        )
