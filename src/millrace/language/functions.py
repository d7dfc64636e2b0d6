"""The names a query may call: Spark SQL's spelling, the kernel's function behind it, how many arguments it takes."""

from __future__ import annotations

from dataclasses import dataclass

ANY_NUMBER = 1_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar function: the kernel's name for it and the number of its arguments."""

    function: str
    least: int
    most: int


def _scalars(count: int | tuple[int, int], *names: str, function: str | None = None) -> dict[str, Scalar]:
    least, most = count if isinstance(count, tuple) else (count, count)
    return {name: Scalar(function or name, least, most) for name in names}


SCALARS: dict[str, Scalar] = {
    **_scalars(1, "lower", "upper", "trim", "ltrim", "rtrim", "length"),
    **_scalars(1, "lcase", function="lower"),
    **_scalars(1, "ucase", function="upper"),
    **_scalars(1, "len", "char_length", "character_length", function="length"),
    **_scalars((2, 3), "substring"),
    **_scalars((2, 3), "substr", function="substring"),
    **_scalars(3, "replace"),
    **_scalars(2, "startswith", "endswith", "contains", "like", "ilike", "rlike", "nullif", "power"),
    **_scalars(2, "regexp", "regexp_like", function="rlike"),
    **_scalars(2, "pow", function="power"),
    **_scalars((1, ANY_NUMBER), "coalesce", "concat"),
    **_scalars(2, "nvl", "ifnull", function="coalesce"),
    **_scalars((2, ANY_NUMBER), "least", "greatest"),
    **_scalars(1, "abs", "floor", "ceil", "sqrt", "exp", "ln", "negative"),
    **_scalars(1, "ceiling", function="ceil"),
    **_scalars(1, "log", function="ln"),
    **_scalars((1, 2), "round"),
    **_scalars(2, "mod", function="%"),
    **_scalars(1, "isnull", "is_null", function="is_null"),
    **_scalars(1, "isnotnull", "is_not_null", function="is_not_null"),
    **_scalars(1, "year", "month", "day", "hour", "minute", "second"),
    **_scalars(1, "dayofmonth", function="day"),
    **_scalars(1, "unix_micros", "timestamp_seconds"),
    **_scalars(2, "date_trunc"),
}

CAST_FUNCTIONS: dict[str, str] = {
    **{name: name.upper() for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string")},
    "date": "DATE",
    "to_date": "DATE",
    "timestamp": "TIMESTAMP",
    "to_timestamp": "TIMESTAMP",
}

AGGREGATE_NAMES: dict[str, str] = {
    "count": "count", "sum": "sum", "min": "min", "max": "max", "avg": "avg", "mean": "avg",
}  # fmt: skip

LATER_AGGREGATES: dict[str, str] = {
    **dict.fromkeys(
        ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop", "std"),
        "Compute it from count(*), sum(x) and sum(x * x).",
    ),
    **dict.fromkeys(
        ("first", "first_value", "last", "last_value", "any_value"), "Use min or max if one of them will do."
    ),
    **dict.fromkeys(("max_by", "min_by"), "Use max or min of the column itself."),
    **dict.fromkeys(
        ("approx_count_distinct", "approx_percentile", "percentile_approx", "percentile", "median", "mode"),
        "The aggregates are count, sum, min, max and avg.",
    ),
    **dict.fromkeys(
        ("collect_list", "collect_set", "array_agg", "listagg", "string_agg"), "Write the rows to a sink instead."
    ),
    **dict.fromkeys(("count_if",), "Write sum(CASE WHEN condition THEN 1 ELSE 0 END)."),
    **dict.fromkeys(("bool_and", "every", "bool_or", "some", "any"), "Use min or max over a CASE of 0 and 1."),
}

FIELDS = ("year", "month", "day", "hour", "minute", "second")
"""What EXTRACT and date_part can read off a time."""

TRUNCATIONS: dict[str, str] = {
    **{name: name for name in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")},
    **dict.fromkeys(("dd",), "day"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "quarter": "quarter",
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
}
"""The units of date_trunc."""
