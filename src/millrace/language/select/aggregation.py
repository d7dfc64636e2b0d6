"""Selects that aggregate: the select list computed over keys and aggregates.

A query becomes Aggregate -> Filter (HAVING) -> Rank -> Filter (QUALIFY) -> Project. Equal aggregates are computed once;
an expression that equals a group key reads the key's column.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millrace.errors import Place, QueryError, listed
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.places import place_of
from millrace.language.grammar.statements import Select
from millrace.language.select.aggregate_calls import AggregateCalls, Users, aggregates_in, is_aggregate
from millrace.language.select.groups import Key, unused
from millrace.language.select.ranks import Ranks
from millrace.language.select.select_binder import SelectBinder
from millrace.language.windows.frames import Frame
from millrace.language.windows.windows import window_column
from millrace.plan.nodes.aggregate_nodes import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    InstantWindow,
    PairWindow,
)


def first_aggregate(select: Select, users: Users) -> exp.Expr | None:
    """The first aggregate call of a select."""
    parts = [each.expression for each in select.items] + [select.having, select.qualify]
    return next((found for node in parts if node is not None for found in aggregates_in(node, users)), None)


class AggregateBinder(SelectBinder):
    """Binds the select list, HAVING and QUALIFY over the result of an aggregate, and gathers the aggregates."""

    def __init__(self, select: Select, frame: Frame, keys: list[Key], functions: Functions, users: Users) -> None:
        ranks = Ranks(timed_results(frame, keys), [name for name, _ in keys])
        super().__init__(frame.relation.scope, functions, ranks, select)
        self.inner = ExpressionBinder(frame.relation.scope, functions)
        self.calls = AggregateCalls(self.inner, users)
        self.users = users
        self.frame = frame
        self.keys = keys
        self.aggregations: list[Aggregation] = []

    def bind(self, node: exp.Expr) -> Typed:
        if is_aggregate(node, self.users):
            return self._aggregate(node)
        return self._bound(node) or self._key(node) or super().bind(node)

    def _bound(self, node: exp.Expr) -> Typed | None:
        """A bound of the window, when the node names one of the select's own."""
        name = window_column(node, self.scope)
        hidden = not self.frame.written and isinstance(node, exp.Column) and self.scope.meant(node) is not None
        if name is None or hidden or self.frame.bounds_type is None:
            return None
        return self.frame.bound(name, place_of(node))

    def _key(self, node: exp.Expr) -> Typed | None:
        """The key's column, when the node is a group key."""
        if not self._reads_input_alone(node):
            return None
        bound = self.inner.bind(node)
        for name, key in self.keys:
            if key.expression == bound.expression:
                return typed.column(name, key.type, bound.place)
        return self.frame.key(bound)

    def _reads_input_alone(self, node: exp.Expr) -> bool:
        columns = list(node.find_all(exp.Column))
        known = all(self.scope.meant(each) is not None for each in columns)
        plain = node.find(exp.Window) is None and next(aggregates_in(node, self.users), None) is None
        return bool(columns) and known and plain

    def column(self, node: exp.Column) -> Typed:
        if self.is_alias(node):
            return super().column(node)
        bound = self.inner.column(node)
        raise QueryError(
            f'column "{bound.expression}" is neither grouped nor aggregated',
            hint=f"Add it to GROUP BY, or take min({bound.expression}) or max({bound.expression}).",
            place=bound.place,
        )

    def _aggregate(self, node: exp.Expr) -> Typed:
        found, kind = self.calls.bind(node)
        for known in self.aggregations:
            if replace(known, name="") == found:
                return typed.column(known.name, kind, place_of(node))
        self.aggregations.append(replace(found, name=self._unused()))
        return typed.column(self.aggregations[-1].name, kind, place_of(node))

    def _unused(self) -> str:
        taken = {name.lower() for name, _ in self.keys} | {each.name for each in self.aggregations}
        return unused("a", taken)

    def aggregate(self, where: Expression | None) -> Aggregate:
        """The node that computes the keys and all aggregates seen so far."""
        # A window of keys alone still needs rows to be counted, or nothing would say which windows there are.
        aggregations = self.aggregations or [Aggregation(self._unused(), "count")]
        keys = tuple((name, key.expression) for name, key in self.keys)
        return Aggregate(self.frame.relation.node, self.frame.window, keys, tuple(aggregations), where)

    def bounds(self, place: Place | None) -> list[Key]:
        """Both bounds of the window, as they are selected."""
        return [(name, self.frame.bound(name, place)) for name in (WINDOW_START, WINDOW_END)]


def timed_results(frame: Frame, keys: list[Key]) -> dict[Expression, int | None]:
    """The expressions over the results that say their own time: what each adds to it, None for another value."""
    given = frame.relation
    found = frame.timed()
    if isinstance(frame.window, PairWindow):
        return {Call("greatest", (Column(frame.window.first), Column(frame.window.second))): 0}
    if not isinstance(frame.window, InstantWindow):
        return found
    for name, key in keys:
        if key.expression in given.own:
            found[Column(name)] = 0
        if isinstance(key.expression, Column) and key.expression.name in {*given.times, *given.instants}:
            found[Column(name)] = given.times.get(key.expression.name)
    return found


def refuse_star(place: Place | None, names: list[str]) -> QueryError:
    """`*` in a select that aggregates."""
    return QueryError(
        "* cannot be selected beside an aggregate", hint=f"Name the columns: {listed(names)}.", place=place
    )
