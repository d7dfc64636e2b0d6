"""The select list, HAVING and QUALIFY, bound over rows, or over keys and aggregates.

Rules:
- Names of the list are known after it, and inside OVER, where the rank itself has none yet.
- What a name stands for is bound as it stands in the list, so a name never leads back to itself.
- A select that aggregates becomes Aggregate -> Filter (HAVING) -> Rank -> Filter (QUALIFY) -> Project. Equal aggregates
  are computed once; an expression that equals a group key reads the key's column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.columns.short_circuit import CONNECTIVES
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import Select
from millrace.language.grammar.text.places import place_of
from millrace.language.select.aggregate_calls import AggregateCalls, UserAggregates, aggregates_in, is_aggregate
from millrace.language.select.group_keys import Key, unused_names
from millrace.language.select.ranks import Ranks
from millrace.language.windows.window_clauses import window_column
from millrace.language.windows.windowed_rows import WindowedRows
from millrace.plan.nodes.aggregate_nodes import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    InstantWindow,
    PairWindow,
)

Named = Mapping[str, exp.Expr]


class SelectBinder(ExpressionBinder):
    """Binds expressions of a select."""

    def __init__(self, scope: Scope, functions: Functions, ranks: Ranks, select: Select) -> None:
        super().__init__(scope, functions)
        self.ranks = ranks
        self._aliases: Named = {each.alias.text.lower(): each.expression for each in select.items if each.alias}
        self._known: Named = {}
        self._ranked = True

    def having(self, node: exp.Expr) -> Typed:
        """The condition of HAVING, which comes before ranks."""
        self._ranked = False
        with self._knowing(self._aliases):
            found = self.condition(node, "the condition of HAVING")
        self._ranked = True
        return found

    def qualify(self, node: exp.Expr) -> Typed:
        """The condition of QUALIFY."""
        with self._knowing(self._aliases):
            return self.condition(node, "the condition of QUALIFY")

    @contextmanager
    def _knowing(self, names: Named) -> Iterator[None]:
        before, self._known = self._known, names
        try:
            yield
        finally:
            self._known = before

    def is_alias(self, node: exp.Column) -> bool:
        """True if a node is a name of the select list, and no column."""
        return not node.table and self.scope.find(node.name) is None and node.name.lower() in self._known

    def column(self, node: exp.Column) -> Typed:
        self.refuse_unknown_name(node)
        if not self.is_alias(node):
            return super().column(node)
        meant = self._known[node.name.lower()]
        if not self._ranked and meant.find(exp.Window) is not None:
            return super().over(node)
        with self._knowing({}):
            return self.bind(meant)

    def refuse_unknown_name(self, node: exp.Column) -> None:
        """Refuse a name that the select list gives where it is used inside the list, and a misspelt name."""
        if node.table or self.is_alias(node) or self.scope.split(node)[1] or self.scope.meant(node) is not None:
            return
        if node.name.lower() in self._aliases and not self._known:
            raise QueryError(
                f'"{node.name}" is a name of this select list, and is known after it',
                hint="Write the expression itself again, or put a query around this one: SELECT ... FROM (SELECT ...).",
                place=place_of(node),
            )
        near = did_you_mean(node.name, self._aliases) if self._known else ""
        if self._known and (near or not did_you_mean(node.name, self.scope.schema.names)):
            names = listed([*self._aliases, *self.scope.schema.names])
            hint = f"{near}The names of the select list, and the columns, are {names}."
            raise QueryError(f'column "{node.name}" does not exist', hint=hint, place=place_of(node))

    def over(self, node: exp.Expr) -> Typed:
        if not self._ranked or not isinstance(node, exp.Window):
            return super().over(node)
        plain = {name: each for name, each in self._aliases.items() if each.find(exp.Window) is None}
        with self._knowing(plain):
            return self.ranks.column(self, node)


class AggregateBinder(SelectBinder):
    """Binds the select list, HAVING and QUALIFY over the result of an aggregate, and gathers the aggregates."""

    def __init__(
        self, select: Select, windowed: WindowedRows, keys: list[Key], functions: Functions, aggregates: UserAggregates
    ) -> None:
        ranks = Ranks(timed_results(windowed, keys), [name for name, _ in keys])
        super().__init__(windowed.relation.scope, functions, ranks, select)
        self.inner = ExpressionBinder(windowed.relation.scope, functions)
        self.calls = AggregateCalls(self.inner, aggregates)
        self.aggregates = aggregates
        self.windowed = windowed
        self.keys = keys
        self._key_names = {key.expression: name for name, key in reversed(keys)}
        self.groups_by_conditions = any(
            isinstance(each, Call) and each.function in CONNECTIVES for each in self._key_names
        )
        self._aggregations: dict[Aggregation, str] = {}
        self._names = unused_names("a", {name.lower() for name, _ in keys})

    def known(self, node: exp.Expr) -> Typed | None:
        if is_aggregate(node, self.aggregates):
            return self._aggregate(node)
        return self._bound(node) or self._key(node)

    def _bound(self, node: exp.Expr) -> Typed | None:
        """A bound of the window, when the node names one of the select's own."""
        name = window_column(node, self.scope)
        hidden = not self.windowed.written and isinstance(node, exp.Column) and self.scope.meant(node) is not None
        if name is None or hidden or self.windowed.bounds_type is None:
            return None
        return self.windowed.bound(name, place_of(node))

    def _key(self, node: exp.Expr) -> Typed | None:
        """The key's column, when the node is a group key."""
        if not self._reads_input_alone(node):
            return None
        bound = self.inner.bind(node)
        name = self._key_names.get(bound.expression)
        return self.windowed.key(bound) if name is None else typed.of_key(Column(name), bound.type, bound.place)

    def _reads_input_alone(self, node: exp.Expr) -> bool:
        columns = list(node.find_all(exp.Column))
        known = all(self.scope.meant(each) is not None or self.scope.split(each)[1] for each in columns)
        plain = node.find(exp.Window) is None and next(aggregates_in(node, self.aggregates), None) is None
        return bool(columns) and known and plain

    def column(self, node: exp.Column) -> Typed:
        self.refuse_unknown_name(node)
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
        if found not in self._aggregations:
            self._aggregations[found] = next(self._names)
        return typed.column(self._aggregations[found], kind)

    def aggregate(self, where: Expression | None) -> Aggregate:
        """The node that computes the keys and all aggregates seen so far."""
        # A window of keys alone still needs rows to be counted, or nothing would say which windows there are.
        named = self._aggregations or {Aggregation("", "count"): next(self._names)}
        aggregations = (replace(each, name=name) for each, name in named.items())
        keys = tuple((name, typed.key(key).expression) for name, key in self.keys)
        return Aggregate(self.windowed.relation.node, self.windowed.window, keys, tuple(aggregations), where)

    def bounds(self, place: Place | None) -> list[Key]:
        """Both bounds of the window, as they are selected."""
        return [(name, self.windowed.bound(name, place)) for name in (WINDOW_START, WINDOW_END)]


def timed_results(windowed: WindowedRows, keys: list[Key]) -> dict[Expression, int | None]:
    """The expressions over the results that say their own time: what each adds to it, None for another value."""
    given = windowed.relation
    found = windowed.timed()
    if isinstance(windowed.window, PairWindow):
        return {Call("greatest", (Column(windowed.window.first), Column(windowed.window.second))): 0}
    if not isinstance(windowed.window, InstantWindow):
        return found
    for name, key in keys:
        if key.expression in given.own:
            found[Column(name)] = 0
        if isinstance(key.expression, Column) and key.expression.name in {*given.times, *given.instants}:
            found[Column(name)] = given.times.get(key.expression.name)
    return found
