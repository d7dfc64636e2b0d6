"""FROM with several inputs, bound: which kind of join it is; inner joins over time, and joins over ROWS windows.

Rules:
- ON and WHERE of inner joins are one pool. What reads one input goes below the join, what reads several is a key, a
  limit on the times or a residual.
- With an outer or as-of join among them, joins are made from left to right as they are written; WHERE stands above
  where it cannot go below (join_chains).
- A side with a ROWS window makes a join by rows, which counts the rows of its inputs before any condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.sides import JoinTime, RowsSide
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.grammar.statements import JoinClause, Name, Select
from millrace.language.joins.bands import is_comparison
from millrace.language.joins.join_chains import bind_chain
from millrace.language.joins.join_conditions import (
    Equality,
    keys_of,
    sort_conditions,
)
from millrace.language.joins.join_inputs import (
    JoinInput,
    as_input,
    by_further_time,
    check_input_names,
    scope_of,
    settled,
)
from millrace.language.joins.joined_rows import BoundJoin, check_limits, joined_relation, variants_of, windows_of
from millrace.language.joins.sequences import bind_sequence
from millrace.language.joins.written_join import WrittenJoin, written_join
from millrace.plan.joins.join_order import joined
from millrace.plan.joins.join_steps import JoinInputs
from millrace.plan.joins.time_limits import TimeLimits
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.join_nodes import RowsJoin
from millrace.plan.updates.refusals import APPEND


def bind_joins(
    select: Select,
    functions: Functions,
    relations: Sequence[BoundRelation],
    limited: bool,
    unbounded: bool = False,
) -> BoundJoin:
    """The join that a select reads, over the relations of its inputs.

    `limited` is true if the query has a limit of state, `unbounded` if the latest row per key of each input is kept,
    however old it is.
    """
    items = (select.source, *(each.item for each in select.joins))
    inputs = tuple(as_input(each, item, select.window) for each, item in zip(relations, items, strict=True))
    check_input_names(inputs)
    select = replace(
        select, joins=tuple(_written_out(each, inputs, place) for place, each in enumerate(select.joins, 1))
    )
    given = written_join(select, functions, inputs)
    conditions = [each for one in (*given.on, given.where) for each in one if len(each.parts) > 1]
    compared = [each.expression for each in conditions if is_comparison(each.expression)]
    given = replace(given, inputs=tuple(settled(each, compared) for each in inputs))
    if select.sequence is not None:
        return bind_sequence(given, select.sequence, limited)
    if all(each.window is None for each in inputs):
        # A window says itself by which time it goes.
        given = replace(given, inputs=tuple(by_further_time(each, compared) for each in given.inputs))
    if any(each.rows is not None for each in inputs):
        return _bind_rows(given)
    if all(each.kind == "inner" for each in select.joins):
        return _bind_inner(given, unbounded=unbounded)
    full = next((each for each in select.joins if each.kind == "full"), None)
    if unbounded and full is not None:
        raise NotYet(
            "FULL JOIN is not supported yet over update streams",
            hint=f"Write LEFT JOIN, or let the query {APPEND}.",
            place=full.place,
        )
    return bind_chain(given, unbounded=unbounded)


def _written_out(clause: JoinClause, inputs: Sequence[JoinInput], position: int) -> JoinClause:
    """A NATURAL join as one that is USING all columns that both sides have."""
    if not clause.natural:
        return clause
    before = scope_of(inputs[:position])
    both = [name for name in inputs[position].scope.schema.names if before.find(name) is not None]
    if not both:
        hint = "The inputs have no columns in common: write JOIN ... ON."
        raise QueryError("NATURAL JOIN has no columns to join on", hint=hint, place=clause.place)
    return replace(clause, using=tuple(Name(name, place=clause.place) for name in both))


# Inner joins


def _bind_inner(given: WrittenJoin, *, unbounded: bool = False) -> BoundJoin:
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
    inputs = JoinInputs(
        nodes, tuple(each.time for each in given.inputs), keys.columns, tuple(conditions), unbounded=unbounded
    )
    check_limits(inputs.limits, given)
    times: list[JoinTime] = ["max", "min", *range(len(nodes))]
    variants = variants_of(given, lambda time: joined(inputs, time), times)
    relation = joined_relation(given, variants, inputs.limits)
    return BoundJoin(relation, all_of(each.expression for each in found.constant))


# ROWS windows


def _bind_rows(given: WrittenJoin) -> BoundJoin:
    """A join of two inputs of which at least one has a ROWS window."""
    _refuse_others(given)
    found = sort_conditions([*given.on[0], *given.where], given.inputs)
    equalities: list[Equality] = [*found.equal, *found.spare]
    keys = keys_of(equalities, given.inputs)
    rest = [each.expression for each in found.rest if each.expression is not None]
    below: tuple[list[Expression], ...] = ([], [])
    for each in found.single:
        (part,) = each.parts
        # A window of rows counts them before a condition chooses among them.
        (rest if given.inputs[part].rows is not None else below[part]).append(each.expression)
    rest += [expression for _, expression in keys.single]
    first, second = (each.node(below[part], keys.computed[part]) for part, each in enumerate(given.inputs))
    sides = [
        RowsSide(tuple(key[part] for key in keys.columns), each.rows, each.range, _partition(each))
        for part, each in enumerate(given.inputs)
    ]
    node = RowsJoin((first, second), (sides[0], sides[1]), all_of(rest))
    relation = joined_relation(given, {"max": node}, TimeLimits(2, ()))
    return BoundJoin(relation, all_of(each.expression for each in found.constant))


def _partition(given: JoinInput) -> tuple[str, ...]:
    """The columns of PARTITION BY, under their names in the join."""
    scope = scope_of([given])
    bound = [scope.column(exp.column(each.text), each.place).expression for each in given.partition]
    return tuple(name for each in bound for name in each.columns())


def _refuse_others(given: WrittenJoin) -> None:
    kind = given.clauses[0].kind
    if len(given.inputs) == 2 and kind == "inner":
        return
    what = "a join of more than two inputs" if len(given.inputs) > 2 else f"{kind.upper()} JOIN"
    raise NotYet(
        f"{what} with a ROWS window is not supported yet",
        hint="Join two inputs with JOIN, and others in a query around it, or use [RANGE 5 MINUTES].",
        place=next(each.place for each in given.inputs if each.rows is not None),
    )
