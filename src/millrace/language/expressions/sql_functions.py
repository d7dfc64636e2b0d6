"""The names of functions: aggregates, ranks, fields of a time, and what to write for functions of other systems.

The scalar functions are declared in `functions/`.
"""

from __future__ import annotations

from collections.abc import Iterable

from millrace.errors import listed
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.aggregate_table import AGGREGATES

AGGREGATE_NAMES: dict[str, str] = {name: each.function for each in AGGREGATES for name in (each.name, *each.also)}
"""The aggregates by their spellings, each with the kernel's name for it."""

GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "unnest")
"""Functions that give a row per element."""

_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "avg(x)": ("average",),
    "the columns by name, or * EXCEPT (a, b)": ("columns",),
    "LIMIT 10 at the end": ("top",),
    "length(text)": ("strlen", "datalength", "char_len", "lengthb"),
    "split(text, ',')": ("string_to_array", "str_split", "string_split", "strsplit", "regexp_split_to_array", "strtok"),
    "array_join(array, ',')": ("array_to_string", "list_aggr"),
    "instr(text, part)": ("strpos", "indexof", "index_of", "find", "position_of"),
    "contains(text, part)": ("str_contains", "includes"),
    "startswith(text, part)": ("starts_with", "prefix"),
    "endswith(text, part)": ("ends_with", "suffix"),
    "format_string('%s', value)": ("format", "sprintf", "strformat"),
    "substring(text, 1, 3)": ("mid", "substrb"),
    "repeat(text, 2)": ("replicate",),
    "coalesce(a, b)": ("if_null", "nz", "value_or"),
    "CASE WHEN condition THEN value ELSE value END": ("choose", "multiif", "multi_if", "if_else", "switch"),
    "TRY_CAST(column AS type)": (
        *("safe_cast", "try_to_number", "try_to_decimal", "try_to_numeric", "try_to_double", "try_to_boolean"),
        *("try_convert", "try_parse_json"),
    ),
    "CAST(column AS type)": (
        *("convert", "to_number", "to_numeric", "to_decimal", "to_double", "to_integer", "to_int", "to_varchar"),
        *("to_string", "to_boolean", "int8", "int4", "text", "str", "varchar", "stringtotimestamp"),
    ),
    "to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')": ("strptime", "str_to_date", "parse_timestamp", "parse_datetime"),
    "to_timestamp(text)": ("to_timestamp_ntz", "to_timestamp_ltz", "to_timestamp_tz", "to_datetime", "datetime"),
    "date_format(ts, 'yyyy-MM-dd')": (
        "strftime",
        "format_date",
        "format_timestamp",
        "timestamptostring",
        "datetostring",
    ),
    "timestamp_seconds(n)": ("epoch_s", "from_epoch", "from_epoch_seconds", "unixtime", "to_timestamp_s"),
    "timestamp_millis(n)": ("epoch_ms", "from_epoch_millis", "from_unixtime_millis", "to_timestamp_ms"),
    "ts - other_ts, which is an interval": ("age", "timediff", "time_diff", "date_age"),
    "date_trunc('hour', ts)": (
        "trunc_date",
        "timestamp_trunc",
        "datetime_trunc",
        "toStartOfHour".lower(),
        "time_slice",
    ),
    "dayofweek(ts)": ("dow", "weekday_name"),
    "get_json_object(text, '$.a.b')": (
        *("json_extract", "json_extract_string", "json_extract_scalar", "extractjsonfield", "json_extract_path_text"),
        *("jsonb_extract_path", "json_extract_path", "get_json_string"),
    ),
    "from_json(text, 'a INT, b STRING')": ("parse_json", "json_parse", "to_variant"),
    "to_json(struct(a, b))": ("json_object", "json_build_object", "row_to_json", "object_construct", "to_json_string"),
    "struct(a, b)": ("row", "struct_pack", "named_tuple"),
    "array(a, b)": ("array_construct", "list_value", "make_array", "as_array", "list"),
    "size(array)": ("array_length", "list_length", "array_len", "json_array_length", "array_count"),
    "array_contains(array, value)": ("list_contains", "has", "array_has", "contains_value", "json_array_contains"),
    "element_at(array, 1)": ("list_element", "array_get", "nth", "list_extract"),
    "map_keys(map)": ("object_keys", "json_keys", "keys"),
    "regexp_replace(text, pattern, other)": ("replace_regex", "regex_replace", "re_sub"),
    "regexp_extract(text, pattern, 1)": ("regex_extract", "regexp_match", "regexp_matches", "extract_regex"),
    "rlike(text, pattern)": ("regex_match", "regexp_matches_all", "match", "similar"),
    "sha2(text, 256)": ("sha256", "hash_sha256", "sha_256"),
    "xxhash64(column)": ("farm_fingerprint", "hash64", "murmur_hash", "murmurhash", "fnv_hash"),
    "round(x, 2)": ("to_fixed", "roundto"),
    "trunc(x) of a date, floor(x) of a number": ("truncate", "fix"),
    "ln(x)": ("loge",),
    "power(x, 2)": ("square",),
    "count_if(condition)": ("countif", "sum_if", "countwhere"),
    "count(DISTINCT column)": ("count_distinct", "uniq", "uniqexact", "distinct_count", "ndv"),
    "approx_count_distinct(column)": ("hll", "approx_distinct", "hll_count", "uniqhll12"),
    "max_by(column, ts)": ("latest_by_offset", "latest", "last_by", "argmax", "any_last", "max_with"),
    "min_by(column, ts)": ("earliest_by_offset", "earliest", "first_by", "argmin", "min_with"),
    "string_agg(text, ',')": ("group_concat", "wm_concat", "concat_agg", "array_concat_agg"),
    "collect_list(column)": ("grouparray", "list_agg", "json_agg", "jsonb_agg"),
    "QUALIFY row_number() OVER (PARTITION BY window_start ORDER BY n DESC) <= 3": ("topk", "topkdistinct", "top_k"),
    "percentile(x, 0.5)": ("quantile", "quantiles", "quantile_cont", "approx_median", "percentile_disc_approx"),
    "stddev(x)": ("stdev", "stdevp", "std_dev", "stddevpop"),
    "explode(sequence(1, 10))": ("generate_series", "generate_array", "range"),
    "array_agg(column)": ("array_accum", "grouparrayarray"),
    "url_encode(text)": ("urlencode", "encode_uri"),
    "base64(bytes)": ("to_base64", "base64_encode", "tobase64"),
    "unbase64(text)": ("from_base64", "base64_decode", "frombase64"),
}
"""What to write, by the names that other systems have for it."""

_NO_SESSION = "A query knows no session: write the value, or SET a variable and write ${name}."

INSTEAD: dict[str, str] = {
    **{name: f"Write {form}." for form, names in _OTHER_NAMES.items() for name in names},
    **dict.fromkeys(
        ("tumble", "hop", "cumulate", "time_bucket", "date_bin", "window_time"),
        "Write GROUP BY window(ts, '1 minute'), or a window after the stream: FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE].",
    ),
    **dict.fromkeys(
        GENERATORS,
        "It stands alone in the select list of a query without an aggregate, or after FROM: "
        "FROM s LATERAL VIEW explode(column) t AS element.",
    ),
    **dict.fromkeys(("user", "current_user", "session_user", "version", "database", "current_database"), _NO_SESSION),
    **dict.fromkeys(
        ("lag", "lead"), "Write FROM s AS x ASOF JOIN s AS y ON y.ts < x.ts AND x.k = y.k: the row before."
    ),
    **dict.fromkeys(
        ("ntile", "percent_rank", "cume_dist", "nth_value"),
        "Of the functions with OVER there are row_number, rank and dense_rank, over the results of a window.",
    ),
    **dict.fromkeys(
        ("grouping", "grouping_id", "raise_error", "assert_true"), "Leave it out: there is none of its kind here."
    ),
    **dict.fromkeys(("tumble_start", "hop_start", "session_start"), "Write window_start."),
    **dict.fromkeys(("tumble_end", "hop_end", "session_end"), "Write window_end."),
    "make_interval": "Write make_ym_interval(years, months) or make_dt_interval(days, hours, minutes, seconds): "
    "months and days are intervals of two types.",
    **dict.fromkeys(
        (
            *("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "getdate", "current_time"),
            *("proctime", "current_watermark", "sysdate", "sysdatetime", "systimestamp", "localtime", "today"),
            *("clock_timestamp", "statement_timestamp", "unix_now", "rowtime", "current_row_timestamp"),
        ),
        "A query reads no clock, so that it answers the same when it is run again: compare the times of its rows.",
    ),
    **dict.fromkeys(
        ("rand", "random", "randn", "uniform", "randstr", "shuffle"),
        "A query draws no lots, so that it answers the same when it is run again: take pmod(hash(column), 100), which "
        "is spread as evenly.",
    ),
    **dict.fromkeys(
        ("uuid", "monotonically_increasing_id", "gen_random_uuid", "uuid_string", "newid", "nextval", "generate_uuid"),
        "A query numbers no rows by chance, so that it answers the same when it is run again: take sha2(concat_ws(',', "
        "columns), 256) of what tells the rows apart.",
    ),
}
"""What to write for functions of other systems that this one has not."""

WORDS_INSTEAD = {
    **dict.fromkeys(
        ("window_start", "window_end", "window"),
        "It is a column of the results of a window that selects it: SELECT window_start, count(*) AS n "
        "FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE].",
    ),
    **{
        name: INSTEAD[name]
        for name in (
            *("current_timestamp", "current_date", "current_time", "localtimestamp", "localtime", "sysdate"),
            *("systimestamp", "current_user", "session_user", "rowtime", "proctime"),
        )
    },
}
"""The same for those that other systems call without parentheses."""

RANKS = ("row_number", "rank", "dense_rank")
"""The functions with OVER."""

KNOWN = (*FUNCTIONS, *AGGREGATE_NAMES, "json_tuple")
"""The names of all functions that a query may call."""

FIELDS: dict[str, str] = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "epoch")},
    **dict.fromkeys(("y", "yr"), "year"),
    "yearofweek": "year_of_week",
    "qtr": "quarter",
    "mon": "month",
    "w": "week",
    "d": "day",
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso", "isodow"), "dayofweek_iso"),
    **dict.fromkeys(("doy", "dayofyear"), "dayofyear"),
    **dict.fromkeys(("h", "hr"), "hour"),
    **dict.fromkeys(("m", "min"), "minute"),
    **dict.fromkeys(("second", "s", "sec"), "second_fraction"),
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


def unknown_column(name: str, near: str, names: Iterable[str]) -> str:
    """What to write for a column that is not there: `near` says which is meant, if one is."""
    if name.lower() in WORDS_INSTEAD:
        return WORDS_INSTEAD[name.lower()]
    called = "count(*)" if name.lower() == "count" else f"{name}(...)"
    function = f"A function is called with parentheses: {called}. " if name.lower() in (*KNOWN, *RANKS) else near
    text = "" if function or not name.isidentifier() else f" Text stands in quotes: '{name}'."
    return f"{function}The columns are {listed(names)}.{text}"
