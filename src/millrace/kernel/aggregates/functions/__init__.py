"""The aggregate functions, by name. To add one, add an entry to `AGGREGATES`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions import python_aggregates as in_python
from millrace.kernel.aggregates.functions import sql_aggregates as in_sql
from millrace.kernel.aggregates.functions.approximate_distinct import ApproximateDistinct
from millrace.kernel.aggregates.functions.approximate_percentile import ApproximatePercentile
from millrace.kernel.aggregates.functions.choice import Choice
from millrace.kernel.aggregates.functions.distinct_values import Distinct
from millrace.kernel.aggregates.functions.function import AggregateFunction
from millrace.kernel.aggregates.functions.percentile import Percentile
from millrace.kernel.aggregates.functions.plain import Average, Count, Extreme, Sum
from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate, UserAggregate
from millrace.kernel.aggregates.functions.variance import Variance
from millrace.kernel.columns.expressions import sql_name

AGGREGATES: dict[str, Callable[..., AggregateFunction]] = {
    "count": Count,
    "sum": Sum,
    "min": partial(Extreme, greatest=False),
    "max": partial(Extreme, greatest=True),
    "avg": Average,
    "var_samp": partial(Variance, sample=True, root=False),
    "var_pop": partial(Variance, sample=False, root=False),
    "stddev_samp": partial(Variance, sample=True, root=True),
    "stddev_pop": partial(Variance, sample=False, root=True),
    "count_distinct": partial(Distinct, over=Count("count")),
    "sum_distinct": partial(Distinct, over=Sum("sum")),
    "avg_distinct": partial(Distinct, over=Average("avg")),
    "first": partial(Choice, greatest=False, by_time=True),
    "last": partial(Choice, greatest=True, by_time=True),
    "max_by": partial(Choice, greatest=True, by_time=False),
    "min_by": partial(Choice, greatest=False, by_time=False),
    "approx_count_distinct": ApproximateDistinct,
    "approx_percentile": ApproximatePercentile,
    "percentile": Percentile,
    "bool_and": partial(Extreme, greatest=False, takes="a condition"),
    "bool_or": partial(Extreme, greatest=True, takes="a condition"),
}
"""What makes a function from its name and the constants of its call."""


def function_of(function: str | UserAggregate, parameters: Sequence[float | int | bool] = ()) -> AggregateFunction:
    """The function of a call; refuses one that cannot be found."""
    if isinstance(function, str):
        return AGGREGATES[function](function, *parameters)
    return in_python.function_of(function) if isinstance(function, PythonAggregate) else in_sql.function_of(function)


def result_type(function: str | UserAggregate, arguments: Sequence[pa.DataType]) -> pa.DataType:
    """The type of an aggregate over argument types (none: `count(*)`); refuses what it cannot take.

    >>> str(result_type("max_by", [pa.string(), pa.int64()]))
    'string'
    """
    if isinstance(function, str):
        return function_of(function).result_type(arguments)
    if tuple(arguments) != function.arguments:
        raise RequestError(
            f'"{function.name}" takes ({_spelled(function.arguments)}), not ({_spelled(arguments)})',
            hint="Bring the arguments to these types with CAST(... AS type).",
        )
    return function.returns


def mergeable(function: str | UserAggregate) -> bool:
    """Whether its partials are smaller than the rows they were made of: all but users' aggregates without merge."""
    return function_of(function).mergeable


def partial_bytes(function: str | UserAggregate, arguments: Sequence[pa.DataType]) -> int:
    """About how large a partial is."""
    texts = sum(pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in arguments)
    return function_of(function).partial_bytes + 16 * texts


def _spelled(types: Sequence[pa.DataType]) -> str:
    return ", ".join(sql_name(kind) for kind in types)
