"""Q1 of paper 004 on every host against DuckDB, on links with random skew and disorder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.testing import Host
from tests.differential.links import declarations, links

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)

QUERIES = """
CREATE QUERY per_minute AS
  SELECT window, count(*) AS n FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
CREATE QUERY per_pair AS
  SELECT window, srcIP, destIP, count(*) AS n, sum(len) AS bytes, min(len) AS least, max(len) AS most, avg(len) AS mean
  FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY srcIP, destIP;
CREATE QUERY sliding AS
  SELECT window, srcIP, count(*) AS n FROM main1 UNION main2 [RANGE 100 SECONDS SLIDE 30 SECONDS WA ts] GROUP BY srcIP;
"""
ALL = "(SELECT * FROM control UNION ALL SELECT * FROM main1 UNION ALL SELECT * FROM main2)"
MINUTE = "time_bucket(INTERVAL '1 minute', ts, TIMESTAMPTZ '1970-01-01 00:00:00+00')"
HALF = "time_bucket(INTERVAL '30 seconds', ts, TIMESTAMPTZ '1970-01-01 00:00:00+00')"
ORACLE = {
    "per_minute": f"SELECT {MINUTE} AS w, count(*) FROM {ALL} GROUP BY w",
    "per_pair": f"""SELECT {MINUTE} AS w, srcIP, destIP, count(*), sum(len)::BIGINT, min(len), max(len), avg(len)
                    FROM {ALL} GROUP BY w, srcIP, destIP""",
    # A row is in the window that starts with its half minute and in those before it that still hold it.
    "sliding": f"""SELECT {HALF} - back * INTERVAL '30 seconds' AS w, srcIP, count(*)
                   FROM (SELECT * FROM main1 UNION ALL SELECT * FROM main2), range(4) AS earlier(back)
                   WHERE ts < {HALF} - back * INTERVAL '30 seconds' + INTERVAL '100 seconds' GROUP BY w, srcIP""",
}


@pytest.mark.slow
def test_q1_is_the_batch_answer_on_every_host(host: Host) -> None:
    # Spark takes seconds to start a query: one seed must do there.
    for seed in (1,) if host.name == "spark" else (1, 2, 3):
        check_q1(host, seed)


def check_q1(host: Host, seed: int) -> None:
    random = np.random.default_rng(seed)
    disorder = {name: int(random.integers(0, 40)) for name in ("control", "main1", "main2")}
    rows = links(seed, disorder)
    found = host.run(declarations(disorder) + QUERIES, {name: pieces(table, 4) for name, table in rows.items()})
    for query, expected in oracle(rows).items():
        assert comparable(_without_end(found[query])) == comparable(expected)


def pieces(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-table.num_rows // count)
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def oracle(rows: dict[str, pa.Table]) -> dict[str, list[tuple[Any, ...]]]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in rows.items():
        connection.register(name, table)
    return {query: connection.execute(text).fetchall() for query, text in ORACLE.items()}


def _without_end(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(value for name, value in row.items() if name != "window_end") for row in rows]


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in one order; times as seconds, fractions to twelve digits."""
    plain = [tuple(_plain(value) for value in row) for row in rows]
    return sorted(plain, key=repr)


def _plain(value: Any) -> Any:
    if hasattr(value, "timestamp"):
        return value.timestamp()
    return float(f"{value:.12g}") if isinstance(value, float) else value
