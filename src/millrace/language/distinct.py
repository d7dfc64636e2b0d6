"""SELECT DISTINCT: the keys of a window, or rows that are forgotten when time has passed them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.language.aggregate_calls import Users
from millrace.language.aggregation import first_aggregate
from millrace.language.expressions import ExpressionBinder
from millrace.language.framing import is_instant
from millrace.language.items import is_star
from millrace.language.monotone import bucket_of
from millrace.language.places import Source
from millrace.language.scopes import Relation
from millrace.language.statements import Select, SelectItem
from millrace.language.windows import Windows
from millrace.plan.nodes import Distinct


def as_groups(select: Select, given: Relation, windows: Windows, source: Source, users: Users) -> Select:
    """A select of different rows, over a window or by a monotone function of the time, as one that groups by them."""
    plain = not select.groups and select.having is None and first_aggregate(select, users) is None
    if select.distinct is None or not plain or any(item.expression.find(exp.Window) for item in select.items):
        return select
    items = tuple(each for item in select.items for each in _expanded(item, given))
    if not windows.all():
        binder = ExpressionBinder(source, given.scope)
        bound = [binder.bind(each.expression).expression for each in items]
        if any(is_instant(each, given) for each in bound) or not any(bucket_of(each, given.times) for each in bound):
            return select
    # A window that gives a result for each row gives equal ones to rows of equal time.
    trails = any(each.slide is None and each.kind != "session" for each in windows.all())
    groups = tuple(each.expression for each in items)
    return replace(select, items=items, groups=groups, distinct=select.distinct if trails else None)


def _expanded(item: SelectItem, given: Relation) -> list[SelectItem]:
    """A star as the columns it stands for."""
    if not is_star(item.expression):
        return [item]
    return [SelectItem(exp.column(name), None, item.place) for name in given.schema.names]


def distinct(relation: Relation, place: Place) -> Relation:
    """Each row once; refuses rows without their time, which would have to be remembered for ever."""
    if relation.times or relation.instants:
        return replace(relation, node=Distinct(relation.node), rank=None)
    time = next(iter(sorted(relation.hidden_times)), None)
    further = f", or select {time} as well" if time else ""
    raise QueryError(
        "DISTINCT without a window never ends on an unbounded stream",
        hint=f"Bound it with a window: FROM {relation.label} [RANGE 1 MINUTE SLIDE 1 MINUTE]{further}.",
        place=place,
    )
