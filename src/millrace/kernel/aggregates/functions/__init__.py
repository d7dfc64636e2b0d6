"""The aggregate functions by name. To add one, subclass `AggregateFunction` and add an entry to `AGGREGATES`.

- function.py: the contract, and list partials
- basic_aggregates.py: count, sum, mean, extremes, bits, the value of one chosen row
- variance.py; moments.py (shape, and pairs)
- percentiles.py; distinct_values.py; value_counts.py (mode, histogram); collected.py (arrays and texts of the values)
- user_aggregates.py: what users declare; python_aggregates.py and sql_aggregates.py carry it out

In: the columns of all groups of rows at once. Out: partials, and results of partials. Used by partials.py alone, and by
the language and the plan for types and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.aggregates.functions import python_aggregates, sql_aggregates
from millrace.kernel.aggregates.functions.basic_aggregates import (
    Average,
    BitFold,
    ChosenValue,
    Extreme,
    Sum,
    TriedSum,
    ValueCount,
)
from millrace.kernel.aggregates.functions.collected import Gathered, GatheredOnce
from millrace.kernel.aggregates.functions.distinct_values import ApproximateDistinct, DistinctValues
from millrace.kernel.aggregates.functions.function import AggregateFunction, Parameter
from millrace.kernel.aggregates.functions.moments import PAIRS, SHAPES, Pairs, Shape
from millrace.kernel.aggregates.functions.percentiles import ApproximatePercentile, Percentile
from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate, UserAggregate
from millrace.kernel.aggregates.functions.value_counts import Histogram, Mode
from millrace.kernel.aggregates.functions.variance import Variance
from millrace.kernel.columns.sql_types import sql_name

AGGREGATES: dict[str, Callable[..., AggregateFunction]] = {
    "count": ValueCount,
    "sum": Sum,
    "try_sum": TriedSum,
    "min": partial(Extreme, greatest=False),
    "max": partial(Extreme, greatest=True),
    "avg": Average,
    "var_samp": partial(Variance, sample=True, root=False),
    "var_pop": partial(Variance, sample=False, root=False),
    "stddev_samp": partial(Variance, sample=True, root=True),
    "stddev_pop": partial(Variance, sample=False, root=True),
    **{name: partial(Shape, measure=measure) for name, measure in SHAPES.items()},
    **{name: partial(Pairs, measure=measure) for name, measure in PAIRS.items()},
    "first": partial(ChosenValue, greatest=False, by_time=True),
    "last": partial(ChosenValue, greatest=True, by_time=True),
    "max_by": partial(ChosenValue, greatest=True, by_time=False),
    "min_by": partial(ChosenValue, greatest=False, by_time=False),
    "approx_count_distinct": ApproximateDistinct,
    "approx_percentile": ApproximatePercentile,
    "approx_percentiles": partial(ApproximatePercentile, several=True),
    "percentile": Percentile,
    "percentiles": partial(Percentile, several=True),
    "percentile_down": partial(Percentile, descending=True),
    "percentiles_down": partial(Percentile, several=True, descending=True),
    "percentile_disc": partial(Percentile, discrete=True),
    "percentiles_disc": partial(Percentile, several=True, discrete=True),
    "percentile_disc_down": partial(Percentile, discrete=True, descending=True),
    "percentiles_disc_down": partial(Percentile, several=True, discrete=True, descending=True),
    "bool_and": partial(Extreme, greatest=False, takes="a condition"),
    "bool_or": partial(Extreme, greatest=True, takes="a condition"),
    "bit_and": partial(BitFold, fold=np.bitwise_and),
    "bit_or": partial(BitFold, fold=np.bitwise_or),
    "bit_xor": partial(BitFold, fold=np.bitwise_xor),
    "mode": Mode,
    "histogram_numeric": Histogram,
    "collect_list": partial(Gathered, joined=False),
    "collect_all": partial(Gathered, joined=False, nulls=True),
    "collect_set": partial(GatheredOnce, joined=False),
    "string_agg": partial(Gathered, joined=True),
    "string_agg_distinct": partial(GatheredOnce, joined=True),
}
"""What makes a function from its name and the constants of its call."""
OVER_DISTINCT = (
    *("count", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", *SHAPES, "bit_xor"),
    *("percentile", "percentiles", "histogram_numeric"),
)
"""The functions that also exist over the distinct values."""
AGGREGATES |= {f"{name}_distinct": partial(DistinctValues, AGGREGATES[name]) for name in OVER_DISTINCT}


def function_of(function: str | UserAggregate, parameters: Sequence[Parameter] = ()) -> AggregateFunction:
    """The function of a call; refuses one that cannot be found."""
    if isinstance(function, str):
        return AGGREGATES[function](function, *parameters)
    if isinstance(function, PythonAggregate):
        return python_aggregates.function_of(function)
    return sql_aggregates.function_of(function)


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
    """True if its partials are smaller than the rows they were made of: all but users' aggregates without merge."""
    return function_of(function).mergeable


def partial_bytes(function: str | UserAggregate, arguments: Sequence[pa.DataType]) -> int:
    """About how large a partial is."""
    texts = sum(pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in arguments)
    return function_of(function).partial_bytes + 16 * texts


def _spelled(types: Sequence[pa.DataType]) -> str:
    return ", ".join(sql_name(kind) for kind in types)
