"""A join as it is written, with all names looked up: inputs, and the conditions of ON, USING and WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.expressions import Call
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import JoinClause, Name, Select
from millrace.language.joins.join_conditions import (
    Conjunct,
    bound_conjuncts,
    conjunct,
)
from millrace.language.joins.join_inputs import (
    JoinInput,
    owners_of,
    scope_of,
)
from millrace.language.joins.join_scopes import JoinScope, Merged


@dataclass(frozen=True)
class WrittenJoin:
    """A join as it is written, with all names looked up: inputs, the conditions of each ON, and those of WHERE."""

    select: Select
    inputs: tuple[JoinInput, ...]
    scope: JoinScope
    on: tuple[tuple[Conjunct, ...], ...]
    where: tuple[Conjunct, ...]

    @property
    def clauses(self) -> tuple[JoinClause, ...]:
        return self.select.joins


def written_join(select: Select, functions: Functions, inputs: tuple[JoinInput, ...]) -> WrittenJoin:
    """A join over its inputs, with the names in its conditions looked up."""
    merged: tuple[Merged, ...] = ()
    on: list[tuple[Conjunct, ...]] = []
    for position, clause in enumerate(select.joins, 1):
        before, here = scope_of(inputs[:position], merged), scope_of(inputs[: position + 1], merged)
        found = [_using(name, clause, before, inputs[position]) for name in clause.using]
        owners = owners_of(inputs[: position + 1])
        conditions = [conjunct(equal.expression, owners, equal.place) for equal, _ in found]
        of_sequence = select.sequence if position == len(select.joins) else None
        written_on = of_sequence.on if of_sequence is not None else clause.on
        if written_on is not None:
            conditions += bound_conjuncts(ExpressionBinder(here, functions), written_on, "the condition of ON", owners)
        if clause.match is not None:
            conditions += bound_conjuncts(ExpressionBinder(here, functions), clause.match, "MATCH_CONDITION", owners)
        merged = (*(each for each in merged if not _replaced(each, found)), *(each for _, each in found))
        on.append(tuple(conditions))
    scope = scope_of(inputs, merged)
    kept: list[Conjunct] = []
    if select.where is not None:
        binder = ExpressionBinder(scope, functions)
        kept = bound_conjuncts(binder, select.where, "the condition of WHERE", owners_of(inputs))
    return WrittenJoin(select, inputs, scope, tuple(on), tuple(kept))


def _replaced(merged: Merged, found: Sequence[tuple[Typed, Merged]]) -> bool:
    return any(merged.columns <= each.columns for _, each in found)


def _using(name: Name, clause: JoinClause, before: JoinScope, new: JoinInput) -> tuple[Typed, Merged]:
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


def _not_in_both(name: Name, before: JoinScope, new: JoinInput) -> QueryError:
    """The refusal of a column of USING, with those that there are."""
    both = [each for each in new.scope.schema.names if before.find(each) is not None]
    lacking = [] if before.find(name.text) is not None else list(before.inputs)
    lacking += [] if new.scope.find(name.text) is not None else [new.qualifier]
    which = " and ".join(f'"{each}"' for each in lacking)
    known = (
        f"The columns that both inputs have are {listed(both)}."
        if both
        else "The inputs have no columns in common: write ON x.a = y.b."
    )
    return QueryError(
        f'column "{name.text}" of USING does not exist in {which}',
        hint=f"{did_you_mean(name.text, both)}{known}",
        place=name.place,
    )
