"""Calls of aggregates, found in expressions and bound: those that are known by name, and those of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, RequestError
from millrace.kernel.aggregates.functions import result_type
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.language.expressions import typed
from millrace.language.expressions.calls import called_name, misplaced_aggregate
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES
from millrace.language.grammar.statements import Select
from millrace.language.select.aggregate_forms import AggregateForms
from millrace.language.select.written_call import WRAPPERS, WrittenCall, written_call
from millrace.plan.nodes.aggregate_nodes import Aggregation

UserAggregates = Mapping[str, UserAggregate]
"""The aggregates that users have defined, by name in lower case."""


def aggregates_in(node: exp.Expr, aggregates: UserAggregates) -> Iterator[exp.Expr]:
    """The aggregate calls inside an expression, outermost first; ranks over a result are none, nor are subqueries."""
    for each in node.walk(prune=lambda inner: isinstance(inner, exp.Window | exp.Query)):
        if isinstance(each, exp.Window):
            for part in each.iter_expressions():
                if part is not each.this:
                    yield from aggregates_in(part, aggregates)
        elif _is_name(called_name(each), aggregates):
            yield each


def first_aggregate(select: Select, aggregates: UserAggregates) -> exp.Expr | None:
    """The first aggregate call of a select."""
    parts = [each.expression for each in select.items] + [select.having, select.qualify]
    return next((found for node in parts if node is not None for found in aggregates_in(node, aggregates)), None)


def _is_name(name: str, aggregates: UserAggregates) -> bool:
    return name in AGGREGATE_NAMES or name in aggregates


def is_aggregate(node: exp.Expr, aggregates: UserAggregates) -> bool:
    """True if a node as a whole is a call of an aggregate."""
    while isinstance(node, WRAPPERS):
        node = node.this
    return _is_name(called_name(node), aggregates)


def _fitting(name: str, kinds: Sequence[pa.DataType]) -> str:
    """How a value that is no text becomes one that an aggregate takes."""
    if kinds and pa.types.is_boolean(kinds[0]):
        return f"Write {name}(CAST(column AS INT)), or count_if(column)."
    if kinds and pa.types.is_list(kinds[0]):
        return "Make a row of each element first: FROM s LATERAL VIEW explode(column) t AS element."
    return ""


class AggregateCalls:
    """Binds calls of aggregates over the rows that `binder` knows."""

    def __init__(self, binder: ExpressionBinder, aggregates: UserAggregates) -> None:
        self.binder = binder
        self.aggregates = aggregates
        self._forms = AggregateForms(binder)

    def bind(self, node: exp.Expr) -> tuple[Aggregation, pa.DataType]:
        """The aggregation of a call, still without a name, and the type of its result."""
        call = written_call(node)
        self._refuse_inner(call)
        if call.name in self.aggregates:
            return self._user_call(call, self.aggregates[call.name])
        found = self._forms.bind(call)
        kinds = [each.type_in(self.binder.scope.schema) for each in found.arguments]
        try:
            return found, result_type(found.function, kinds)
        except RequestError as error:
            raise QueryError(error.fact, hint=_fitting(call.name, kinds) or error.hint) from None

    def _refuse_inner(self, call: WrittenCall) -> None:
        for part in (*call.arguments, *call.where, *call.orders):
            for inner in aggregates_in(part, self.aggregates):
                raise misplaced_aggregate(inner)

    def _user_call(self, call: WrittenCall, user: UserAggregate) -> tuple[Aggregation, pa.DataType]:
        if call.distinct or call.orders:
            raise QueryError(f'"{call.name}" takes neither DISTINCT nor WITHIN GROUP', hint="Leave it out.")
        pairs = zip(self._forms.arguments(call, len(user.arguments)), user.arguments, strict=True)
        bound = tuple(typed.brought(self.binder.bind(node), kind).expression for node, kind in pairs)
        # As the aggregates that we have, it passes over rows where an argument is null.
        known = call.where_known(*call.arguments)
        return Aggregation("", user, bound, self._forms.where(known.where)), user.returns
