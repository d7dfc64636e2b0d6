"""What each aggregate is of the rows of one window, worked out from all of them at once.

An approximate aggregate gives the range in which an answer must lie.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate, SqlAggregate
from millrace.plan.nodes.aggregate_nodes import Aggregation
from tests.reference_values import TIME, Row, nulls_first, value_of

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """Any number of a range will do."""

    low: float
    high: float

    def holds(self, value: Any) -> bool:
        return value is not None and self.low <= value <= self.high


def aggregate(aggregation: Aggregation, rows: list[Row], schema: pa.Schema) -> Any:
    """The value of one aggregate over the rows of a window."""
    if aggregation.where is not None:
        rows = [row for row in rows if value_of(aggregation.where, row, schema) is True]
    in_time_order = sorted(rows, key=lambda row: row[TIME])
    given = [tuple(value_of(each, row, schema) for each in aggregation.arguments) for row in in_time_order]
    match aggregation.function:
        case PythonAggregate():
            return _in_python(aggregation.function, given)
        case SqlAggregate():
            return _in_sql(aggregation.function, given)
        case "count" if not aggregation.arguments:
            return len(rows)
        case "first" | "last":
            timed = [(row[TIME], nulls_first(value)) for row, (value,) in zip(in_time_order, given, strict=True)]
            return _shown((min if aggregation.function == "first" else max)(timed)[1]) if timed else None
        case "max_by" | "min_by":
            known = [(by, nulls_first(value)) for value, by in given if by is not None]
            return _shown((max if aggregation.function == "max_by" else min)(known)[1]) if known else None
        case _:
            values = [value for (value,) in given if value is not None]
            return _FUNCTIONS[aggregation.function](values, *aggregation.parameters)


def _shown(key: tuple[bool, Any]) -> Any:
    return key[1] if key[0] else None


def _average(values: Sequence[Any]) -> float | Decimal | None:
    if values and isinstance(values[0], Decimal):
        places = Decimal(1).scaleb(min(each.as_tuple().exponent for each in values) - 4)
        return (sum(values) / len(values)).quantize(places, ROUND_HALF_UP)
    return float(sum(map(Fraction, values)) / len(values)) if values else None


def _variance(fewer: int, root: bool) -> Callable[[Sequence[Any]], float | None]:
    """The mean square distance to the mean, over all but `fewer` of the values."""

    def variance(values: Sequence[Any]) -> float | None:
        if len(values) <= fewer:
            return None
        exact = [Fraction(value) for value in values]
        mean = sum(exact) / len(exact)
        found = float(sum((value - mean) ** 2 for value in exact) / (len(exact) - fewer))
        return math.sqrt(found) if root else found

    return variance


def _percentile(values: Sequence[Any], fraction: float) -> float | None:
    if not values:
        return None
    low, high, share = _around(values, fraction)
    return float(low + (high - low) * share)


def _around(values: Sequence[Any], fraction: float) -> tuple[Any, Any, float]:
    """The two values next to a fraction of the way through them, and how far it is from the one to the other."""
    ranked, place = sorted(values), fraction * (len(values) - 1)
    return ranked[math.floor(place)], ranked[math.ceil(place)], place - math.floor(place)


def _near_percentile(values: Sequence[Any], fraction: float, *_: Any) -> Between | None:
    if not values:
        return None
    low, high, _share = _around(values, fraction)
    return Between(max(low - abs(low) / 100, min(values)), min(high + abs(high) / 100, max(values)))


def _near_count(values: Sequence[Any], *_: Any) -> Between:
    count = len(set(values))
    return Between(math.floor(count * 0.95) - 1 if count > 3 else count, math.ceil(count * 1.05) + 1)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "avg": _average,
    "var_samp": _variance(1, root=False),
    "var_pop": _variance(0, root=False),
    "stddev_samp": _variance(1, root=True),
    "stddev_pop": _variance(0, root=True),
    "count_distinct": lambda values: len(set(values)),
    "sum_distinct": lambda values: sum(set(values)) if values else None,
    "avg_distinct": lambda values: _average(sorted(set(values))),
    "approx_count_distinct": _near_count,
    "approx_percentile": _near_percentile,
    "percentile": _percentile,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
}


def _in_python(function: PythonAggregate, given: list[Arguments]) -> Any:
    """The user's class called plainly, with all rows in one call."""
    module, _, name = function.place.partition(":")
    user = getattr(importlib.import_module(module), name)()
    state = user.initialize()
    if given:
        columns = zip(zip(*given, strict=True), function.arguments, strict=True)
        state = user.iterate(state, *(pa.array(list(column), kind) for column, kind in columns))
    return user.terminate(state)


def _in_sql(function: SqlAggregate, given: list[Arguments]) -> Any:
    """The state folded over the rows, one at a time."""
    variables = pa.schema([(name, expression.type_in(pa.schema([]))) for name, expression in function.initialize])
    schema = pa.schema([*variables, *function.parameters])
    state = {name: value_of(expression, {}, schema) for name, expression in function.initialize}
    for arguments in given:
        named = zip((name for name, _ in function.parameters), arguments, strict=True)
        before = {**state, **dict(named)}
        state = {**state, **{name: value_of(each, before, schema) for name, each in function.iterate}}
    return value_of(function.terminate, state, variables)
