"""ORDER BY: by the rows' own time, or another time that rows of a join may have; then by further columns."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.statements import OrderItem
from millrace.language.grammar.text.places import place_of
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START
from millrace.plan.nodes.relational_nodes import OrderByColumns, OrderByTime


def ordered(order: tuple[OrderItem, ...], relation: BoundRelation, functions: Functions) -> BoundRelation:
    """The rows in order of the time that ORDER BY names first, and by further columns where it is equal."""
    item = order[0]
    found = None if item.descending else _by(item.expression, relation, functions)
    if found is None:
        raise QueryError(
            "an unbounded stream can only be ordered by its time, ascending",
            hint=_instead(item, relation),
            place=place_of(item.expression),
        )
    if len(order) == 1:
        return replace(found, node=OrderByTime(found.node))
    further = tuple(_further(each, found) for each in order[1:])
    _refuse_nearly_equal(item, found)
    return replace(found, node=OrderByColumns(found.node, further))


def _further(item: OrderItem, relation: BoundRelation) -> tuple[str, bool]:
    """A column by which rows of equal time are sorted, and whether it falls."""
    node = item.expression
    found = relation.scope.meant(node) if isinstance(node, exp.Column) else None
    if found is None or found not in relation.schema.names:
        raise QueryError(
            "ORDER BY takes columns of the result after the time",
            hint=f"Select it under a name and order by that: {listed(relation.schema.names)}.",
            place=place_of(node),
        )
    if pa.types.is_nested(relation.schema.field(found).type):
        raise QueryError(f'column "{found}" has no order', hint="Order by one of its parts.", place=place_of(node))
    if item.nulls_first not in (None, not item.descending):
        raise QueryError(
            "nulls are sorted as the least value",
            hint="Leave NULLS FIRST and NULLS LAST out, or select coalesce(column, value) and order by it.",
            place=place_of(node),
        )
    return found, item.descending


def _refuse_nearly_equal(item: OrderItem, relation: BoundRelation) -> None:
    """Refuse a column of a union that holds the time of one input, and of another the end of a window."""
    name = item.expression.name
    if name in relation.schema.names and name in relation.hidden_times:
        raise QueryError(
            f'"{name}" is not the same time in all inputs of the union, so that rows cannot be sorted further',
            hint=f"Write ORDER BY {name} alone.",
            place=place_of(item.expression),
        )


def _instead(item: OrderItem, relation: BoundRelation) -> str:
    """What to write: a rank, where results of a window are ordered by another column than its bounds."""
    names = _names(relation)
    plain = f"Write ORDER BY {names[0]}." if names else "Leave ORDER BY out: this stream has no time column."
    place = place_of(item.expression)
    if place is None or place.text in names or not {WINDOW_START, WINDOW_END} & {*names}:
        return plain
    by = dict(enumerate(relation.schema.names, 1)).get(int(place.text) if place.text.isdigit() else 0, place.text)
    order = f"{by} DESC" if item.descending else by
    rank = f"row_number() OVER (PARTITION BY {WINDOW_START} ORDER BY {order})"
    return (
        f"To have the first of each window, leave ORDER BY out and write QUALIFY {rank} <= 10; to have all of them in "
        f"order, write ORDER BY {names[0]}, {order}."
    )


def _names(relation: BoundRelation) -> list[str]:
    """What may stand in ORDER BY."""
    choices = relation.choices
    chosen = [] if choices is None else choices.names()
    return sorted({*relation.times, *relation.instants, *relation.hidden_times} or chosen)


def _by(node: exp.Expr, relation: BoundRelation, functions: Functions) -> BoundRelation | None:
    """The relation by the time that a node names; None where it names none."""
    if isinstance(node, exp.Column) and not node.table:
        return _by_name(node.name, relation)
    below = relation.below
    if below is not None and _reads(node, below):
        return _by_choice(ExpressionBinder(below.scope, functions).bind(node).expression, relation, below)
    if isinstance(node, exp.Column):
        return _by_name(node.name, relation)
    if _reads(node, relation):
        return _by_choice(ExpressionBinder(relation.scope, functions).bind(node).expression, relation, relation)
    return None


def _reads(node: exp.Expr, relation: BoundRelation) -> bool:
    """True if a node reads columns of a relation, and no others."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(relation.scope.meant(each) is not None for each in columns)


def _by_name(name: str, relation: BoundRelation) -> BoundRelation | None:
    """A column of the result, or else a time column that was not selected."""
    found = relation.scope.find(name)
    if found is not None and (found in relation.times or found in relation.instants):
        return relation
    time = None if found is None or relation.choices is None else relation.choices.choice(Column(found))
    if time is not None:
        return relation.by_time(time)
    return relation if name.lower() in {each.lower() for each in relation.hidden_times} else None


def _by_choice(expression: Expression, relation: BoundRelation, read: BoundRelation) -> BoundRelation | None:
    """An expression over what a select reads that holds a time which its rows may have."""
    if expression in read.own or (isinstance(expression, Column) and expression.name in read.times):
        return relation
    time = None if read.choices is None else read.choices.choice(expression)
    return None if time is None else replace(replace(relation, choices=read.choices).by_time(time), times={})
