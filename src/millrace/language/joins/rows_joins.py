"""Joins over ROWS windows: each row with the last rows of the other input, counted before any condition."""

from __future__ import annotations

from sqlglot import exp

from millrace.errors import NotYet
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.sides import RowsSide
from millrace.language.joins.join_conditions import Equality, keys_of, sort_conditions
from millrace.language.joins.join_inputs import Input, scope_of
from millrace.language.joins.window_joins import Bound, Written, joined_relation
from millrace.plan.joins.time_limits import TimeLimits
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.join_nodes import RowsJoin


def bind_rows(given: Written) -> Bound:
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
    return Bound(relation, all_of(each.expression for each in found.constant))


def _partition(given: Input) -> tuple[str, ...]:
    """The columns of PARTITION BY, under their names in the join."""
    scope = scope_of([given])
    bound = [scope.column(exp.column(each.text), each.place).expression for each in given.partition]
    return tuple(name for each in bound for name in each.columns())


def _refuse_others(given: Written) -> None:
    kind = given.clauses[0].kind
    if len(given.inputs) == 2 and kind == "inner":
        return
    what = "a join of more than two inputs" if len(given.inputs) > 2 else f"{kind.upper()} JOIN"
    raise NotYet(
        f"{what} with a ROWS window is not supported yet",
        hint="Join two inputs with JOIN, and others in a query around it, or use [RANGE 5 MINUTES].",
        place=next(each.place for each in given.inputs if each.rows is not None),
    )
