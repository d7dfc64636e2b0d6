"""Random queries with every kind of window, every aggregate, and what stands on top of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.property.cases import EPOCH, FILTERS, KEYS, Case, Row, declared, rows
from tests.property.user_aggregates import DECLARED

AGGREGATES = [
    "count(*)",
    "count(v)",
    "sum(v)",
    "sum(x)",
    "min(x)",
    "max(k)",
    "max(ts)",
    "avg(v)",
    "var_samp(v)",
    "var_pop(x)",
    "stddev_samp(x)",
    "stddev_pop(v)",
    "count(DISTINCT v)",
    "count(DISTINCT k)",
    "sum(DISTINCT v)",
    "avg(DISTINCT v)",
    "first(v)",
    "last(k)",
    "max_by(k, v)",
    "min_by(v, x)",
    "approx_count_distinct(v)",
    "approx_percentile(v, 0.5)",
    "percentile(v, 0.25)",
    "median(x)",
    "count_if(v > 2)",
    "bool_and(v > 0)",
    "bool_or(v > 3)",
    "count(*) FILTER (WHERE j = 1)",
    "sum(v) FILTER (WHERE k = 'a')",
    "last(v) FILTER (WHERE x > 0)",
    "count(DISTINCT j) FILTER (WHERE v IS NOT NULL)",
]
FURTHER = [
    "try_sum(v)",
    "any_value(k)",
    "mode(v)",
    "mode() WITHIN GROUP (ORDER BY k DESC)",
    "skewness(x)",
    "kurtosis(v)",
    "corr(v, x)",
    "covar_samp(x, v)",
    "regr_intercept(x, v)",
    "regr_r2(v, x)",
    "regr_count(v, x)",
    "regr_avgx(v, x)",
    "bit_and(v)",
    "bit_xor(v)",
    "percentile(v, array(0.1, 0.5))",
    "percentile_disc(0.4) WITHIN GROUP (ORDER BY x)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY v DESC)",
    "array_agg(v)",
    "collect_list(k) RESPECT NULLS",
    "collect_set(v)",
    "collect_set(k) FILTER (WHERE v > 1)",
    "string_agg(k, ',')",
    "listagg(v, '-') WITHIN GROUP (ORDER BY x DESC, k NULLS LAST)",
    "listagg(DISTINCT k, '-') WITHIN GROUP (ORDER BY k DESC)",
    "count(DISTINCT v, k)",
    "stddev(DISTINCT v)",
    "max(struct(k, v))",
]
"""Aggregates of which queries have some, but no query all."""
FIXED = [(10, 10), (30, 10), (25, 10), (7, 3), (5, 5), (4, 10), (500, 500), (300, 7)]
"""Range and slide in seconds: tumbling, sliding, ragged, with gaps, and wider than the data."""

Query = Callable[[st.DrawFn, str], str]


@st.composite
def aggregates(draw: st.DrawFn, most: int = 3) -> str:
    """Some aggregates under names of their own."""
    chosen = draw(st.lists(st.sampled_from([*AGGREGATES, *FURTHER]), min_size=1, max_size=most, unique=True))
    return ", ".join(f"{each} AS a{number}" for number, each in enumerate(chosen))


def grouped(draw: st.DrawFn, union: str, window: str, options: str = "") -> str:
    """An aggregate over a window of the form that stands after the streams."""
    keys, where = draw(st.sampled_from(KEYS)), draw(st.sampled_from(FILTERS))
    grouping = f"GROUP BY {', '.join(keys)}" if keys else ""
    having = draw(st.sampled_from(["", "", "HAVING count(*) > 1"]))
    items = ", ".join(["window", *keys, draw(aggregates())])
    return f"SELECT {items} FROM {union} {window} {where} {grouping} {having} {options}"


def fixed(draw: st.DrawFn, union: str) -> str:
    how = options(draw, two_levels=True)
    # More slack than there is disorder changes nothing but when results come.
    slack = draw(st.sampled_from(["", "", ", slack = '1 day'"]))
    return grouped(draw, union, fixed_window(draw), how[:-1] + slack + ")")


def fixed_window(draw: st.DrawFn) -> str:
    length, slide = draw(st.sampled_from(FIXED))
    return f"[RANGE {length} SECONDS SLIDE {slide} SECONDS WA ts]"


def options(draw: st.DrawFn, *, two_levels: bool = False) -> str:
    """Settings that change how an answer is found, never the answer."""
    found = [f"strategy = '{draw(st.sampled_from(['dfs', 'bfs', 'rr', 'batch:1', 'batch:3']))}'"]
    if two_levels:
        found.append(f"panes = '{draw(st.sampled_from(['auto', 'on', 'off']))}'")
        baselines = draw(st.sampled_from([["in_order"], []]))
        flush = draw(st.sampled_from([None, "in_order", "slow_flush(2, 2)", "lazy_flush(2)", "slow_flush(1, 1)"]))
        if flush is not None and "'off'" not in found[1]:
            found.append(f"low_level_groups = {draw(st.sampled_from([1, 2, 7]))}")
            if flush == "in_order":
                baselines = [*baselines, "in_order_flush"]
            else:
                found.append(f"flush = '{flush}'")
        found += [f"baseline = '{', '.join(baselines)}'"] if baselines else []
    return f"WITH ({', '.join(found)})"


def rows_sliding(draw: st.DrawFn, union: str) -> str:
    length, slide = draw(st.sampled_from([(3, 3), (5, 2), (7, 3), (2, 5), (100, 100), (4, 1)]))
    return grouped(draw, union, f"[ROWS {length} SLIDE {slide}]")


def rows_trailing(draw: st.DrawFn, union: str) -> str:
    return grouped(draw, union, f"[ROWS {draw(st.sampled_from([1, 2, 4, 100]))}]")


def rows_partitioned(draw: st.DrawFn, union: str) -> str:
    slide = draw(st.sampled_from(["", "SLIDE 1", "SLIDE 2", "SLIDE 4"]))
    keys, where = draw(st.sampled_from(KEYS[1:])), draw(st.sampled_from(FILTERS))
    names = ", ".join(keys)
    window = f"[ROWS {draw(st.sampled_from([1, 3, 100]))} {slide} PARTITION BY {names}]"
    return f"SELECT window, {names}, {draw(aggregates())} FROM {union} {window} {where} GROUP BY {names}"


def trailing(draw: st.DrawFn, union: str) -> str:
    return grouped(draw, union, f"[RANGE {draw(st.sampled_from([1, 5, 20, 1000]))} SECONDS]")


def unlimited(draw: st.DrawFn, union: str) -> str:
    return grouped(draw, union, "[RANGE UNLIMITED PRECEDING]", "WITH (state_limit = 100)")


def session(draw: st.DrawFn, union: str) -> str:
    return grouped(draw, union, f"[SESSION {draw(st.sampled_from([1, 3, 10, 1000]))} SECONDS]")


def by_unit(draw: st.DrawFn, union: str) -> str:
    """Grouping by a monotone function of the time."""
    unit = draw(st.sampled_from(["minute", "hour", "day", "week", "month", "quarter", "year"]))
    trunc = f"date_trunc('{unit}', ts)"
    moment = draw(st.sampled_from([trunc, trunc, "CAST(ts AS DATE)", "unix_timestamp(ts) div 7", "unix_timestamp(ts)"]))
    keys, where = draw(st.sampled_from(KEYS)), draw(st.sampled_from(FILTERS))
    names, how = "".join(f", {key}" for key in keys), options(draw, two_levels=True)
    return f"SELECT {moment} AS at{names}, {draw(aggregates())} FROM {union} {where} GROUP BY {moment}{names} {how}"


def by_instant(draw: st.DrawFn, union: str) -> str:
    how = options(draw, two_levels=True)
    return f"SELECT ts, {draw(aggregates())} FROM {union} {draw(st.sampled_from(FILTERS))} GROUP BY ts {how}"


def nested(draw: st.DrawFn, union: str) -> str:
    """An aggregate over a window's results, keyed differently, of the same windows or of others; up to three levels."""
    inside = draw(st.sampled_from([fixed_window(draw), "[SESSION 3 SECONDS]", "[RANGE 4 SECONDS]", "[ROWS 4 SLIDE 2]"]))
    inner = f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM {union} {inside} GROUP BY k, j"
    outer = draw(st.sampled_from(["max(n) AS most, count(*) AS groups", "sum(total) AS most, first(n) AS groups"]))
    same = f"SELECT window_start, window_end, j, {outer} FROM ({inner}) AS t GROUP BY window_start, window_end, j"
    if inside.startswith("[ROWS") or draw(st.booleans()):
        total = f"SELECT window_end, sum(most) AS s FROM ({same}) AS u GROUP BY window_end"
        return draw(st.sampled_from([same, total]))
    window = draw(st.sampled_from(["[RANGE 60 SECONDS SLIDE 20 SECONDS]", "[SESSION 5 SECONDS]", "[RANGE 9 SECONDS]"]))
    return f"SELECT window, j, {outer} FROM ({inner}) AS t {window} GROUP BY j"


def distinct(draw: st.DrawFn, union: str) -> str:
    where, window = draw(st.sampled_from(FILTERS)), fixed_window(draw)
    return draw(
        st.sampled_from(
            [
                f"SELECT DISTINCT k, ts FROM {union} {where}",
                f"SELECT DISTINCT window_start, k, j FROM {union} {window} {where}",
                f"SELECT DISTINCT date_trunc('minute', ts) AS minute, k FROM {union} {where}",
            ]
        )
    )


def ranked(draw: st.DrawFn, union: str) -> str:
    """The first few of each window, as Flink's users write it and by QUALIFY."""
    function = draw(st.sampled_from(["row_number", "rank", "dense_rank"]))
    order = draw(st.sampled_from(["n DESC", "n", "total DESC, k", "total"]))
    inner = f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM {union} {fixed_window(draw)} GROUP BY k, j"
    partition = draw(st.sampled_from(["window_start, window_end", "window_start, window_end, j"]))
    over = f"{function}() OVER (PARTITION BY {partition} ORDER BY {order})"
    if draw(st.booleans()):
        return f"SELECT * FROM (SELECT *, {over} AS place FROM ({inner}) AS t) AS ranked WHERE place <= 2"
    return f"SELECT *, {over} AS place FROM ({inner}) AS t QUALIFY place = 1"


def user_defined(draw: st.DrawFn, union: str) -> str:
    chosen = draw(st.sampled_from(["spread(x) AS a", "myavg(v) AS b, count(*) AS c", "spread(v) AS d, myavg(x) AS e"]))
    window = draw(st.sampled_from([fixed_window(draw), "[SESSION 3 SECONDS]", "[RANGE 5 SECONDS]", "[ROWS 4 SLIDE 2]"]))
    where = "WHERE v IS NOT NULL AND x IS NOT NULL"
    return f"SELECT window, k, {chosen} FROM {union} {window} {where} GROUP BY k"


KINDS: dict[str, Query] = {
    each.__name__: each
    for each in (
        fixed,
        rows_sliding,
        rows_trailing,
        rows_partitioned,
        trailing,
        unlimited,
        session,
        by_unit,
        by_instant,
        nested,
        distinct,
        ranked,
        user_defined,
    )
}

_STRETCHED = 150_000
"""Seconds to about two days: calendar units need weeks of rows."""


@st.composite
def window_cases(draw: st.DrawFn, kind: str) -> Case:
    """One or two streams with disorder, and a query of one kind over them."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 2)))]
    stretch = draw(st.sampled_from([1, 60, _STRETCHED])) if kind == "by_unit" else 1
    sql, given = DECLARED if kind == "user_defined" else "", {}
    for name in names:
        disorder = draw(st.sampled_from([0, 2, 15]))
        start = draw(st.sampled_from([-40, -3, 0, 1_700_000_000])) if len(names) == 1 and stretch == 1 else -3
        sql += declared(name, disorder * stretch)
        given[name] = stretched(draw(rows(disorder, start)), stretch)
    return Case(f"{sql}CREATE QUERY q AS {KINDS[kind](draw, ' UNION '.join(names))};", given)


def stretched(given: Sequence[Row], stretch: int) -> list[Row]:
    """The same rows over a longer time."""
    return [{**row, "ts": EPOCH + (row["ts"] - EPOCH) * stretch} for row in given]


def instants(given: Sequence[Row]) -> list[Row]:
    """The same rows, each a little later than the one before it where they were equal in time."""
    return [{**row, "ts": row["ts"] + dt.timedelta(microseconds=number)} for number, row in enumerate(given)]
