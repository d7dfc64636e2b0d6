"""Every kind of window over two streams in one network, on every host, against the naive reference."""

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

pytestmark = pytest.mark.slow

DISORDER = 6
SCHEMA = pa.schema([("k", pa.string()), ("j", pa.int32()), ("v", pa.int64()), ("x", pa.float64()),
                    ("began", pa.timestamp("us", tz="UTC")), ("ts", pa.timestamp("us", tz="UTC"))])  # fmt: skip
COLUMNS = "k STRING, j INT, v BIGINT, x DOUBLE, began TIMESTAMP, ts TIMESTAMP"
STREAMS = f"""
CREATE AGGREGATE spread(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.property.user_aggregates:Spread';
CREATE STREAM a ({COLUMNS}) TIMESTAMP BY ts DISORDER INTERVAL {DISORDER} SECONDS
  ALSO BY began DISORDER INTERVAL 40 SECONDS LATE INTO a_late FROM iterable;
CREATE STREAM b ({COLUMNS}) TIMESTAMP BY ts DISORDER INTERVAL {DISORDER} SECONDS FROM iterable;
CREATE STREAM c ({COLUMNS}) TIMESTAMP BY ts PUNCTUATED BY v = 0 PER (k) FROM iterable;
CREATE AGGREGATE myavg(next DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS
  INITIALIZE (total = 0.0, n = 0) ITERATE (total = total + next, n = n + 1)
  MERGE (total = total + other.total, n = n + other.n) TERMINATE total / n;
"""
FIXED = "[RANGE 20 SECONDS SLIDE 20 SECONDS]"
SOME = "count(*) AS n, sum(v) AS total, avg(x) AS mean, last(v) AS latest, count(DISTINCT j) AS kinds"
INNER = f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM a UNION b {FIXED} GROUP BY k, j"
TOP = "rank() OVER (PARTITION BY window_start, window_end ORDER BY n DESC)"
QUERIES = {
    "tumbling": f"SELECT k, {SOME} FROM a UNION b {FIXED} GROUP BY k",
    "sliding": f"SELECT j, {SOME} FROM a [RANGE 25 SECONDS SLIDE 10 SECONDS] GROUP BY j",
    "by_another_time": f"SELECT k, {SOME} FROM a [RANGE 30 SECONDS SLIDE 15 SECONDS WA began] GROUP BY k",
    "late": "SELECT k, v FROM a_late",
    "counted": f"SELECT k, {SOME} FROM a [ROWS 50 SLIDE 20] WHERE v > 1 GROUP BY k",
    "counted_together": "SELECT window, k, count(*) AS n, sum(v) AS total FROM a UNION b [ROWS 30 SLIDE 30] GROUP BY k",
    "last_rows": "SELECT window, k, count(*) AS n, max(v) AS most FROM a [ROWS 10] GROUP BY k",
    "partitioned": f"SELECT k, {SOME} FROM a [ROWS 5 PARTITION BY k] WHERE v < 8 GROUP BY k",
    "partitioned_sliding": "SELECT window, j, count(*) AS n, min(x) AS least FROM b [ROWS 7 SLIDE 3 PARTITION BY j]",
    "trailing": "SELECT window, k, count(*) AS n, max_by(v, x) AS best FROM a UNION b [RANGE 4 SECONDS] GROUP BY k",
    "so_far": "SELECT window, k, count(*) AS n FROM b [RANGE UNLIMITED PRECEDING] GROUP BY k WITH (state_limit = 100)",
    "sessions": f"SELECT k, {SOME} FROM a UNION b [SESSION 2 SECONDS] GROUP BY k",
    "flink_sessions": f"SELECT k, {SOME} FROM SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND)"
    " GROUP BY k, window_start, window_end",
    "spark_sessions": f"SELECT k, {SOME} FROM c GROUP BY k, session_window(ts, '2 seconds')",
    "by_minute": "SELECT date_trunc('minute', ts) AS minute, k, median(v) AS middle FROM a"
    " GROUP BY date_trunc('minute', ts), k",
    "by_month": "SELECT date_trunc('month', ts) AS month, stddev_samp(v) AS spread FROM a"
    " GROUP BY date_trunc('month', ts)",
    "by_instant": "SELECT ts, count(*) AS n FROM a UNION b GROUP BY ts",
    "nested": f"SELECT window_start, window_end, j, max(n) AS most, sum(total) AS total FROM ({INNER}) AS t"
    " GROUP BY window_start, window_end, j",
    "nested_wider": f"SELECT window, j, max(n) AS most FROM ({INNER}) AS t [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY j",
    "top": f"SELECT *, {TOP} AS place FROM ({INNER}) AS t QUALIFY place <= 2",
    "distinct_rows": "SELECT DISTINCT k, ts FROM a UNION b",
    "distinct_keys": f"SELECT DISTINCT k, j FROM a UNION b {FIXED}",
    "approximate": f"SELECT k, approx_count_distinct(v) AS kinds, approx_percentile(v, 0.9) AS high FROM a {FIXED}"
    " GROUP BY k",
    "filtered": f"SELECT k, count(*) FILTER (WHERE j = 1) AS ones, bool_or(v > 8) AS high FROM a {FIXED} GROUP BY k",
    "user_defined": f"SELECT k, myavg(v) AS mean FROM a {FIXED} WHERE v IS NOT NULL GROUP BY k",
    "in_python": f"SELECT k, spread(x) AS spread FROM a {FIXED} GROUP BY k",
    "per_group": f"SELECT k, {SOME} FROM c {FIXED} GROUP BY k",
    "rolled_up": f"SELECT j, {SOME} FROM c {FIXED} GROUP BY j",
}
SQL = STREAMS + "".join(f"CREATE QUERY {name} AS {text};\n" for name, text in QUERIES.items())


def rows_of(seed: int, count: int, *, late: int = 0) -> list[dict[str, Any]]:
    """Rows about a third of a second apart, shaken within the disorder; `late` of them break it."""
    random = np.random.default_rng(seed)
    times = dt.datetime(1969, 12, 31, 23, 58, tzinfo=dt.UTC).timestamp() + np.cumsum(random.exponential(0.3, count))
    times = np.round(times - random.uniform(0, DISORDER - 1, count), 1)
    times[random.choice(np.arange(count // 2, count), late, replace=False)] -= 30
    return [
        {
            "k": random.choice([None, "a", "b", "c", "ä"]),
            "j": random.choice([None, 0, 1, 2]),
            "v": None if random.random() < 0.1 else int(random.integers(0, 10)),
            "x": random.choice([None, 0.5, -1.25, 1e6]),
            "ts": dt.datetime.fromtimestamp(float(time), dt.UTC),
            "began": dt.datetime.fromtimestamp(float(time) - int(random.integers(0, 30)), dt.UTC),
        }
        for time in times
    ]


def promised(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in order of time, whose groups are all known before any of them promises something."""
    known = [{**given[0], "k": key, "v": 1, "ts": given[0]["ts"] - dt.timedelta(hours=1)} for key in (None, *"abcä")]
    return known + sorted(given, key=lambda row: row["ts"])  # type: ignore[no-any-return]


def pieces(given: list[dict[str, Any]], seed: int, count: int) -> list[pa.Table]:
    """The rows cut anywhere."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(given), count - 1)).tolist()
    parts = [given[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    return [pa.Table.from_pylist(part, schema=SCHEMA) for part in parts if part]


INPUTS = {"a": rows_of(1, 400, late=5), "b": rows_of(2, 150), "c": promised(rows_of(3, 150))}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict[str, Any]]]:
    return {query.name: evaluate(query, INPUTS) for query in parse_network(SQL).queries}


def test_every_kind_of_window_is_what_the_reference_says(host: Host, expected: dict[str, list[dict[str, Any]]]) -> None:
    found = host.run(SQL, {name: pieces(given, seed=7, count=5) for name, given in INPUTS.items()})
    wrong = [name for name in QUERIES if not same(found[name], expected[name])]
    assert not wrong, {name: (found[name][:3], expected[name][:3]) for name in wrong}


def test_the_queries_hold_every_node_of_the_plan(expected: dict[str, list[dict[str, Any]]]) -> None:
    nodes = {type(node).__name__ for query in parse_network(SQL).queries for node in walk(query.root)}
    assert {"Scan", "Filter", "Project", "Union", "Numbered", "Aggregate", "Distinct", "Rank"} <= nodes
    assert all(expected.values()), "no query is answered by nothing"


@pytest.mark.spark
def test_borrowed_sessions_are_those_of_spark_itself_on_spark(spark_session: Any) -> None:
    """Times in whole seconds and a gap of two: many rows are exactly the gap apart."""
    given = [{**row, "ts": row["ts"].replace(microsecond=0)} for row in INPUTS["b"]]
    asked = "count(*) AS n, percentile_approx(v, 0.5) AS middle FROM b GROUP BY k, session_window(ts, '2 seconds')"
    found = Host("virtual").run(
        f"{STREAMS} CREATE QUERY q AS SELECT window, k, {asked};", {"b": pieces(given, seed=7, count=5)}
    )["q"]
    spark_session.createDataFrame(pieces(given, seed=7, count=1)[0].to_pandas()).createOrReplaceTempView("b")
    stock = spark_session.sql(f"SELECT k, session_window.start window_start, session_window.end window_end, {asked}")
    assert _sessions(found) == _sessions([row.asDict() for row in stock.collect()])


def _sessions(rows: list[dict[str, Any]]) -> list[str]:
    """Each session; the percentile only of a single value, because more of them are approximate."""
    bounds = [tuple(row[each].strftime("%M:%S") for each in ("window_start", "window_end")) for row in rows]
    values = [(row["k"], row["n"], row["middle"] if row["n"] == 1 else None) for row in rows]
    return sorted(map(repr, zip(bounds, values, strict=True)))
