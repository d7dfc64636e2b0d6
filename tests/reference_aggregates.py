"""What each aggregate is of the rows of one window, worked out from all of them at once.

An approximate aggregate gives the range in which an answer must lie.
"""

from __future__ import annotations

import datetime as dt
import importlib
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import reduce
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
        case "collect_list" | "collect_all" | "collect_set" | "string_agg" | "string_agg_distinct":
            return _gathered(aggregation, [(row[TIME], *each) for row, each in zip(in_time_order, given, strict=True)])
        case function if function in _OF_PAIRS:
            pairs = [(Fraction(y), Fraction(x)) for y, x in given if y is not None and x is not None]
            return _of_pairs(str(function), pairs) if pairs else None
        case _:
            values = [value for (value,) in given if value is not None]
            return _FUNCTIONS[aggregation.function](values, *aggregation.parameters)


def _gathered(aggregation: Aggregation, rows: list[Arguments]) -> Any:
    """The values (time, value, what they are ordered by ...) as a list or a text."""
    function, (separator, *flags) = str(aggregation.function), aggregation.parameters or (None,)
    rows = [row for row in rows if row[1] is not None or function == "collect_all"]
    rows = sorted(rows, key=lambda row: (row[0], nulls_first(row[1])))
    if function in ("collect_set", "string_agg_distinct"):
        rows = [row for place, row in enumerate(rows) if row[1] not in [other[1] for other in rows[:place]]]
    for place, flag in reversed(list(enumerate(flags, 2))):
        by = 1 if function == "string_agg_distinct" else place
        rows.sort(key=lambda row: nulls_first(row[by]), reverse=flag in (1, 3))
        rows.sort(key=lambda row: (row[by] is None) == (flag in (2, 3)))
    values = [row[1] for row in rows]
    if function.startswith("collect"):
        return values
    return (separator or "").join(values) if values else None


def _of_pairs(function: str, pairs: list[tuple[Fraction, Fraction]]) -> float | None:
    count = len(pairs)
    y, x = (sum(each) / count for each in zip(*pairs, strict=True))
    yy, xx = sum((one - y) ** 2 for one, _ in pairs), sum((other - x) ** 2 for _, other in pairs)
    xy = sum((one - y) * (other - x) for one, other in pairs)
    try:
        return _OF_PAIRS[function](count, y, x, yy, xx, xy)
    except ZeroDivisionError:
        return None


_OF_PAIRS: dict[str, Callable[..., float]] = {
    "corr": lambda n, y, x, yy, xx, xy: float(xy) / math.sqrt(xx * yy),
    "covar_pop": lambda n, y, x, yy, xx, xy: float(xy / n),
    "covar_samp": lambda n, y, x, yy, xx, xy: float(xy / (n - 1)),
    "regr_slope": lambda n, y, x, yy, xx, xy: float(xy / xx),
    "regr_intercept": lambda n, y, x, yy, xx, xy: float(y - xy / xx * x),
    "regr_r2": lambda n, y, x, yy, xx, xy: float(xy * xy / (xx * yy)) if yy or not xx else 1.0,
    "regr_sxx": lambda n, y, x, yy, xx, xy: float(xx),
    "regr_syy": lambda n, y, x, yy, xx, xy: float(yy),
    "regr_sxy": lambda n, y, x, yy, xx, xy: float(xy),
}


def _shape(power: int, less: int) -> Callable[[Sequence[Any]], float | None]:
    """A mean power of the distances from the mean over that of the standard deviation."""

    def shape(values: Sequence[Any]) -> float | None:
        exact = [Fraction(value) for value in values]
        mean = sum(exact) / len(exact) if exact else 0
        spread = math.sqrt(sum((value - mean) ** 2 for value in exact) / max(len(exact), 1))
        if not spread:
            return None
        return float(sum((value - mean) ** power for value in exact) / len(exact)) / spread**power - less

    return shape


def _key(value: Any) -> Any:
    """What a value is compared by: a struct by its fields."""
    return tuple(nulls_first(each) for each in value.values()) if isinstance(value, dict) else value


def _mode(values: Sequence[Any], greatest: bool = False) -> Any:
    most = max(map(values.count, values), default=0)
    return (max if greatest else min)((value for value in values if values.count(value) == most), default=None)


def _bins(values: Sequence[Any], most: int) -> list[dict[str, Any]] | None:
    distinct = sorted(set(values))
    assert len(distinct) <= most, "the reference merges no bins"
    return [{"x": value, "y": float(values.count(value))} for value in distinct] or None


def _folded(fold: Callable[[int, int], int]) -> Callable[[Sequence[Any]], int | None]:
    return lambda values: reduce(fold, values) if values else None


def _percentiles(values: Sequence[Any], *fractions: float) -> list[float | None] | None:
    return [_percentile(values, each) for each in fractions] if values else None


def _ranked(values: Sequence[Any], fraction: float) -> float | None:
    """The first value that at least the fraction of the values reach."""
    return float(sorted(values)[max(math.ceil(fraction * len(values)) - 1, 0)]) if values else None


def _shown(key: tuple[bool, Any]) -> Any:
    return key[1] if key[0] else None


def _average(values: Sequence[Any]) -> Any:
    if values and isinstance(values[0], Decimal):
        places = Decimal(1).scaleb(min(each.as_tuple().exponent for each in values) - 4)
        return (sum(values) / len(values)).quantize(places, ROUND_HALF_UP)
    if values and isinstance(values[0], dt.timedelta):
        return sum(values[1:], values[0]) / len(values)
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
    "sum": lambda values: sum(values[1:], values[0]) if values else None,
    "min": lambda values: min(values, default=None, key=_key),
    "max": lambda values: max(values, default=None, key=_key),
    "avg": _average,
    "var_samp": _variance(1, root=False),
    "var_pop": _variance(0, root=False),
    "stddev_samp": _variance(1, root=True),
    "stddev_pop": _variance(0, root=True),
    "count_distinct": lambda values: len({_key(value) for value in values}),
    "stddev_samp_distinct": lambda values: _variance(1, root=True)(sorted(set(values))),
    "sum_distinct": lambda values: sum(set(values)) if values else None,
    "avg_distinct": lambda values: _average(sorted(set(values))),
    "approx_count_distinct": _near_count,
    "approx_percentile": _near_percentile,
    "percentile": _percentile,
    "percentiles": _percentiles,
    "percentile_down": lambda values, fraction: _percentile(values, 1 - fraction),
    "percentile_disc": _ranked,
    "try_sum": lambda values: sum(values) if values else None,
    "skewness": _shape(3, 0),
    "kurtosis": _shape(4, 3),
    "mode": _mode,
    "histogram_numeric": _bins,
    "bit_and": _folded(operator.and_),
    "bit_or": _folded(operator.or_),
    "bit_xor": _folded(operator.xor),
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
