"""Random joins and sequences: keys, bands, windows, outer sides, several inputs, and what stands on top of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from tests.property.cases import EPOCH, SECOND, Case, Row

COLUMNS = "k STRING, j INT, v BIGINT, x DOUBLE, ts TIMESTAMP, began TIMESTAMP"
"""The columns of every stream; `began` says until when a row counts, where a query asks for it."""

KEYS = [
    "",
    "x.k = y.k AND ",
    "x.k = y.k AND ",
    "x.k = y.k AND ",
    "x.j = y.j AND x.k = y.k AND ",
    "x.j = y.v AND ",
    "x.x = y.x AND ",
    "x.v = y.x AND ",
    "x.v + 1 = y.v AND ",
]
"""None, one, several, of different widths, fractions, computed."""
BANDS = [
    "y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS",
    "y.ts BETWEEN x.ts - INTERVAL 3 SECONDS AND x.ts + INTERVAL 1 SECOND",
    "x.ts >= y.ts - INTERVAL 2 SECONDS AND x.ts <= y.ts + INTERVAL 20 SECONDS",
    "y.ts > x.ts AND y.ts < x.ts + INTERVAL 3 SECONDS",
    "y.ts BETWEEN x.ts + INTERVAL 2 SECONDS AND x.ts + INTERVAL 6 SECONDS",
    "y.ts BETWEEN x.ts - INTERVAL 9 SECONDS AND x.ts + INTERVAL 9 SECONDS",
    "x.ts = y.ts",
    "date_trunc('minute', x.ts) = date_trunc('minute', y.ts)",
]
DIVIDED = "unix_timestamp(x.ts) div 7 = unix_timestamp(y.ts) div 7"
RESIDUALS = ["", "", " AND x.v < y.v", " AND x.v + y.v > 3", " AND x.k <> y.k", " AND (x.j IS NULL OR y.v > 2)"]
FILTERS = ["", "", "WHERE x.v > 1", "WHERE y.k IS NOT NULL AND x.j < 2"]
BOTH = "x.k AS xk, x.j AS xj, x.v AS xv, x.ts AS xts, y.k AS yk, y.v AS yv, y.x AS yx, y.ts AS yts"
RANGES = ["[RANGE 5 SECONDS]", "[RANGE 20 SECONDS]", "[RANGE 1 SECOND]", "[RANGE 0 SECONDS]"]
METHODS = ["oop", "sync_filter", "filter_order", "adaptive"]

Query = Callable[[st.DrawFn], str]


def one_of(draw: st.DrawFn, among: list[str]) -> str:
    return draw(st.sampled_from(among))


def condition(draw: st.DrawFn) -> str:
    """Keys, a band, and something else."""
    return one_of(draw, KEYS) + one_of(draw, BANDS) + one_of(draw, RESIDUALS)


def banded(draw: st.DrawFn) -> str:
    return f"SELECT {BOTH} FROM s0 AS x JOIN s1 AS y ON {condition(draw)} {one_of(draw, FILTERS)}"


def outer(draw: st.DrawFn) -> str:
    kind = one_of(draw, ["LEFT", "RIGHT OUTER", "FULL", "FULL OUTER"])
    return f"SELECT {BOTH} FROM s0 AS x {kind} JOIN s1 AS y ON {condition(draw)} {one_of(draw, FILTERS)}"


def crossed(draw: st.DrawFn) -> str:
    return f"SELECT {BOTH} FROM s0 AS x CROSS JOIN s1 AS y WHERE {one_of(draw, BANDS)}"


def ranged(draw: st.DrawFn) -> str:
    """A window on each side, as the papers write it."""
    sides = f"s0 {one_of(draw, RANGES)} AS x, s1 {one_of(draw, RANGES)} AS y"
    return f"SELECT {BOTH} FROM {sides} WHERE {one_of(draw, KEYS)}TRUE{one_of(draw, RESIDUALS)}"


def windowed(draw: st.DrawFn) -> str:
    """One window for both sides, and an aggregate in it."""
    if draw(st.booleans()):
        return f"SELECT {BOTH} FROM s0 AS x, s1 AS y WHERE {one_of(draw, KEYS)}x.v < y.v WINDOW 10 SECONDS"
    return "SELECT window, x.k AS k, count(*) AS n FROM s0 AS x, s1 AS y WHERE x.k = y.k WINDOW 10 SECONDS GROUP BY x.k"


def divided(draw: st.DrawFn) -> str:
    return f"SELECT {BOTH} FROM s0 AS x JOIN s1 AS y ON {one_of(draw, KEYS)}{DIVIDED}{one_of(draw, RESIDUALS)}"


def lasting(draw: st.DrawFn) -> str:
    """Each row says until when it matches."""
    band = one_of(draw, ["y.ts BETWEEN x.ts AND x.began", "x.ts BETWEEN y.ts - INTERVAL 2 SECONDS AND y.began"])
    kind = one_of(draw, ["", "LEFT", "RIGHT", "FULL"])
    on = f"{one_of(draw, KEYS)}{band}{one_of(draw, RESIDUALS)}"
    return f"SELECT {BOTH} FROM s0 AS x {kind} JOIN s1 AS y ON {on}"


def counted(draw: st.DrawFn) -> str:
    """Windows by rows, also of each group, also on one side alone or beside a window by time."""
    windows = ["[ROWS 1]", "[ROWS 3]", "[ROWS 2 PARTITION BY k]", "[ROWS 4 PARTITION BY j]", "[ROWS 100]"]
    first, second = one_of(draw, windows), one_of(draw, [*windows, "[RANGE 5 SECONDS]", ""])
    sides = f"s0 {first} AS x, s1 {second} AS y" if draw(st.booleans()) else f"s0 {second} AS x, s1 {first} AS y"
    return f"SELECT {BOTH} FROM {sides} WHERE {one_of(draw, KEYS)}TRUE{one_of(draw, RESIDUALS)}"


def as_of(draw: st.DrawFn) -> str:
    keys = one_of(draw, ["", " AND x.k = y.k", " AND x.k = y.k AND x.j = y.j", " AND x.j = y.v"])
    order = one_of(draw, ["y.ts <= x.ts", "x.ts >= y.ts", "y.ts < x.ts"])
    tolerance = one_of(draw, ["", " AND y.ts >= x.ts - INTERVAL 4 SECONDS"])
    kind = one_of(draw, ["ASOF JOIN", "ASOF LEFT JOIN", "LEFT ASOF JOIN"])
    return f"SELECT {BOTH} FROM s0 AS x {kind} s1 AS y ON {order}{keys}{tolerance}"


def as_of_union(draw: st.DrawFn) -> str:
    """Equal times are told apart by contents, for two streams have no common order of entry."""
    return f"SELECT {BOTH} FROM s0 AS x ASOF LEFT JOIN s1 UNION s2 AS y ON y.ts <= x.ts AND x.k = y.k"


def recent(draw: st.DrawFn) -> str:
    within = one_of(draw, ["", "WITHIN INTERVAL 5 SECONDS"])
    return f"SELECT {BOTH} FROM s0 AS x SEQ s1 AS y {_sequence(draw, 'RECENT')} {within} {one_of(draw, FILTERS)}"


def chronicle(draw: st.DrawFn) -> str:
    text = f"SELECT {BOTH} FROM s0 AS x SEQ s1 AS y {_sequence(draw, 'CHRONICLE')}"
    if draw(st.booleans()):
        return f"{text} WITH (state_limit = 100)"
    return f"{text} WITHIN INTERVAL {one_of(draw, ['1 SECOND', '5 SECONDS', '1 MINUTE'])}"


def _sequence(draw: st.DrawFn, mode: str) -> str:
    keys = one_of(draw, ["", "ON x.k = y.k", "ON x.k = y.k AND x.j = y.j"])
    return f"{keys} MODE {mode} {one_of(draw, ['', 'OUTER'])}"


def in_a_row(draw: st.DrawFn) -> str:
    """Three streams in sequence."""
    mode = one_of(draw, ["RECENT", "CHRONICLE"])
    third = "z.k AS zk, z.v AS zv, z.ts AS zts"
    keys = one_of(draw, ["WHERE x.k = y.k AND y.k = z.k", ""])
    return f"SELECT {BOTH}, {third} FROM s0 AS x SEQ s1 AS y SEQ s2 AS z MODE {mode} WITHIN INTERVAL 9 SECONDS {keys}"


def three(draw: st.DrawFn) -> str:
    """Three inputs on one key, on different keys, or on none."""
    keys = one_of(draw, ["x.k = y.k AND y.k = z.k AND ", "x.k = y.k AND y.j = z.j AND ", "x.j = z.v AND ", ""])
    bands = one_of(
        draw,
        [
            "y.ts BETWEEN x.ts AND x.ts + INTERVAL 3 SECONDS AND z.ts BETWEEN y.ts AND y.ts + INTERVAL 4 SECONDS",
            "abs(x.v - z.v) < 4 AND y.ts = x.ts AND z.ts BETWEEN x.ts - INTERVAL 2 SECONDS AND x.ts",
        ],
    )
    third = "z.k AS zk, z.v AS zv, z.ts AS zts"
    if draw(st.booleans()):
        windows = [f"s{number} {one_of(draw, RANGES)} AS {name}" for number, name in enumerate("xyz")]
        return f"SELECT {BOTH}, {third} FROM {', '.join(windows)} WHERE {keys}x.v <> z.v"
    return f"SELECT {BOTH}, {third} FROM s0 AS x, s1 AS y, s2 AS z WHERE {keys}{bands}"


def with_itself(draw: st.DrawFn) -> str:
    on = f"x.k = y.k AND x.v < y.v AND {one_of(draw, BANDS)}"
    return f"SELECT {BOTH} FROM s0 AS x {one_of(draw, ['', 'LEFT', 'FULL'])} JOIN s0 AS y ON {on}"


def of_unions(draw: st.DrawFn) -> str:
    sides = f"s0 UNION s1 AS x, s1 UNION s2 AS y WHERE {one_of(draw, KEYS)}{one_of(draw, BANDS)}"
    return f"SELECT {BOTH} FROM {sides}"


def of_subqueries(draw: st.DrawFn) -> str:
    """Inputs that are filtered, computed, or aggregates of windows."""
    one = "(SELECT k, j, v * 2 AS v, x, ts FROM s0 WHERE v > 0) AS x"
    if draw(st.booleans()):
        return f"SELECT {BOTH} FROM {one} JOIN s1 AS y ON {one_of(draw, KEYS)}{one_of(draw, BANDS)}"
    counts = "SELECT window, k, count(*) AS n FROM {} [RANGE 5 SECONDS SLIDE 5 SECONDS WA ts] GROUP BY k"
    return (
        f"SELECT x.k AS k, x.n AS n, y.n AS m, x.window_start AS start FROM ({counts.format('s0')}) AS x"
        f" JOIN ({counts.format('s1')}) AS y ON x.k = y.k AND x.window_start = y.window_start"
        " AND x.window_end = y.window_end"
    )


def aggregated(draw: st.DrawFn) -> str:
    """An aggregate over a join, by any of the times of its rows."""
    on = one_of(draw, KEYS) + one_of(draw, BANDS[:7])
    what = "sum(x.v) AS a, max(y.v) AS b"
    by = one_of(
        draw,
        [
            "[RANGE 10 SECONDS SLIDE 5 SECONDS WA x.ts]",
            "[RANGE 10 SECONDS SLIDE 10 SECONDS WA y.ts]",
            "GROUP BY x.ts",
            "GROUP BY y.ts",
            "GROUP BY date_trunc('minute', x.ts), x.k",
            "GROUP BY greatest(x.ts, y.ts)",
            "GROUP BY least(x.ts, y.ts), y.k",
            "GROUP BY x.ts, y.ts",
            "GROUP BY x.ts, y.ts, x.k",
        ],
    )
    if by.startswith("["):
        return f"SELECT window, x.k AS k, count(*) {by} AS n, {what} FROM s0 AS x JOIN s1 AS y ON {on} GROUP BY x.k"
    keys = by.removeprefix("GROUP BY ")
    return f"SELECT {keys}, count(*) AS n, {what} FROM s0 AS x JOIN s1 AS y ON {on} {by}"


def ordered(draw: st.DrawFn) -> str:
    methods = [f"join = '{method}'" for method in METHODS]
    return f"{in_order(draw)} WITH ({one_of(draw, [*methods, 'alpha = 0', 'alpha = 0.9'])})"


def in_order(draw: st.DrawFn) -> str:
    """An ordered join of two or three inputs; `ts` is the time of its rows."""
    keys, window = one_of(draw, KEYS), one_of(draw, RANGES)
    if draw(st.integers(0, 3)):
        sides = f"s0 {window} AS x, s1 {one_of(draw, RANGES)} AS y"
        selected = f"{BOTH}, greatest(x.ts, y.ts) AS ts"
        where = f"{keys}TRUE{one_of(draw, RESIDUALS)}"
        return f"SELECT {selected} FROM {sides} WHERE {where} ORDER BY greatest(x.ts, y.ts)"
    sides = f"s0 {window} AS x, s1 {window} AS y, s2 {window} AS z"
    selected = f"{BOTH}, z.v AS zv, greatest(x.ts, y.ts, z.ts) AS ts"
    return f"SELECT {selected} FROM {sides} WHERE x.k = y.k AND y.k = z.k ORDER BY greatest(x.ts, y.ts, z.ts)"


PLAIN: dict[str, Query] = {each.__name__: each for each in (banded, outer, crossed, with_itself)}
"""Joins that mean the same to any SQL database."""
KINDS: dict[str, Query] = PLAIN | {
    each.__name__: each
    for each in (
        ranged,
        windowed,
        divided,
        lasting,
        counted,
        as_of,
        as_of_union,
        recent,
        chronicle,
        in_a_row,
        three,
        of_unions,
        of_subqueries,
        aggregated,
        ordered,
    )
}


@st.composite
def join_cases(draw: st.DrawFn, query: Query) -> Case:
    """Two or three streams with disorder and skew, and a query over them."""
    text = query(draw)
    sql, given = "", {}
    for name in ("s0", "s1", "s2"):
        if name in text:
            disorder = draw(st.sampled_from([0, 2, 15]))
            sql += declared(name, disorder)
            given[name] = draw(ending(disorder))
    return Case(f"{sql}CREATE QUERY q AS {text};", given)


def declared(stream: str, disorder: int) -> str:
    order = f"DISORDER INTERVAL {disorder} SECONDS" if disorder else "ORDERED"
    return f"CREATE STREAM {stream} ({COLUMNS}) TIMESTAMP BY ts {order} FROM iterable;\n"


@st.composite
def ending(draw: st.DrawFn, disorder: int) -> list[Row]:
    """Rows that end some time after they begin, or before, or nobody knows when; keys are few, one may be busy.

    They come from a seed: rows drawn one by one seldom match.
    """
    random, busy = Random(draw(st.integers(0, 2**32))), draw(st.sampled_from([0.0, 0.7]))
    found, greatest = [], random.choice([-8, -3]) * SECOND
    for _ in range(draw(st.sampled_from([4, 20, 24, 20, 12, 0]))):
        greatest += random.choice([0, 0, 1, SECOND // 2, SECOND, SECOND, 2 * SECOND, 5 * SECOND])
        # Counted from the greatest time so far, so that no row is late.
        found.append(_row(random, greatest - random.randint(0, disorder * 2) * SECOND // 2, busy))
    return found


def _row(random: Random, time: int, busy: float) -> Row:
    lasts = random.choice([None, -1, 0, 1, 4, 9])
    return {
        "k": "a" if random.random() < busy else random.choice([None, "a", "b", "ä"]),
        "j": random.choice([None, 0, 1, 2]),
        "v": random.choice([None, *range(-1, 5)]),
        "x": random.choice([None, 0.0, -0.0, 2.0, -1.25]),
        "ts": EPOCH + dt.timedelta(microseconds=time),
        "began": None if lasts is None else EPOCH + dt.timedelta(microseconds=time + lasts * SECOND),
    }
