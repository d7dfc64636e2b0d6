"""The names of functions: aggregates, ranks, fields of a time, and what to write for functions of other systems.

The scalar functions are declared in `functions/`.
"""

from __future__ import annotations

from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.aggregate_table import AGGREGATES

AGGREGATE_NAMES: dict[str, str] = {name: each.function for each in AGGREGATES for name in (each.name, *each.also)}
"""The aggregates by their spellings, each with the kernel's name for it."""

INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("tumble", "hop", "cumulate", "time_bucket", "date_bin", "window_time"),
        "Write GROUP BY window(ts, '1 minute'), or a window after the stream: FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE].",
    ),
    **dict.fromkeys(
        ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "unnest"),
        "It stands alone in the select list of a query without an aggregate, or after FROM: "
        "FROM s LATERAL VIEW explode(column) t AS element.",
    ),
    **dict.fromkeys(("tumble_start", "hop_start", "session_start"), "Write window_start."),
    **dict.fromkeys(("tumble_end", "hop_end", "session_end"), "Write window_end."),
    "make_interval": "Write make_ym_interval(years, months) or make_dt_interval(days, hours, minutes, seconds): "
    "months and days are intervals of two types.",
    **dict.fromkeys(
        (
            *("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "getdate", "current_time"),
            *("proctime", "current_watermark"),
        ),
        "A query reads no clock, so that it answers the same when it is run again: compare the times of its rows.",
    ),
    **dict.fromkeys(
        ("rand", "random", "randn", "uniform", "randstr", "shuffle"),
        "A query draws no lots, so that it answers the same when it is run again: take pmod(hash(column), 100), which "
        "is spread as evenly.",
    ),
    **dict.fromkeys(
        ("uuid", "monotonically_increasing_id"),
        "A query numbers no rows by chance, so that it answers the same when it is run again: take sha2(concat_ws(',', "
        "columns), 256) of what tells the rows apart.",
    ),
    "latest_by_offset": "Write max_by(column, ts).",
    "earliest_by_offset": "Write min_by(column, ts).",
    "generate_series": "Write explode(sequence(1, 10)).",
    "safe_cast": "Write TRY_CAST(column AS type).",
    "convert": "Write CAST(column AS type).",
}
"""What to write for functions of other systems that this one has not."""

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
