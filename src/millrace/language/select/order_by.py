"""ORDER BY: by the rows' own time, or by another time that the rows of a join may have."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.places import place_of
from millrace.language.grammar.statements import OrderItem
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START


def ordered(order: tuple[OrderItem, ...], relation: BoundRelation, functions: Functions) -> BoundRelation:
    """The relation with the time that ORDER BY names as its rows' own; refuses anything else."""
    item = order[0]
    found = None if item.descending else _by(item.expression, relation, functions)
    if found is not None and len(order) == 1:
        return found
    wrong = order[1].expression if found is not None else item.expression
    raise QueryError(
        "an unbounded stream can only be ordered by its time, ascending",
        hint=_instead(item, relation),
        place=place_of(wrong),
    )


def _instead(item: OrderItem, relation: BoundRelation) -> str:
    """What to write: a rank, where results of a window are ordered by another column than its bounds."""
    names = _names(relation)
    plain = f"Write ORDER BY {names[0]}." if names else "Leave ORDER BY out: this stream has no time column."
    place = place_of(item.expression)
    if place is None or place.text in names or not {WINDOW_START, WINDOW_END} & {*names}:
        return plain
    order = f"{place.text} DESC" if item.descending else place.text
    rank = f"row_number() OVER (PARTITION BY {WINDOW_START} ORDER BY {order})"
    return f"{plain} To have the first of each window, leave ORDER BY out and write QUALIFY {rank} <= 10."


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
