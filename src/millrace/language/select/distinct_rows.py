"""SELECT DISTINCT: the keys of a window, or rows that are kept until their time has passed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.statements import Select, SelectItem
from millrace.language.grammar.text.places import placed_as
from millrace.language.select.aggregate_calls import UserAggregates, first_aggregate
from millrace.language.select.items import is_star
from millrace.language.windows.window_clauses import Windows
from millrace.language.windows.windowed_rows import bucket_in, is_instant
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Distinct, Project


def as_groups(
    select: Select, given: BoundRelation, windows: Windows, functions: Functions, aggregates: UserAggregates
) -> Select:
    """A select of different rows, over a window or by a monotone function of the time, as one that groups by them."""
    plain = not select.groups and select.having is None and first_aggregate(select, aggregates) is None
    if select.distinct is None or not plain or any(item.expression.find(exp.Window) for item in select.items):
        return select
    items = tuple(each for item in select.items for each in _expanded(item, given))
    if not windows.all():
        binder = ExpressionBinder(given.scope, functions)
        bound = [binder.bind(each.expression).expression for each in items]
        if not _by_function(bound, given):
            return select
    # A window that gives a result for each row gives equal ones to rows of equal time.
    trails = any(each.slide is None and each.kind != "session" for each in windows.all())
    groups = tuple(each.expression for each in items)
    return replace(select, items=items, groups=groups, distinct=select.distinct if trails else None)


def _by_function(bound: list[Expression], given: BoundRelation) -> bool:
    """True if some expression is a monotone function of a time that the rows may have, and none is such a time."""
    read = [given, *given.by_times_in(bound)]
    if any(is_instant(each, one) for each in bound for one in read):
        return False
    return any(bucket_in(each, one) for each in bound for one in read)


def _expanded(item: SelectItem, given: BoundRelation) -> list[SelectItem]:
    """A star as the columns it stands for."""
    if not is_star(item.expression):
        return [item]
    columns = given.scope.written(item.expression, item.place)
    return [SelectItem(placed_as(each, item.expression), place=item.place) for each in columns]


def distinct(relation: BoundRelation, place: Place | None) -> BoundRelation:
    """Each row once; refuses rows without their time, which would have to be remembered for ever."""
    below = relation.below
    relation = _by_seen_time(relation)
    if relation.times or relation.instants or relation.choices is not None:
        return replace(relation, node=_distinct(relation), rank=None, choices=None, below=None)
    raise QueryError(
        "DISTINCT without a window never ends on an unbounded stream", hint=_hint(relation, below), place=place
    )


def _distinct(relation: BoundRelation) -> Node:
    """Different rows; arrays and structs are kept as the texts that they are compared by."""
    columns = [typed.column(each.name, each.type) for each in relation.schema]
    if not any(pa.types.is_nested(each.type) for each in columns):
        return Distinct(relation.node)
    names = relation.schema.names
    keys = tuple((name, typed.key(each).expression) for name, each in zip(names, columns, strict=True))
    values = tuple((each.name, typed.of_key(Column(each.name), each.type, None).expression) for each in relation.schema)
    return Project(Distinct(Project(relation.node, keys)), values)


def _hint(relation: BoundRelation, below: BoundRelation | None) -> str:
    """What would bound it."""
    if below is not None and below.choices is not None:
        names = below.choices.names()
        return f"Select {names[0]} as well." if names else "Select the time columns of all inputs as well."
    time = max(relation.hidden_times, default=None)
    if time in (WINDOW_START, WINDOW_END):
        return f"Select {time} as well: then equal rows of one window are one."
    further = f", or select {time} as well" if time else ""
    length = "1 MINUTE" if relation.unit == "time" else "10"
    return f"Bound it with a window: FROM {relation.label} [RANGE {length} SLIDE {length}]{further}."


def _by_seen_time(relation: BoundRelation) -> BoundRelation:
    """Rows of a join with a selected time as their own; unchanged if all times are selected, which say the latest."""
    choices = relation.choices
    if choices is None or relation.times or relation.instants:
        return replace(relation, choices=None)
    if {part for part, more in choices.columns.values()} == choices.parts:
        return relation
    times = [choices.choice(Column(name)) for name in choices.columns]
    time = next((each for each in times if each is not None), None)
    return replace(relation, choices=None) if time is None else relation.by_time(time)
