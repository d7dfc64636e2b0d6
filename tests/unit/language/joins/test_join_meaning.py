"""What a join is bound to means what the text says: finished inputs, worked out naively, beside DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from millrace.language import parse_network
from tests.reference import evaluate

STREAMS = "".join(
    f"CREATE STREAM {name} (k INT, g STRING, v BIGINT, f DOUBLE, till TIMESTAMP, ts TIMESTAMP)"
    f" TIMESTAMP BY ts DISORDER INTERVAL 1 DAY FROM csv OPTIONS (path '{name}.csv');"
    for name in ("a", "b", "c", "d")
)
SCHEMA = pa.schema(
    [
        ("k", pa.int32()), ("g", pa.string()), ("v", pa.int64()), ("f", pa.float64()),
        ("till", pa.timestamp("us", tz="UTC")), ("ts", pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip
PLAIN = pa.schema(
    [(each.name, pa.timestamp("us") if pa.types.is_timestamp(each.type) else each.type) for each in SCHEMA]
)
START = datetime(2024, 5, 1, 11, 59, 30, tzinfo=UTC)
ABOUT_1970 = datetime(1969, 12, 31, 23, 59, 40, tzinfo=UTC)

SAME_TEXT = """
SELECT a.v, b.v FROM a, b WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v FROM a, b WHERE a.k = b.k AND b.ts - a.ts <= INTERVAL 5 SECONDS AND a.ts - b.ts < INTERVAL 3
  SECONDS;
SELECT a.v, b.v FROM a JOIN b ON a.k = b.k AND a.ts = b.ts;
SELECT a.v, b.v FROM a JOIN b ON a.ts = b.ts;
SELECT a.v, b.v FROM a JOIN b USING (k, g) WHERE a.ts = b.ts + INTERVAL 2 SECONDS;
SELECT a.v, b.v FROM a, b WHERE a.ts > b.ts AND a.ts < b.ts + INTERVAL 4 SECONDS AND a.v + b.v > 3 AND a.v > 1;
SELECT a.v, b.v FROM a, b WHERE a.f = b.v AND a.ts BETWEEN b.ts - INTERVAL 9 SECONDS AND b.ts + INTERVAL 9
  SECONDS;
SELECT a.v, b.v FROM a, b WHERE a.k + 1 = b.k AND a.ts <= b.ts AND b.ts <= a.ts + INTERVAL 1 MINUTE AND 1 = 1;
SELECT a.v, b.v FROM a, b WHERE date_trunc('minute', a.ts) = date_trunc('minute', b.ts) AND a.k = b.k;
SELECT a.v, b.v FROM a, b WHERE date_trunc('minute', a.ts) = date_trunc('minute', b.ts);
SELECT a.v, b.v FROM a, b WHERE CAST(a.ts AS DATE) = CAST(b.ts AS DATE) AND a.k = b.k;
SELECT a.v, b.v FROM a, b WHERE CAST(a.ts AS DATE) = CAST(b.ts AS DATE);
SELECT a.v, b.v FROM a LEFT JOIN b ON a.k = b.k AND CAST(a.ts AS DATE) = CAST(b.ts AS DATE);
SELECT a.v, b.v FROM a, b WHERE b.ts = a.till AND a.ts <= b.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v FROM a, b WHERE b.ts = a.till AND b.ts <= a.till AND a.ts <= b.ts AND b.ts < a.ts + INTERVAL 9 SECONDS;
SELECT a.v, b.v FROM a LEFT JOIN b ON b.ts = a.till AND a.ts <= b.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v FROM a, b WHERE b.ts BETWEEN a.ts + INTERVAL '-2' SECONDS AND a.ts;
SELECT a.v, b.v FROM a, b WHERE date_trunc('month', a.ts) = date_trunc('month', b.ts) AND a.k = b.k;
SELECT a.v, b.v FROM a, b WHERE date_trunc('minute', a.ts) <= date_trunc('minute', b.ts) AND b.ts <= a.ts +
  INTERVAL 40 SECONDS;
SELECT a.v, b.v FROM a, b WHERE b.ts BETWEEN a.ts AND a.till;
SELECT a.v, b.v FROM a, b WHERE b.ts >= a.ts AND b.ts < a.till AND b.ts <= a.ts + INTERVAL 4 SECONDS;
SELECT a.v, b.v FROM a, b WHERE b.ts <= a.till AND a.ts <= b.till AND a.k = b.k;
SELECT x.v, y.v FROM a AS x, a AS y WHERE x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v, c.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 9
  SECONDS AND c.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts + INTERVAL 9 SECONDS;
SELECT a.v, b.v, c.v FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 9 SECONDS JOIN c ON
  b.g = c.g AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 4 SECONDS WHERE a.v < c.v;
SELECT a.v, b.v, c.v, d.v FROM a, b, c, d WHERE a.k = b.k AND b.g = c.g AND c.k = d.k AND b.ts BETWEEN a.ts -
  INTERVAL 9 SECONDS AND a.ts + INTERVAL 9 SECONDS AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 9 SECONDS AND d.ts
  BETWEEN a.ts AND c.ts;
SELECT a.v, b.v, c.v FROM a, b, c WHERE a.k = b.k AND b.g = c.g AND b.ts BETWEEN a.ts AND a.till AND c.ts
  BETWEEN a.ts - INTERVAL 9 SECONDS AND a.ts + INTERVAL 9 SECONDS;
SELECT a.v, b.v, c.v FROM a, b, c WHERE a.ts = b.ts AND b.ts = c.ts;
SELECT a.v, b.v, c.v FROM a, b, c WHERE a.k = b.k AND a.v % 2 + 1 = b.k AND b.k = c.k AND a.ts BETWEEN b.ts AND
  b.ts + INTERVAL 9 SECONDS AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 9 SECONDS;
SELECT a.v, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS AND a.v > 2
  AND b.v > 2 WHERE a.v < 6 AND (b.v IS NULL OR b.v < 6);
SELECT a.v, b.v FROM a RIGHT JOIN b ON a.k = b.k AND a.v > 2 AND b.v > 2 AND b.ts BETWEEN a.ts AND a.ts +
  INTERVAL 5 SECONDS WHERE b.v < 6;
SELECT a.v, b.v FROM a FULL JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS AND a.v > 2
  AND b.v > 2 WHERE a.v IS NULL OR a.v < 6;
SELECT a.v, b.v, c.v FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS LEFT
  JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v, c.v FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS JOIN c
  ON c.k = a.k AND c.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 5 SECONDS WHERE c.v > a.v AND a.v
  > 1;
SELECT a.v, b.v, c.v FROM a JOIN b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS RIGHT JOIN c ON c.k = b.k
  AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 5 SECONDS WHERE a.v IS NULL OR a.v > 2;
SELECT a.v, b.v, c.v FROM a FULL JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS FULL
  JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 5 SECONDS;
SELECT b.v, a.v FROM b ASOF JOIN a ON a.ts <= b.ts AND a.k = b.k AND a.g = b.g;
SELECT b.v, a.v FROM b ASOF LEFT JOIN a ON a.ts < b.ts AND a.k = b.k WHERE b.v > 2;
SELECT b.v, a.v FROM b ASOF LEFT JOIN a ON b.ts >= a.ts AND a.k = b.k WHERE a.v IS NULL OR a.v > 2;
SELECT a.ts, count(*) AS n FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts +
  INTERVAL 5 SECONDS GROUP BY a.ts;
SELECT a.ts AS x, b.ts AS y, count(*) AS n FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS
  AND a.ts + INTERVAL 5 SECONDS GROUP BY a.ts, b.ts;
SELECT date_trunc('minute', b.ts) AS m, a.k, count(*) AS n FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts -
  INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS GROUP BY m, a.k;
SELECT greatest(a.ts, b.ts) AS m, count(*) AS n FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5
  SECONDS AND a.ts + INTERVAL 5 SECONDS GROUP BY 1;
SELECT date_trunc('minute', least(b.ts, a.ts)) AS m, count(*) AS n FROM a, b WHERE a.k = b.k AND b.ts BETWEEN
  a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS GROUP BY 1;
SELECT c.ts, count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.g = c.g AND b.ts BETWEEN a.ts AND a.ts + INTERVAL
  9 SECONDS AND c.ts BETWEEN a.ts - INTERVAL 9 SECONDS AND a.ts + INTERVAL 4 SECONDS GROUP BY c.ts;
SELECT a.ts, count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.g = c.g AND b.ts BETWEEN a.ts AND a.ts + INTERVAL
  9 SECONDS AND c.ts BETWEEN a.ts - INTERVAL 9 SECONDS AND b.ts + INTERVAL 4 SECONDS GROUP BY a.ts;
SELECT a.ts, count(b.v) AS n FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS
  GROUP BY a.ts;
SELECT DISTINCT a.ts, b.k FROM a, b WHERE b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS;
SELECT t, count(*) AS n FROM (SELECT a.ts AS t, b.v AS v FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND
  a.ts + INTERVAL 5 SECONDS) AS j WHERE v > 2 GROUP BY t;
SELECT j.v, c.v FROM (SELECT a.ts AS t, a.k AS k, b.v AS v FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND
  a.ts + INTERVAL 5 SECONDS) AS j JOIN c ON c.k = j.k AND c.ts BETWEEN j.t AND j.t + INTERVAL 5 SECONDS;
WITH x AS (SELECT k, v, ts FROM a WHERE v > 1), y AS (SELECT x.k, x.ts, b.v AS w FROM x JOIN b ON x.ts = b.ts)
  SELECT x.v, y.w FROM x JOIN y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS;
SELECT ts, p, w FROM (SELECT ts, v AS p FROM a) AS x NATURAL JOIN (SELECT ts, v AS w FROM b) AS y;
SELECT ts, p, w, u FROM (SELECT ts, v AS p FROM a) AS x NATURAL JOIN (SELECT ts, v AS w, g FROM b) AS y
  NATURAL JOIN (SELECT ts, g, v AS u FROM c) AS z;
SELECT ts, k, p, w FROM (SELECT k, ts, v AS p FROM a) AS x NATURAL LEFT JOIN (SELECT k, ts, v AS w FROM b) AS y;
SELECT a.* EXCLUDE (ts, till, f, g), b.v AS w FROM a, b WHERE a.ts = b.ts;
SELECT date_trunc('minute', a.ts) AS m, a.k, count(*) AS n, sum(b.v) AS s FROM a, b WHERE a.ts = b.ts GROUP BY ALL
"""

OTHER_TEXT = """
SELECT k, a.v, b.v FROM a [RANGE 3 SECONDS] FULL JOIN b [RANGE 5 SECONDS] USING (k)
  IS SELECT coalesce(a.k, b.k) AS k, a.v, b.v FROM a FULL JOIN b ON a.k = b.k AND b.ts <= a.ts + INTERVAL 3 SECONDS
  AND a.ts <= b.ts + INTERVAL 5 SECONDS;
SELECT g, b.k, a.v, b.v FROM a [RANGE 3 SECONDS] RIGHT JOIN b [RANGE 5 SECONDS] USING (g)
  IS SELECT b.g, b.k, a.v, b.v FROM a RIGHT JOIN b ON a.g = b.g AND b.ts <= a.ts + INTERVAL 3 SECONDS AND a.ts <=
  b.ts + INTERVAL 5 SECONDS;
SELECT a.v, b.v FROM a [RANGE 3 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k
  IS SELECT a.v, b.v FROM a, b WHERE a.k = b.k AND b.ts <= a.ts + INTERVAL 3 SECONDS AND a.ts <= b.ts + INTERVAL 5
  SECONDS;
SELECT a.v, b.v, c.v FROM a [RANGE 3 SECONDS], b [RANGE 5 SECONDS], c [RANGE 9 SECONDS] WHERE a.k = b.k AND b.g
  = c.g
  IS SELECT a.v, b.v, c.v FROM a, b, c WHERE a.k = b.k AND b.g = c.g AND b.ts <= a.ts + INTERVAL 3 SECONDS AND c.ts
  <= a.ts + INTERVAL 3 SECONDS AND a.ts <= b.ts + INTERVAL 5 SECONDS AND c.ts <= b.ts + INTERVAL 5 SECONDS AND
  a.ts <= c.ts + INTERVAL 9 SECONDS AND b.ts <= c.ts + INTERVAL 9 SECONDS;
SELECT a.ts, count(*) AS n FROM a [RANGE 3 SECONDS], b [RANGE 5 SECONDS], c [RANGE 9 SECONDS] WHERE a.k = b.k
  AND b.g = c.g GROUP BY a.ts
  IS SELECT a.ts, count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.g = c.g AND b.ts <= a.ts + INTERVAL 3 SECONDS AND
  c.ts <= a.ts + INTERVAL 3 SECONDS AND a.ts <= b.ts + INTERVAL 5 SECONDS AND c.ts <= b.ts + INTERVAL 5 SECONDS
  AND a.ts <= c.ts + INTERVAL 9 SECONDS AND b.ts <= c.ts + INTERVAL 9 SECONDS GROUP BY a.ts;
SELECT a.v, b.v FROM a, b WHERE a.g = b.g AND a.v > 1 WINDOW 4 SECONDS
  IS SELECT a.v, b.v FROM a, b WHERE a.g = b.g AND a.v > 1 AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 4000000;
SELECT a.v, b.v FROM a, b WHERE abs(unix_micros(a.ts) - unix_micros(b.ts)) < 4000000
  IS SELECT a.v, b.v FROM a, b WHERE abs(epoch_us(a.ts) - epoch_us(b.ts)) < 4000000;
SELECT a.v, b.v FROM a, b WHERE unix_seconds(a.ts) div 10 = unix_seconds(b.ts) div 10 AND a.k = b.k
  IS SELECT a.v, b.v FROM a, b WHERE trunc(floor(epoch(a.ts)) / 10) = trunc(floor(epoch(b.ts)) / 10) AND a.k = b.k;
SELECT a.v, b.v FROM a, b WHERE unix_seconds(a.ts) - unix_seconds(b.ts) BETWEEN -3 AND 5
  IS SELECT a.v, b.v FROM a, b WHERE floor(epoch(a.ts)) - floor(epoch(b.ts)) BETWEEN -3 AND 5;
SELECT x.n, y.n FROM (SELECT window, k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) AS x JOIN
  (SELECT window, k, count(*) AS n FROM b [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) AS y ON x.window_start =
  y.window_start AND x.k = y.k
  IS SELECT x.n, y.n FROM (SELECT k, floor(epoch(ts) / 10) AS w, count(*) AS n FROM a GROUP BY ALL) AS x JOIN (SELECT
  k, floor(epoch(ts) / 10) AS w, count(*) AS n FROM b GROUP BY ALL) AS y ON x.w = y.w AND x.k = y.k;
SELECT a.v, y.n FROM a JOIN (SELECT window, k, count(*) AS n FROM b [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) AS y
  ON a.ts >= y.window_start AND a.ts < y.window_end AND a.k = y.k
  IS SELECT a.v, y.n FROM a JOIN (SELECT k, floor(epoch(ts) / 10) AS w, count(*) AS n FROM b GROUP BY ALL) AS y ON
  floor(epoch(a.ts) / 10) = y.w AND a.k = y.k;
SELECT b.v, y.n FROM b ASOF JOIN (SELECT window, k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k)
  AS y ON y.window_end <= b.ts AND b.k = y.k AND y.window_end >= b.ts - INTERVAL 12 SECONDS
  IS SELECT b.v, y.n FROM b ASOF JOIN (SELECT k, make_timestamp((floor(epoch(ts) / 10) * 10000000 +
  10000000)::BIGINT) AS w, count(*) AS n FROM a GROUP BY ALL) AS y ON y.w <= b.ts AND b.k = y.k WHERE y.w >=
  b.ts - INTERVAL 12 SECONDS;
SELECT a.v, y.n FROM (SELECT window, k, count(*) AS n FROM b [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) AS y
  ASOF JOIN a
  ON a.ts < y.window_end AND a.k = y.k
  IS SELECT a.v, y.n FROM (SELECT k, make_timestamp((floor(epoch(ts) / 10) * 10000000 + 10000000)::BIGINT) AS w,
  count(*) AS n FROM b GROUP BY ALL) AS y ASOF JOIN a ON a.ts < y.w AND a.k = y.k;
SELECT a.v, y.n FROM (SELECT k, date_trunc('minute', ts) AS m, count(*) AS n FROM b GROUP BY k, m) AS y ASOF JOIN a
  ON a.ts < y.m + INTERVAL 1 MINUTE AND a.k = y.k
  IS SELECT a.v, y.n FROM (SELECT k, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS w, count(*) AS n FROM b GROUP BY
  ALL) AS y ASOF JOIN a ON a.ts < y.w AND a.k = y.k;
SELECT a.v, b.v FROM a SEQ b MODE RECENT WITHIN 8 SECONDS WHERE a.k = b.k AND a.g = b.g AND b.v > 2 AND a.v > 2
  IS SELECT a.v, b.v FROM b ASOF JOIN a ON a.ts <= b.ts AND a.k = b.k AND a.g = b.g WHERE a.ts >= b.ts - INTERVAL 8
  SECONDS AND b.v > 2 AND a.v > 2
"""


def queries(text: str) -> list[str]:
    """The queries of a text, each in one line."""
    return [" ".join(each.split()) for each in text.split(";")]


def rows_of(seed: int, start: datetime) -> dict[str, list[dict[str, Any]]]:
    """Rows of all streams; those of equal time and keys are equal, so that an as-of join has one answer."""
    chance = random.Random(seed)
    found: dict[str, list[dict[str, Any]]] = {}
    for name in "abcd":
        rows = []
        for _ in range(16):
            ts = start + timedelta(milliseconds=1000 * chance.randrange(40) + chance.choice((0, 0, 0, 500)))
            k, g = chance.choice((1, 1, 2, 2, None)), chance.choice(("x", "x", "x", "y", None))
            v = (3 * (k or 0) + ts.second) % 8
            till = chance.choice((None, ts + timedelta(seconds=chance.randrange(-2, 12))))
            rows.append({"k": k, "g": g, "v": v, "f": float(chance.randrange(8)), "till": till, "ts": ts})
        found[name] = rows
    return found


def ours(text: str, rows: dict[str, list[dict[str, Any]]]) -> Counter[tuple[Any, ...]]:
    (query,) = parse_network(f"{text};{STREAMS}").queries
    return Counter(tuple(row.values()) for row in evaluate(query, rows))


def duckdb_answers(text: str, rows: dict[str, list[dict[str, Any]]]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, given in rows.items():
            # Without its extension for time zones DuckDB knows times without a zone alone; all of ours are UTC.
            connection.register(name, pa.Table.from_pylist(given, SCHEMA).cast(PLAIN))
        found = connection.sql(text).to_arrow_table()
    return Counter(tuple(map(in_utc, row)) for row in zip(*(each.to_pylist() for each in found.columns), strict=True))


def in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def agree(text: str, same: str) -> None:
    total = 0
    for seed, start in enumerate((START, ABOUT_1970)):
        rows = rows_of(seed, start)
        expected = duckdb_answers(same, rows)
        assert ours(text, rows) == expected, (seed, text)
        total += len(expected)
    assert total > 0, "the data says nothing"


@pytest.mark.slow
@pytest.mark.parametrize("text", queries(SAME_TEXT))
def test_a_join_answers_as_duckdb_does(text: str) -> None:
    agree(text, text)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "same"), [each.split(" IS ") for each in queries(OTHER_TEXT)])
def test_windows_and_our_own_forms_mean_what_they_are_in_plain_sql(text: str, same: str) -> None:
    agree(text, same)
