"""Calls of aggregates: DISTINCT, FILTER, IGNORE NULLS, WITHIN GROUP and constants brought to one plain form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from millrace.errors import NotYet, QueryError, RequestError
from millrace.kernel.aggregates.functions import result_type
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.columns.expressions import Expression
from millrace.language.expressions import typed
from millrace.language.expressions.calls import called_name, check_count, misplaced_aggregate
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES, LATER_AGGREGATES
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.places import place_of
from millrace.language.grammar.statements import Select
from millrace.plan.nodes.aggregate_nodes import Aggregation
from millrace.plan.nodes.conditions import all_of

UserAggregates = Mapping[str, UserAggregate]
"""The aggregates that users have defined, by name in lower case."""

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_DISTINCT = {"count": "count_distinct", "sum": "sum_distinct", "avg": "avg_distinct", "min": "min", "max": "max"}
_SEVERAL_HINT = (
    "Group by several in a subquery and count its rows: SELECT window_start, count(*) FROM (SELECT a, b FROM s "
    "[RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY a, b) GROUP BY window_start, window_end."
)


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
    return name in AGGREGATE_NAMES or name in LATER_AGGREGATES or name in aggregates


def is_aggregate(node: exp.Expr, aggregates: UserAggregates) -> bool:
    """True if a node as a whole is a call of an aggregate."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return _is_name(called_name(node), aggregates)


@dataclass(frozen=True)
class WrittenCall:
    """A call as it is written, without what stands around it; `where` are the conditions of FILTER and the like."""

    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...] = ()
    distinct: bool = False
    value_order: exp.Ordered | None = None

    @property
    def name(self) -> str:
        return called_name(self.node)


def written_call(node: exp.Expr) -> WrittenCall:
    """The call inside FILTER, IGNORE NULLS, WITHIN GROUP and DISTINCT."""
    match node:
        case exp.Filter():
            inner = written_call(node.this)
            return replace(inner, where=(*inner.where, node.expression.this))
        case exp.RespectNulls():
            return written_call(node.this)
        case exp.IgnoreNulls():
            return _ignoring_nulls(written_call(node.this))
        case exp.WithinGroup():
            return replace(written_call(node.this), value_order=node.expression.expressions[0])
    given = tuple(node.expressions)
    if given and isinstance(given[0], exp.Distinct):
        return WrittenCall(node, tuple(given[0].expressions), distinct=True)
    return WrittenCall(node, given)


def _ignoring_nulls(call: WrittenCall) -> WrittenCall:
    """`first(x) IGNORE NULLS` is first(x) over the rows where x is not null."""
    if AGGREGATE_NAMES.get(call.name) not in ("first", "last"):
        raise QueryError("IGNORE NULLS is only allowed with first and last", hint="Leave it out.")
    return replace(call, where=(*call.where, exp.Is(this=call.arguments[0], expression=exp.Null()).not_()))


class AggregateCalls:
    """Binds calls of aggregates over the rows that `binder` knows."""

    def __init__(self, binder: ExpressionBinder, aggregates: UserAggregates) -> None:
        self.binder = binder
        self.aggregates = aggregates

    def bind(self, node: exp.Expr) -> tuple[Aggregation, pa.DataType]:
        """The aggregation of a call, still without a name, and the type of its result."""
        call = written_call(node)
        self._refuse_inner(call)
        if call.name in LATER_AGGREGATES:
            raise NotYet(f'the aggregate "{call.name}" is not supported yet', hint=LATER_AGGREGATES[call.name])
        if call.name in self.aggregates:
            return self._user_call(call, self.aggregates[call.name])
        found = self._plain(call)
        kinds = [each.type_in(self.binder.scope.schema) for each in found.arguments]
        try:
            return found, result_type(found.function, kinds)
        except RequestError as error:
            raise QueryError(error.fact, hint=error.hint) from None

    def _refuse_inner(self, call: WrittenCall) -> None:
        for part in (*call.arguments, *call.where):
            for inner in aggregates_in(part, self.aggregates):
                raise misplaced_aggregate(inner)

    def _plain(self, call: WrittenCall) -> Aggregation:
        function = AGGREGATE_NAMES[call.name]
        if call.value_order is not None or call.name == "percentile_cont":
            return self._within_group(call)
        if call.distinct:
            return self._distinct(call, function)
        if call.name == "count_if":
            (argument,) = self._arguments(call, 1)
            truth = self.binder.condition(argument, 'the argument of "count_if"')
            return Aggregation("", "count", (), self._where(call.where, truth))
        if function in ("percentile", "approx_percentile"):
            return self._quantile(call, function)
        if function in ("first", "last"):
            return self._first_or_last(call, function)
        if function in ("max_by", "min_by"):
            return self._of(function, self._arguments(call, 2), call.where)
        (argument,) = self._arguments(call, 1)
        if function == "count" and self._counts_all(argument):
            return Aggregation("", "count", (), self._where(call.where))
        if function in ("bool_and", "bool_or"):
            truth = self.binder.condition(argument, f'the argument of "{call.name}"')
            return Aggregation("", function, (truth.expression,), self._where(call.where))
        return self._of(function, (argument,), call.where)

    def _of(
        self,
        function: str,
        arguments: Sequence[exp.Expr],
        where: Sequence[exp.Expr],
        parameters: tuple[float, ...] = (),
    ) -> Aggregation:
        bound = tuple(self.binder.bind(each).expression for each in arguments)
        return Aggregation("", function, bound, self._where(where), parameters)

    def _where(self, conditions: Sequence[exp.Expr], *further: Typed) -> Expression | None:
        bound = [*(self.binder.condition(each, "the condition of FILTER") for each in conditions), *further]
        return all_of(each.expression for each in bound)

    def _arguments(self, call: WrittenCall, least: int, most: int | None = None) -> tuple[exp.Expr, ...]:
        """The arguments, if their number is right."""
        example = f"Write {call.name}({', '.join(('column', 'other')[:least])})."
        check_count(call.name, len(call.arguments), least, most, example)
        return call.arguments

    def _counts_all(self, node: exp.Expr) -> bool:
        """`count(*)` and `count(1)`."""
        if isinstance(node, exp.Star):
            return True
        bound = self.binder.bind(node)
        return bound.is_constant and bool(bound.value.is_valid)

    def _distinct(self, call: WrittenCall, function: str) -> Aggregation:
        if function not in _DISTINCT or call.name == "count_if":
            raise QueryError(
                f'"{call.name}" does not take DISTINCT', hint="DISTINCT goes with count, sum, avg, min and max."
            )
        if len(call.arguments) != 1 or isinstance(call.arguments[0], exp.Star):
            raise QueryError(
                f"{call.name}(DISTINCT ...) takes one column",
                hint=_SEVERAL_HINT if call.name == "count" else "Name one column.",
            )
        return self._of(_DISTINCT[function], call.arguments, call.where)

    def _first_or_last(self, call: WrittenCall, function: str) -> Aggregation:
        arguments = self._arguments(call, 1, 2)
        if len(arguments) == 1:
            return self._of(function, arguments, call.where)
        if not isinstance(arguments[1], exp.Boolean):
            raise QueryError(
                f'the second argument of "{call.name}" is TRUE or FALSE',
                hint=f"Write {call.name}(column, TRUE) to pass nulls over.",
                place=place_of(arguments[1]),
            )
        plain = replace(call, arguments=arguments[:1])
        plain = _ignoring_nulls(plain) if arguments[1].this else plain
        return self._of(function, plain.arguments, plain.where)

    # Quantiles

    def _quantile(self, call: WrittenCall, function: str) -> Aggregation:
        if call.name == "median":
            return self._of(function, self._arguments(call, 1), call.where, (0.5,))
        # Spark's accuracy of approx_percentile is read; ours is always one percent.
        arguments = self._arguments(call, 2, 3 if function == "approx_percentile" else 2)
        return self._of(function, arguments[:1], call.where, (self._fraction(arguments[1]),))

    def _within_group(self, call: WrittenCall) -> Aggregation:
        """`percentile_cont(p) WITHIN GROUP (ORDER BY x)`."""
        if call.value_order is None or call.name != "percentile_cont":
            raise QueryError(
                "WITHIN GROUP and percentile_cont need each other",
                hint="Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x), or percentile(x, 0.5).",
            )
        (given,) = self._arguments(call, 1)
        fraction = self._fraction(given)
        fraction = 1 - fraction if call.value_order.args.get("desc") else fraction
        return self._of("percentile", (call.value_order.this,), call.where, (fraction,))

    def _fraction(self, node: exp.Expr) -> float:
        value = None
        if next(node.find_all(exp.Column, exp.Anonymous), None) is None:
            bound = self.binder.bind(node)
            value = bound.value.as_py() if bound.is_constant else None
        if not isinstance(value, int | float | Decimal) or not 0 <= value <= 1:
            raise QueryError(
                "a quantile is a constant from 0 to 1",
                hint="Write percentile(x, 0.95).",
                place=place_of(node),
            )
        return float(value)

    # Aggregates of users

    def _user_call(self, call: WrittenCall, user: UserAggregate) -> tuple[Aggregation, pa.DataType]:
        if call.distinct or call.value_order is not None:
            raise QueryError(f'"{call.name}" takes neither DISTINCT nor WITHIN GROUP', hint="Leave it out.")
        pairs = zip(self._arguments(call, len(user.arguments)), user.arguments, strict=True)
        bound = tuple(typed.brought(self.binder.bind(node), kind).expression for node, kind in pairs)
        # As the aggregates that we have, it passes over rows where an argument is null.
        known = [exp.Is(this=each.copy(), expression=exp.Null()).not_() for each in call.arguments]
        return Aggregation("", user, bound, self._where((*call.where, *known))), user.returns
