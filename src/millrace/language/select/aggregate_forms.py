"""The aggregates of SQL, each brought to a function of the kernel over expressions, with its constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.aggregates.functions import AGGREGATES
from millrace.kernel.aggregates.functions.collected import DESCENDING, NULLS_LAST
from millrace.kernel.aggregates.functions.function import Parameter
from millrace.kernel.columns.expressions import Expression
from millrace.language.expressions import typed
from millrace.language.expressions.calls import check_count
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.functions.aggregate_table import AGGREGATES as DECLARED
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of
from millrace.language.select.written_call import WrittenCall, ignoring_nulls
from millrace.plan.nodes.aggregate_nodes import Aggregation
from millrace.plan.nodes.conditions import all_of

_SAME_OF_DISTINCT = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "collect_set")
"""Functions to which it does not matter how often a value occurs."""
_OF_DISTINCT = {**{name: name for name in _SAME_OF_DISTINCT}, "collect_list": "collect_set"}
_WITHIN_GROUP = {
    "percentile_cont": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x), or percentile(x, 0.5)",
    "percentile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
}
"""The aggregates that are not without WITHIN GROUP, with an example."""


class AggregateForms:
    """Binds calls of the aggregates that are known by name, over the rows that `binder` knows."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self.binder = binder

    def bind(self, call: WrittenCall) -> Aggregation:
        """The aggregation of a call."""
        function = AGGREGATE_NAMES[call.name]
        self._check_order(call, function)
        found = _FORMS.get(call.name, _FORMS.get(function, AggregateForms._plain))(self, call, function)
        return self._distinct(call, found) if call.distinct else found

    def _check_order(self, call: WrittenCall, function: str) -> None:
        if call.orders and function in ("string_agg", "mode"):
            return
        if bool(call.orders) != (call.name in _WITHIN_GROUP) or len(call.orders) > 1:
            example = _WITHIN_GROUP.get(call.name, "string_agg(x, ',') WITHIN GROUP (ORDER BY y)")
            needs = "needs one WITHIN GROUP (ORDER BY ...)" if call.name in _WITHIN_GROUP else "takes no WITHIN GROUP"
            raise QueryError(f'"{call.name}" {needs}', hint=f"Write {example}.")

    def _distinct(self, call: WrittenCall, found: Aggregation) -> Aggregation:
        """The same over the distinct values."""
        name = str(found.function)
        function = _OF_DISTINCT.get(name, f"{name}_distinct")
        if function not in AGGREGATES or call.name == "count_if":
            raise QueryError(
                f'"{call.name}" does not take DISTINCT',
                hint="DISTINCT goes with count, sum, avg, min, max, collect_list, string_agg and the like.",
            )
        return replace(found, function=function)

    def _of(
        self, function: str, call: WrittenCall, arguments: Sequence[exp.Expr], *parameters: Parameter
    ) -> Aggregation:
        bound = tuple(self.binder.bind(each).expression for each in arguments)
        return Aggregation("", function, bound, self.where(call.where), parameters)

    def where(self, conditions: Sequence[exp.Expr], *further: Typed) -> Expression | None:
        """Conditions as one."""
        bound = [*(self.binder.condition(each, "the condition of FILTER") for each in conditions), *further]
        return all_of(each.expression for each in bound)

    def arguments(self, call: WrittenCall, least: int, most: int | None = None) -> tuple[exp.Expr, ...]:
        """The arguments, if their number is right."""
        several = len(call.arguments) > 1 and call.name in ("min", "max")
        other = {"min": "least", "max": "greatest"}.get(call.name, "")
        hint = f"Of several values in a row write {other}(a, b)." if several else _example(call.name, least)
        hint = f"Write {_WITHIN_GROUP[call.name]}." if call.name in _WITHIN_GROUP else hint
        check_count(call.name, len(call.arguments), least, most, hint)
        return call.arguments

    def _constant(self, node: exp.Expr, accepted: Callable[[Any], bool], fact: str, hint: str) -> Any:
        """The value of a constant; refuses any other expression."""
        value: Any = ...
        if node.find(exp.Column) is None:
            bound = self.binder.bind(node)
            value = bound.value.as_py() if bound.is_constant else ...
        if not accepted(value):
            raise QueryError(fact, hint=hint, place=place_of(node))
        return value

    # One method per form

    def _plain(self, call: WrittenCall, function: str) -> Aggregation:
        return self._of(function, call, self.arguments(call, 1))

    def _pair(self, call: WrittenCall, function: str) -> Aggregation:
        return self._of(function, call, self.arguments(call, 2))

    def _count(self, call: WrittenCall, function: str) -> Aggregation:
        if len(call.arguments) > 1:
            return self._count_tuples(call)
        (argument,) = self.arguments(call, 1)
        if isinstance(argument, exp.Star) and call.distinct:
            raise QueryError("count(DISTINCT ...) takes columns", hint="Name the columns: count(DISTINCT a, b).")
        if not call.distinct and self._counts_all(argument):
            return Aggregation("", "count", (), self.where(call.where))
        return self._of(function, call, (argument,))

    def _count_tuples(self, call: WrittenCall) -> Aggregation:
        """`count(a, b)`, over the rows where none of them is null."""
        where = self.where(call.where_known(*call.arguments).where)
        if not call.distinct:
            return Aggregation("", "count", (), where)
        values = [self.binder.bind(each) for each in call.arguments]
        names = [typed.literal(f"c{place}", pa.string()) for place in range(len(values))]
        pairs = [each for pair in zip(names, values, strict=True) for each in pair]
        return Aggregation("", "count", (typed.call("named_struct", pairs).expression,), where)

    def _counts_all(self, node: exp.Expr) -> bool:
        """True for `count(*)` and `count(1)`."""
        if isinstance(node, exp.Star):
            return True
        bound = self.binder.bind(node)
        return bound.is_constant and bool(bound.value.is_valid)

    def _about_distinct(self, call: WrittenCall, function: str) -> Aggregation:
        """`approx_count_distinct(x)`, of nested values by their text."""
        (argument,) = self.arguments(call, 1)
        return Aggregation("", function, (typed.key(self.binder.bind(argument)).expression,), self.where(call.where))

    def _count_if(self, call: WrittenCall, function: str) -> Aggregation:
        (argument,) = self.arguments(call, 1)
        truth = self.binder.condition(argument, 'the argument of "count_if"')
        return Aggregation("", "count", (), self.where(call.where, truth))

    def _truth(self, call: WrittenCall, function: str) -> Aggregation:
        (argument,) = self.arguments(call, 1)
        truth = self.binder.condition(argument, f'the argument of "{call.name}"')
        return Aggregation("", function, (truth.expression,), self.where(call.where))

    def _tried(self, call: WrittenCall, function: str) -> Aggregation:
        """`try_sum` and `try_avg`: of whole numbers they need more than 64 bits inside."""
        (argument,) = self.arguments(call, 1)
        bound = self.binder.bind(argument)
        if not pa.types.is_integer(bound.type):
            return self._of(function, call, call.arguments)
        value = bound if function == "sum" else typed.cast(bound, pa.float64())
        return Aggregation("", "try_sum" if function == "sum" else "avg", (value.expression,), self.where(call.where))

    def _first_or_last(self, call: WrittenCall, function: str) -> Aggregation:
        arguments = self.arguments(call, 1, 2)
        if len(arguments) == 1:
            return self._of(function, call, arguments)
        if not isinstance(arguments[1], exp.Boolean):
            raise QueryError(
                f'the second argument of "{call.name}" is TRUE or FALSE',
                hint=f"Write {call.name}(column, TRUE) to pass nulls over.",
                place=place_of(arguments[1]),
            )
        plain = replace(call, arguments=arguments[:1])
        plain = ignoring_nulls(plain) if arguments[1].this else plain
        return self._of(function, plain, plain.arguments)

    def _mode(self, call: WrittenCall, function: str) -> Aggregation:
        """`mode(x)`, or `mode() WITHIN GROUP (ORDER BY x)`; which of equally frequent values is always certain."""
        if call.orders:
            self.arguments(call, 0)
            (order,) = call.orders
            return self._of(function, call, (order.this,), *([True] if order.args.get("desc") else []))
        return self._of(function, call, self.arguments(call, 1, 2)[:1])

    def _regression(self, call: WrittenCall, function: str) -> Aggregation:
        """`regr_count(y, x)`, `regr_avgx(y, x)` and `regr_avgy(y, x)`: over the pairs without a null."""
        y, x = self.arguments(call, 2)
        return self._of(
            function,
            call.where_known(y, x),
            {"regr_count": (), "regr_avgx": (x,), "regr_avgy": (y,)}[call.name],
        )

    def _histogram(self, call: WrittenCall, function: str) -> Aggregation:
        column, bins = self.arguments(call, 2)
        most = self._constant(
            bins,
            lambda value: isinstance(value, int) and value >= 2,
            "the number of bins is a constant of at least 2",
            "Write histogram_numeric(x, 10).",
        )
        return self._of(function, call, (column,), most)

    def _collected(self, call: WrittenCall, function: str) -> Aggregation:
        keeps_nulls = call.keeps_nulls and function == "collect_list"
        return self._plain(call, "collect_all" if keeps_nulls else function)

    def _joined(self, call: WrittenCall, function: str) -> Aggregation:
        """`string_agg(x, ',') WITHIN GROUP (ORDER BY y)`."""
        column, *rest = self.arguments(call, 1, 2)
        value = self.binder.bind(column)
        text = value if pa.types.is_binary(value.type) else typed.cast(value, pa.string())
        kind = bytes if pa.types.is_binary(value.type) else str
        separator = None
        if rest:
            separator = self._constant(
                rest[0],
                lambda found: found is None or isinstance(found, kind),
                f'the separator of "{call.name}" is not a constant text',
                f"Write {call.name}(column, ', ').",
            )
        by = [self.binder.bind(each.this) for each in call.orders]
        if call.distinct and any(each.expression != value.expression for each in by):
            raise QueryError(
                f'"{call.name}" of DISTINCT values is ordered by another expression',
                hint="Order by the value itself, or leave DISTINCT out.",
            )
        flags = [
            DESCENDING * bool(each.args.get("desc")) + NULLS_LAST * (not each.args.get("nulls_first"))
            for each in call.orders
        ]
        keys = () if call.distinct else tuple(typed.ordered(each).expression for each in by)
        return Aggregation(
            "", function, (text.expression, *keys), self.where(call.where), (separator, *flags) if rest or flags else ()
        )

    def _quantile(self, call: WrittenCall, function: str) -> Aggregation:
        if call.name == "median":
            return self._of(function, call, self.arguments(call, 1), 0.5)
        if call.orders:
            (order,) = call.orders
            (given,) = self.arguments(call, 1)
            ending = ("_disc" if call.name == "percentile_disc" else "") + ("_down" if order.args.get("desc") else "")
            column = order.this
        else:
            # Spark's accuracy of approx_percentile is read; ours is always one percent.
            column, given = self.arguments(call, 2, 3 if function == "approx_percentile" else 2)[:2]
            ending = ""
        fractions, several = self._fractions(given)
        return self._of(f"{function}{'s' if several else ''}{ending}", call, (column,), *fractions)

    def _fractions(self, node: exp.Expr) -> tuple[list[float], bool]:
        """One fraction or an array of some, and whether it is an array."""

        def accepted(value: Any) -> bool:
            numbers = value if isinstance(value, list) and value else [value]
            return all(isinstance(each, int | float | Decimal) and 0 <= each <= 1 for each in numbers)

        value = self._constant(
            node,
            accepted,
            "a quantile is a constant from 0 to 1, or an array of such",
            "Write percentile(x, 0.95) or percentile(x, array(0.5, 0.95)).",
        )
        return [float(each) for each in (value if isinstance(value, list) else [value])], isinstance(value, list)


_Form = Callable[[AggregateForms, WrittenCall, str], Aggregation]
_FORMS: dict[str, _Form] = {
    "count": AggregateForms._count,
    "approx_count_distinct": AggregateForms._about_distinct,
    "count_if": AggregateForms._count_if,
    **dict.fromkeys(("bool_and", "bool_or"), AggregateForms._truth),
    **dict.fromkeys(("try_sum", "try_avg"), AggregateForms._tried),
    **dict.fromkeys(("first", "last"), AggregateForms._first_or_last),
    **dict.fromkeys(("max_by", "min_by", "corr", "covar_pop", "covar_samp"), AggregateForms._pair),
    **dict.fromkeys(
        ("regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_syy", "regr_sxy"), AggregateForms._pair
    ),
    **dict.fromkeys(("regr_count", "regr_avgx", "regr_avgy"), AggregateForms._regression),
    "mode": AggregateForms._mode,
    "histogram_numeric": AggregateForms._histogram,
    **dict.fromkeys(("collect_list", "collect_set"), AggregateForms._collected),
    "string_agg": AggregateForms._joined,
    **dict.fromkeys(("percentile", "approx_percentile"), AggregateForms._quantile),
}
"""How calls are read, by their spelling or by the kernel's name for them; all others take one argument."""


def _example(name: str, count: int) -> str:
    """How an aggregate is called, by the example of its declaration."""
    if name == "count":
        return "Write count(*), or count(column)."
    declared = next((each for each in DECLARED if name in (each.name, *each.also)), None)
    if declared is None or count == 1:
        return f"Write {name}({', '.join(('column', 'other')[:count])})."
    return f"Write {name}{declared.example.removeprefix(declared.name)}."
