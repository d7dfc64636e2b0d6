"""Every kind of join over three streams in one network, on every host, against nested loops and against DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.language import parse_network
from millrace.plan.nodes.node import walk
from millrace.testing import Host
from tests.reference import evaluate, same

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is an oracle of these tests; runs wherever the dev extra is installed"
)

pytestmark = pytest.mark.slow

DISORDER = 6
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("j", pa.int32()),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("ts", TIMESTAMP),
        ("ends", TIMESTAMP),
    ]
)
STREAMS = "".join(
    f"CREATE STREAM {name} (k STRING, j INT, v BIGINT, x DOUBLE, ts TIMESTAMP, ends TIMESTAMP)"
    f" TIMESTAMP BY ts DISORDER INTERVAL {DISORDER} SECONDS FROM iterable;\n"
    for name in "abc"
)
BOTH = "x.k AS k, x.v AS xv, x.ts AS xts, y.v AS yv, y.ts AS yts"
THREE = f"{BOTH}, z.v AS zv, z.ts AS zts"
BAND = "y.ts BETWEEN x.ts - INTERVAL 1 SECOND AND x.ts + INTERVAL 3 SECONDS"
COUNTS = "count(*) AS n, sum(x.v + y.v) AS total"
JOINED = f"FROM a AS x JOIN b AS y ON x.k = y.k AND {BAND}"
AT_ONCE = "SELECT window, k, count(*) AS n FROM {} [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"
PLAIN = {
    "band": f"SELECT {BOTH} {JOINED}",
    "band_by_two_keys": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON x.k = y.k AND x.j = y.j AND {BAND}",
    "band_without_keys": f"SELECT {BOTH} FROM a AS x CROSS JOIN b AS y WHERE y.ts = x.ts AND x.v < y.v",
    "band_by_numbers": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON x.j = y.v AND {BAND}",
    "band_by_fractions": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON x.x = y.x AND {BAND} WHERE x.v + y.v > 9",
    "by_using": f"SELECT {BOTH} FROM a AS x JOIN b AS y USING (k, j) WHERE {BAND}",
    "left_outer": f"SELECT {BOTH} FROM a AS x LEFT JOIN b AS y ON x.k = y.k AND {BAND} AND y.v > 4",
    "right_outer": f"SELECT {BOTH} FROM a AS x RIGHT JOIN b AS y ON x.k = y.k AND {BAND}",
    "full_outer": f"SELECT {BOTH} FROM a AS x FULL OUTER JOIN b AS y ON x.j = y.j AND x.v = y.v AND {BAND}",
    "until": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ends",
    "until_left": f"SELECT {BOTH} FROM a AS x LEFT JOIN b AS y ON x.v = y.v AND y.ts BETWEEN x.ts AND x.ends",
    "by_minute": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON date_trunc('minute', x.ts) = date_trunc('minute', y.ts)"
    " AND x.v = y.v",
    "itself": f"SELECT {BOTH} FROM a AS x JOIN a AS y ON x.k = y.k"
    " AND y.ts > x.ts AND y.ts < x.ts + INTERVAL 2 SECONDS",
    "three": f"SELECT {THREE} FROM a AS x, b AS y, c AS z WHERE x.k = y.k AND y.k = z.k AND {BAND}"
    " AND z.ts BETWEEN y.ts AND y.ts + INTERVAL 1 SECOND",
    "pipeline": f"SELECT {THREE} FROM a AS x JOIN b AS y ON x.k = y.k AND {BAND}"
    " JOIN c AS z ON y.j = z.j AND z.ts BETWEEN y.ts AND y.ts + INTERVAL 2 SECONDS",
    "by_first_time": f"SELECT x.ts, {COUNTS} {JOINED} GROUP BY x.ts",
    "by_second_time": f"SELECT date_trunc('minute', y.ts) AS minute, x.k, {COUNTS} {JOINED}"
    " GROUP BY date_trunc('minute', y.ts), x.k",
    "by_later_time": f"SELECT greatest(x.ts, y.ts) AS at, {COUNTS} {JOINED} GROUP BY greatest(x.ts, y.ts)",
    "by_earlier_time": f"SELECT least(x.ts, y.ts) AS at, {COUNTS} {JOINED} GROUP BY least(x.ts, y.ts)",
    "by_pair": f"SELECT x.ts AS xts, y.ts AS yts, {COUNTS} {JOINED} GROUP BY x.ts, y.ts",
}
"""Joins that DuckDB reads as they stand."""
OURS = {
    "windows": f"SELECT {BOTH} FROM a [RANGE 3 SECONDS] AS x, b [RANGE 1 SECOND] AS y WHERE x.k = y.k",
    "one_window": f"SELECT {BOTH} FROM a AS x, b AS y WHERE x.k = y.k AND x.j = y.j WINDOW 2 SECONDS",
    "divided": f"SELECT {BOTH} FROM a AS x JOIN b AS y ON unix_timestamp(x.ts) div 5 = unix_timestamp(y.ts) div 5"
    " AND x.k = y.k",
    "unions": f"SELECT {BOTH} FROM a UNION c AS x, b UNION c AS y WHERE x.k = y.k AND x.v = y.v AND {BAND}",
    "subqueries": f"SELECT x.k, x.window_start, x.n AS xn, y.n AS yn FROM ({AT_ONCE.format('a')}) AS x"
    f" JOIN ({AT_ONCE.format('b')}) AS y ON x.k = y.k AND x.window_start = y.window_start",
    "by_window": "SELECT x.k AS k, count(*) [RANGE 20 SECONDS SLIDE 10 SECONDS WA x.ts] AS n, max(y.v) AS most"
    f" {JOINED} GROUP BY x.k",
    "rows": f"SELECT {BOTH} FROM a [ROWS 20] AS x, b [ROWS 10] AS y WHERE x.k = y.k",
    "rows_partitioned": f"SELECT {BOTH} FROM a [ROWS 2 PARTITION BY k] AS x, b AS y WHERE x.k = y.k",
    "rows_and_range": f"SELECT {BOTH} FROM a [ROWS 5] AS x, b [RANGE 2 SECONDS] AS y WHERE x.v < y.v",
    "as_of": f"SELECT {BOTH} FROM a AS x ASOF JOIN b AS y ON y.ts <= x.ts AND x.k = y.k",
    "as_of_strict": f"SELECT {BOTH} FROM a AS x ASOF LEFT JOIN b AS y ON y.ts < x.ts AND x.k = y.k"
    " AND y.ts >= x.ts - INTERVAL 1 SECOND",
    "as_of_matched": f"SELECT {BOTH} FROM a AS x ASOF JOIN b AS y MATCH_CONDITION (x.ts >= y.ts) ON x.j = y.j",
    "as_of_alone": f"SELECT {BOTH} FROM a AS x ASOF JOIN b UNION c AS y ON y.ts <= x.ts",
    "recent": f"SELECT {BOTH} FROM a AS x SEQ b AS y MODE RECENT WHERE x.k = y.k",
    "recent_of_three": f"SELECT {THREE} FROM a AS x SEQ b AS y SEQ c AS z MODE RECENT WITHIN INTERVAL 9 SECONDS"
    " WHERE x.k = y.k AND y.j = z.j",
    "chronicle": f"SELECT {BOTH} FROM a AS x SEQ b AS y MODE CHRONICLE WITHIN INTERVAL 3 SECONDS WHERE x.k = y.k",
    "chronicle_outer": f"SELECT {BOTH} FROM a AS x SEQ b AS y ON x.j = y.j MODE CHRONICLE OUTER"
    " WITH (state_limit = 1000)",
} | {
    f"ordered_{method}": "SELECT x.k AS k, x.v AS xv, y.v AS yv, greatest(x.ts, y.ts) AS ts"
    f" FROM a [RANGE 3 SECONDS] AS x, b [RANGE 3 SECONDS] AS y WHERE x.k = y.k"
    f" ORDER BY greatest(x.ts, y.ts) WITH (join = '{method}')"
    for method in ("oop", "sync_filter", "filter_order", "adaptive")
}
QUERIES = PLAIN | OURS
SQL = STREAMS + "".join(f"CREATE QUERY {name} AS {text};\n" for name, text in QUERIES.items())


def rows_of(seed: int, count: int) -> list[dict[str, Any]]:
    """Rows about a third of a second apart, before and after 1970, shaken within the disorder."""
    random = np.random.default_rng(seed)
    times = dt.datetime(1969, 12, 31, 23, 59, 50, tzinfo=dt.UTC).timestamp() + np.cumsum(random.exponential(0.3, count))
    times = np.round(times - random.uniform(0, DISORDER - 1, count), 1)
    return [
        {
            "k": random.choice([None, "a", "b", "c", "ä"]),
            "j": random.choice([None, 0, 1, 2]),
            "v": None if random.random() < 0.1 else int(random.integers(0, 10)),
            "x": random.choice([None, 0.0, -0.0, 0.5, 1e6]),
            "ts": dt.datetime.fromtimestamp(float(time), dt.UTC),
            "ends": random.choice(
                [None, *(dt.datetime.fromtimestamp(float(time) + more, dt.UTC) for more in (0, 2, 5))]
            ),
        }
        for time in times
    ]


def pieces(given: list[dict[str, Any]], seed: int, count: int) -> list[pa.Table]:
    """The rows cut anywhere."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(given), count - 1)).tolist()
    parts = [given[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    return [pa.Table.from_pylist(part, schema=SCHEMA) for part in parts if part]


INPUTS = {"a": rows_of(1, 150), "b": rows_of(2, 120), "c": rows_of(3, 80)}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict[str, Any]]]:
    return {query.name: evaluate(query, INPUTS) for query in parse_network(SQL).queries}


def test_every_kind_of_join_is_what_the_reference_says(host: Host, expected: dict[str, list[dict[str, Any]]]) -> None:
    found = host.run(SQL, {name: pieces(given, seed=7, count=4) for name, given in INPUTS.items()})
    wrong = [name for name in QUERIES if not same(found[name], expected[name])]
    assert not wrong, {name: (found[name][:3], expected[name][:3]) for name in wrong}
    for name in QUERIES:
        times = [row["ts"] for row in found[name]] if name.startswith("ordered") else []
        assert times == sorted(times)


def test_rows_of_equal_time_count_by_their_entry_where_groups_promise(host: Host) -> None:
    streams = STREAMS.replace(f"DISORDER INTERVAL {DISORDER} SECONDS", "PUNCTUATED BY ends PER (k)")
    names = ("as_of", "recent", "chronicle", "rows", "rows_partitioned")
    sql = streams + "".join(f"CREATE QUERY {name} AS {QUERIES[name]};\n" for name in names)
    given = {
        name: [{**row, "k": row["k"] or "d", "ends": None, "ts": row["ts"].replace(microsecond=0)} for row in rows]
        for name, rows in INPUTS.items()
    }
    found = host.run(sql, {name: pieces(rows, seed=8, count=3) for name, rows in given.items()})
    for query in parse_network(sql).queries:
        assert same(found[query.name], evaluate(query, given)), query.name


@pytest.mark.parametrize("name", PLAIN)
def test_the_reference_says_what_a_database_says(name: str, expected: dict[str, list[dict[str, Any]]]) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for stream, given in INPUTS.items():
        connection.register(stream, pa.Table.from_pylist(given, schema=SCHEMA))
    assert same(expected[name], connection.sql(PLAIN[name]).to_arrow_table().to_pylist())


def test_the_queries_hold_every_kind_of_join(expected: dict[str, list[dict[str, Any]]]) -> None:
    nodes = {type(node).__name__ for query in parse_network(SQL).queries for node in walk(query.root)}
    assert {"Join", "RowsJoin", "Following", "Aggregate", "OrderByTime", "Union"} <= nodes
    assert all(expected.values()), "no query is answered by nothing"
