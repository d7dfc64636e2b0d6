"""What is refused in a select: names that do not exist, and clauses without an aggregate or with one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from millrace.errors import QueryError, did_you_mean, listed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions, refuse_unknown
from millrace.language.expressions.refused_expressions import refused_over
from millrace.language.grammar.statements import Name, Select
from millrace.language.grammar.text.places import place_of
from millrace.language.select.aggregate_calls import UserAggregates, aggregates_in
from millrace.language.windows.window_clauses import Windows


def unknown_input(name: Name, queries: Collection[str], known: Sequence[str]) -> QueryError:
    """The error for a name in FROM that is none of the `known`; `queries` are the names of all queries."""
    if name.text.lower() in queries:
        return QueryError(
            f'query "{name.text}" does not stand before the one that reads it',
            hint="Put it before, or make it a view, which may stand anywhere: CREATE VIEW name AS SELECT ...",
            place=name.place,
        )
    there = f"The streams are {listed(known)}." if known else "Declare it with CREATE STREAM."
    return QueryError(
        f'stream "{name.text}" does not exist', hint=f"{did_you_mean(name.text, known)}{there}", place=name.place
    )


def refuse_in_where(select: Select, aggregates: UserAggregates, given: Sequence[BoundRelation]) -> None:
    """Refuse aggregates and ranks in WHERE, and names that the select list gives."""
    if select.where is None:
        return
    refuse_above_rows(select.where, aggregates)
    aliases = {each.alias.text.lower(): each.expression for each in select.items if each.alias is not None}
    for column in select.where.find_all(exp.Column):
        written = aliases.get(column.name.lower())
        if written is None or column.table or any(each.scope.find(column.name) is not None for each in given):
            continue
        aggregated = next(aggregates_in(written, aggregates), None) is not None
        raise QueryError(
            f'"{column.name}" is a name of the select list, and WHERE chooses rows before',
            hint="Write HAVING, after GROUP BY." if aggregated else "Write the expression itself in WHERE.",
            place=place_of(column),
        )


def refuse_above_rows(node: exp.Expr, aggregates: UserAggregates) -> None:
    """Refuse aggregates and ranks in a condition on rows."""
    for over in node.find_all(exp.Window):
        raise refused_over(over)
    for aggregate in aggregates_in(node, aggregates):
        raise QueryError(
            "an aggregate is not allowed in WHERE",
            hint="WHERE chooses rows before they are aggregated; use HAVING.",
            place=place_of(aggregate),
        )


def refuse_window(select: Select, windows: Windows, functions: Functions) -> None:
    """Refuse a window in a select that has nothing to aggregate."""
    for clause in windows.all():
        # A call of an unknown function may be meant as an aggregate.
        refuse_unknown([each.expression for each in select.items], functions)
        raise QueryError(
            "a window is given in a query without an aggregate",
            hint="Remove the window, or aggregate over it, for example with count(*).",
            place=clause.place,
        )


def refuse_having(select: Select, aggregate: exp.Expr | None) -> None:
    """Refuse HAVING in a select that has nothing to aggregate."""
    if select.having is not None and aggregate is None and not select.groups:
        raise QueryError(
            "HAVING is given in a query without an aggregate",
            hint="Write WHERE, which chooses rows.",
            place=place_of(select.having),
        )
