"""FROM with several inputs, bound: which kind of join it is, and what each kind is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from millrace.errors import QueryError
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.scopes import Relation, Scope
from millrace.language.grammar.statements import Select
from millrace.language.joins.bands import is_comparison
from millrace.language.joins.join_chains import bind_chain
from millrace.language.joins.join_inputs import as_input, by_further_time, check_names, settled
from millrace.language.joins.rows_joins import bind_rows
from millrace.language.joins.sequences import bind_sequence
from millrace.language.joins.window_joins import Bound, bind_inner, written
from millrace.plan.updates.update_keys import APPEND


def bind_joins(
    select: Select,
    functions: Functions,
    relations: Sequence[Relation],
    refuse_in_where: Callable[[Scope, exp.Expr], None],
    limited: bool,
    unbounded: bool = False,
) -> Bound:
    """The join that a select reads, over the relations of its inputs.

    `refuse_in_where` refuses what cannot stand in WHERE; `limited` says that the query has a limit of state,
    `unbounded` that of each input the latest row a key is kept, however old.
    """
    items = (select.source, *(each.item for each in select.joins))
    inputs = tuple(as_input(each, item, select.window) for each, item in zip(relations, items, strict=True))
    check_names(inputs)
    given = written(select, functions, inputs, refuse_in_where)
    conditions = [each for one in (*given.on, given.where) for each in one if len(each.parts) > 1]
    compared = [each.expression for each in conditions if is_comparison(each.expression)]
    given = replace(given, inputs=tuple(settled(each, compared) for each in inputs))
    if select.sequence is not None:
        return bind_sequence(given, select.sequence, limited)
    if all(each.window is None for each in inputs):
        # A window says itself by which time it goes.
        given = replace(given, inputs=tuple(by_further_time(each, compared) for each in given.inputs))
    if any(each.rows is not None for each in inputs):
        return bind_rows(given)
    if all(each.kind == "inner" for each in select.joins):
        return bind_inner(given, unbounded=unbounded)
    outer = next((each for each in select.joins if each.kind in ("left", "right", "full")), None)
    if unbounded and outer is not None:
        raise QueryError(
            "an outer join has no meaning over update streams",
            hint=f"Write JOIN, or let the query {APPEND}.",
            place=outer.place,
        )
    return bind_chain(given)
