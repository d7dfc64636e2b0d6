"""Selects that aggregate: keys, aggregates, and the select list computed over them.

A query becomes Aggregate -> Filter (HAVING) -> Project. Equal aggregates are computed once; an expression
that equals a group key reads the key's column.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from millrace.errors import NotYet, Place, QueryError, RequestError
from millrace.kernel.aggregates import result_type
from millrace.kernel.expressions import Column
from millrace.language import typed
from millrace.language.calls import called_name, not_yet_aggregate
from millrace.language.expressions import ExpressionBinder
from millrace.language.functions import AGGREGATE_NAMES, LATER_AGGREGATES
from millrace.language.places import Source, listed
from millrace.language.scopes import Relation, Scope
from millrace.language.statements import Select
from millrace.language.typed import TIMESTAMP, Typed
from millrace.language.windows import is_window_call, window_column
from millrace.plan.nodes import WINDOW_END, WINDOW_START, Aggregate, Aggregation, Window


def aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregate calls inside an expression, outermost first."""
    return (
        each for each in node.walk() if called_name(each) in AGGREGATE_NAMES or called_name(each) in LATER_AGGREGATES
    )


def first_aggregate(select: Select) -> exp.Expr | None:
    """The first aggregate call of a select."""
    nodes = [each.expression for each in select.items] + ([select.having] if select.having is not None else [])
    return next((found for node in nodes for found in aggregates_in(node)), None)


class Groups(ExpressionBinder):
    """The group keys of a select, found by column, expression, ordinal or alias."""

    def __init__(self, source: Source, relation: Relation, select: Select) -> None:
        super().__init__(source, relation.scope)
        self.select = select
        self.keys: list[tuple[str, Typed]] = []
        for node in select.groups:
            self._add(self._meant(node))

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The expression behind an ordinal or an alias of the select list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._at(node)
        if isinstance(node, exp.Column) and not node.table and self.scope.find(node.name) is None:
            for item in self.select.items:
                if item.alias is not None and item.alias.text.lower() == node.name.lower():
                    return item.expression
        return node

    def _at(self, node: exp.Expr) -> exp.Expr:
        count = len(self.select.items)
        if not node.name.isdigit() or not 1 <= int(node.name) <= count:
            raise QueryError(
                f"the select list has no column {node.name}",
                hint=f"An ordinal goes from 1 to {count}.",
                place=self.place(node),
            )
        return self.select.items[int(node.name) - 1].expression

    def _add(self, node: exp.Expr) -> None:
        if is_window_call(node) or _is_window_word(node, self.scope):
            return
        for aggregate in aggregates_in(node):
            raise QueryError(
                "an aggregate stands in GROUP BY",
                hint="Group by columns; aggregates are selected.",
                place=self.place(aggregate),
            )
        bound = self.bind(node)
        if all(bound.expression != key.expression for _, key in self.keys):
            self.keys.append((self._name(bound), bound))

    def _name(self, bound: Typed) -> str:
        taken = {name.lower() for name, _ in self.keys} | {WINDOW_START, WINDOW_END}
        if isinstance(bound.expression, Column) and bound.expression.name.lower() not in taken:
            return bound.expression.name
        return _unused("k", taken | {name.lower() for name in self.scope.schema.names})


def _is_window_word(node: exp.Expr, scope: Scope) -> bool:
    if window_column(node) is not None:
        return True
    return (
        isinstance(node, exp.Column)
        and not node.table
        and node.name.lower() == "window"
        and scope.find("window") is None
    )


def _unused(prefix: str, taken: set[str]) -> str:
    number = 0
    while f"{prefix}{number}" in taken:
        number += 1
    return f"{prefix}{number}"


class AggregateBinder(ExpressionBinder):
    """Binds the select list and HAVING over the result of an aggregate, gathering the aggregates on the way."""

    def __init__(self, source: Source, relation: Relation, groups: Groups) -> None:
        super().__init__(source, relation.scope)
        self.inner = ExpressionBinder(source, relation.scope)
        self.keys = groups.keys
        self.aliases: dict[str, exp.Expr] = {}
        self.aggregations: list[Aggregation] = []

    def bind(self, node: exp.Expr) -> Typed:
        name = called_name(node)
        if name in LATER_AGGREGATES:
            raise not_yet_aggregate(name, self.place(node))
        if name in AGGREGATE_NAMES:
            return self._aggregate(node, AGGREGATE_NAMES[name])
        bound = window_column(node)
        if bound is not None:
            return typed.column(bound, TIMESTAMP, self.place(node))
        return self._key(node) or super().bind(node)

    def _key(self, node: exp.Expr) -> Typed | None:
        """The key's column, when the node is a group key."""
        if not self.keys or not self._reads_input_alone(node):
            return None
        expression = self.inner.bind(node).expression
        for name, key in self.keys:
            if key.expression == expression:
                return typed.column(name, key.type, self.place(node))
        return None

    def _reads_input_alone(self, node: exp.Expr) -> bool:
        columns = list(node.find_all(exp.Column))
        known = all(self.scope.find(each.name) is not None for each in columns)
        return bool(columns) and known and next(aggregates_in(node), None) is None

    def column(self, node: exp.Column) -> Typed:
        found = self.scope.find(node.name)
        if found is None and not node.table and node.name.lower() in self.aliases:
            return self.bind(self.aliases[node.name.lower()])
        bound = super().column(node)
        raise QueryError(
            f'column "{bound.expression}" is neither grouped nor aggregated',
            hint=f"Add it to GROUP BY, or take min({bound.expression}) or max({bound.expression}).",
            place=bound.place,
        )

    def _aggregate(self, node: exp.Expr, function: str) -> Typed:
        place = self.place(node)
        argument = self._argument(node, function, place)
        kind = _result_type(function, argument, place)
        wanted = () if argument is None else (argument.expression,)
        for known in self.aggregations:
            if (known.function, known.arguments) == (function, wanted):
                return typed.column(known.name, kind, place)
        taken = {name.lower() for name, _ in self.keys} | {each.name for each in self.aggregations}
        self.aggregations.append(Aggregation(_unused("a", taken), function, wanted))
        return typed.column(self.aggregations[-1].name, kind, place)

    def _argument(self, node: exp.Expr, function: str, place: Place) -> Typed | None:
        """The argument of an aggregate; None for `count(*)` and `count(1)`."""
        if len(node.expressions) != 1:
            raise QueryError(
                f'"{function}" takes 1 argument, not {len(node.expressions)}',
                hint=f"Write {function}(column).",
                place=place,
            )
        given = node.expressions[0]
        if isinstance(given, exp.Distinct):
            raise NotYet(
                f"{function}(DISTINCT ...) has no engine part yet",
                hint="Group by the column as well, write the result to a sink and count it in a second network.",
                place=place,
            )
        if isinstance(given, exp.Star) and function == "count":
            return None
        argument = self.inner.bind(given)
        if function == "count" and argument.is_constant and argument.value.is_valid:
            return None
        return argument

    def aggregate(self, relation: Relation, window: Window) -> Aggregate:
        """The node that computes the keys and all aggregates seen so far."""
        # A window of keys alone still needs rows to be counted, or nothing would say which windows there are.
        taken = {name.lower() for name, _ in self.keys}
        aggregations = self.aggregations or [Aggregation(_unused("a", taken), "count")]
        keys = tuple((name, key.expression) for name, key in self.keys)
        return Aggregate(relation.node, window, keys, tuple(aggregations))


def _result_type(function: str, argument: Typed | None, place: Place) -> pa.DataType:
    try:
        return result_type(function, [] if argument is None else [argument.type])
    except RequestError as error:
        raise QueryError(error.fact, hint=error.hint, place=place) from None


def refuse_over(select: Select, source: Source) -> None:
    """Window functions."""
    for item in select.items:
        for node in item.expression.find_all(exp.Window):
            raise NotYet(
                "window functions with OVER have no engine part yet",
                hint="Aggregate over a window of the stream: FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE].",
                place=source.of_node(node),
            )


def refuse_nested(relation: Relation, place: Place) -> None:
    """An aggregate over an aggregate."""
    if relation.aggregated:
        raise NotYet(
            "an aggregate over an aggregate has no engine part yet",
            hint="Write the inner result to a sink and aggregate it in a second network.",
            place=place,
        )


def refuse_star(place: Place, names: list[str]) -> QueryError:
    """`*` in a select that aggregates."""
    return QueryError(
        "* cannot be selected beside an aggregate", hint=f"Name the columns: {listed(names)}.", place=place
    )
