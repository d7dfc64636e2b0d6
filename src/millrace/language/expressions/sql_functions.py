"""Which functions SQL has: Spark SQL's spelling, the kernel's function behind it, how many arguments it takes."""

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
    **_scalars((1, ANY_NUMBER), "array"),
    **_scalars(1, "size"),
    **_scalars(1, "cardinality", function="size"),
    **_scalars(1, "abs", "floor", "ceil", "sqrt", "exp", "ln", "negative"),
    **_scalars(1, "ceiling", function="ceil"),
    **_scalars(1, "log", function="ln"),
    **_scalars((1, 2), "round"),
    **_scalars(2, "mod", function="%"),
    **_scalars(1, "isnull", "is_null", function="is_null"),
    **_scalars(1, "isnotnull", "is_not_null", function="is_not_null"),
    **_scalars(1, "year", "month", "day", "hour", "minute", "second"),
    **_scalars(1, "dayofmonth", function="day"),
    **_scalars(1, "quarter", "dayofyear", "dayofweek", "dayofweek_iso", "weekday", "epoch"),
    **_scalars(1, "weekofyear", function="week"),
    **_scalars(1, "unix_micros", "unix_millis", "unix_seconds"),
    **_scalars(1, "unix_timestamp", "to_unix_timestamp", function="unix_seconds"),
    **_scalars(1, "timestamp_seconds", "timestamp_millis", "timestamp_micros"),
    **_scalars((1, 2), "from_unixtime"),
    **_scalars(2, "date_trunc", "date_format", "to_char"),
}

CAST_FUNCTIONS: dict[str, str] = {
    **{
        name: name.upper()
        for name in (
            "boolean",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "string",
            "binary",
            "decimal",
        )
    },
    "date": "DATE",
    "to_date": "DATE",
    "timestamp": "TIMESTAMP",
    "to_timestamp": "TIMESTAMP",
}

AGGREGATE_NAMES: dict[str, str] = {
    **{
        name: name for name in ("count", "sum", "min", "max", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")
    },
    **{name: name for name in ("first", "last", "max_by", "min_by", "approx_count_distinct", "approx_percentile")},
    **{name: name for name in ("percentile", "bool_and", "bool_or")},
    "mean": "avg",
    "variance": "var_samp",
    **dict.fromkeys(("stddev", "std"), "stddev_samp"),
    "first_value": "first",
    "last_value": "last",
    "arg_max": "max_by",
    "arg_min": "min_by",
    **dict.fromkeys(("percentile_approx", "approx_quantile"), "approx_percentile"),
    **dict.fromkeys(("median", "percentile_cont"), "percentile"),
    "count_if": "count",
    "every": "bool_and",
    **dict.fromkeys(("any", "some"), "bool_or"),
}
"""The aggregates by their spellings, each with the kernel's name for it."""

LATER_AGGREGATES: dict[str, str] = {
    "any_value": "Use min, max or first.",
    "percentile_disc": "Use percentile_cont, or approx_percentile, which gives a value close to one of the rows.",
    "mode": "Count by the column and take the first by rank() in a query around it.",
    **dict.fromkeys(
        ("collect_list", "collect_set", "array_agg", "listagg", "string_agg"),
        "A column holds single values: select the rows, and group them where they are read.",
    ),
}

INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("tumble", "hop", "cumulate"),
        "Write GROUP BY window(ts, '1 minute'), or a window after the stream: FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE].",
    ),
    **dict.fromkeys(
        ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "unnest"),
        "It stands alone in the select list of a query without an aggregate, or after FROM: "
        "FROM s LATERAL VIEW explode(column) t AS element.",
    ),
    **dict.fromkeys(("tumble_start", "hop_start", "session_start"), "Write window_start."),
    **dict.fromkeys(("tumble_end", "hop_end", "session_end"), "Write window_end."),
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "localtimestamp", "getdate"),
        "A query reads no clock, so that it answers the same when it is run again: compare the times of its rows.",
    ),
}
"""What to write for functions of other systems that this one has not."""

RANKS = ("row_number", "rank", "dense_rank")
"""The functions with OVER."""

JSON_NAMES = ("from_json", "to_json", "get_json_object", "json_value", "json_query", "json_tuple")

KNOWN = (
    *(*SCALARS, *CAST_FUNCTIONS, *AGGREGATE_NAMES),
    *("if", "iff", "nvl2", "struct", "named_struct", "map", "date_part", "datepart", *JSON_NAMES),
)
"""The names of all functions that a query may call."""

FIELDS: dict[str, str] = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "epoch")},
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso", "isodow"), "dayofweek_iso"),
    "doy": "dayofyear",
}
"""What EXTRACT and date_part can read off a time, and the kernel's function for it."""

TRUNCATIONS: dict[str, str] = {
    **{name: name for name in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")},
    **dict.fromkeys(("dd",), "day"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "quarter": "quarter",
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
}
"""The units of date_trunc."""
