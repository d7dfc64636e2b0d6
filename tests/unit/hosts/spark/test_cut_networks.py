"""Every kind of query gives the same rows cut for Spark as in one process, without starting Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.language import parse_network
from millrace.testing.hosts import Host, in_memory

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
TENS = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"
COUNTS = f"(SELECT window, k, count(*) AS n FROM s {TENS} GROUP BY k)"
QUERIES = {
    "ROWS": "SELECT window, k, count(*) AS n FROM s [ROWS 20 SLIDE 7] GROUP BY k",
    "ROWS over a union": "SELECT window, v, count(*) AS n FROM s UNION t [ROWS 20 SLIDE 10] GROUP BY v",
    "a result per row": "SELECT window, k, sum(v) AS n FROM s [RANGE 10 SECONDS] GROUP BY k",
    "a result per row, by rows": "SELECT window, k, sum(v) AS n FROM s [ROWS 10] GROUP BY k",
    "partitioned rows": "SELECT window, k, sum(v) AS n FROM s [ROWS 3 PARTITION BY k]",
    "partitioned rows that slide": "SELECT window, k, sum(v) AS n FROM s [ROWS 4 SLIDE 3 PARTITION BY k]",
    "SESSION": "SELECT window, k, count(*) AS n FROM s [SESSION 6 SECONDS] GROUP BY k",
    "DISTINCT": "SELECT DISTINCT k, ts FROM s",
    "minutes": "SELECT date_trunc('minute', ts) AS m, count(DISTINCT k) AS d FROM s GROUP BY date_trunc('minute', ts)",
    "two levels": f"SELECT window_start, n, count(*) AS d FROM {COUNTS} GROUP BY window_start, n",
    "three levels": f"""
        SELECT max(d) AS most
        FROM (SELECT window, n, count(*) AS d FROM {COUNTS} [RANGE 20 SECONDS SLIDE 20 SECONDS] GROUP BY n)
        [RANGE 1 MINUTE SLIDE 1 MINUTE]
    """,
    "top three": f"""
        SELECT k, n, row_number() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS place FROM {COUNTS}
        QUALIFY place <= 3
    """,
    "promises of groups": f"SELECT window, k, count(*) AS n FROM s {TENS} GROUP BY k",
    "promises of groups, rolled up": f"SELECT window, v, count(*) AS n FROM s {TENS} GROUP BY v",
}
LEVELS = {"two levels": 2, "three levels": 3, "top three": 2}


def script(name: str, source: str) -> str:
    order = "PUNCTUATED BY until PER (k)" if "promises" in name else "DISORDER INTERVAL 4 SECONDS"
    columns = "(k STRING, v INT, ts TIMESTAMP, until TIMESTAMP)"
    streams = [f"CREATE STREAM {each} {columns} TIMESTAMP BY ts {order} {source};" for each in ("s", "t")]
    return "\n".join([*streams, f"CREATE QUERY q AS {QUERIES[name]};"])


def tables(seed: int) -> list[pa.Table]:
    """Rows that trail by less than five seconds, now and then with a promise, in files."""
    draw, rows, clock = Random(seed), [], 0
    for _ in range(200):
        clock += draw.randrange(3)
        time = max(0, clock - draw.randrange(5)) * SECOND
        rows.append(
            (draw.choice("abcdefg"), draw.randrange(10), time, time - 8 * SECOND if draw.random() < 0.3 else None)
        )
    kinds = [pa.string(), pa.int32(), TIMESTAMP, TIMESTAMP]
    names = ["k", "v", "ts", "until"]
    files = [list(zip(*rows[start : start + 17], strict=True)) for start in range(0, len(rows), 17)]
    return [pa.table([pa.array(each, kind) for each, kind in zip(file, kinds, strict=True)], names) for file in files]


def in_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_network_that_is_cut_gives_the_rows_of_a_whole_one(name: str, restarts: bool, tmp_path: Path) -> None:
    inputs = {"s": tables(1), "t": tables(2)}
    whole = Host("local").run(script(name, "FROM iterable"), inputs)["q"]
    staged = Staged(in_memory(parse_network(script(name, "FROM parquet OPTIONS (path 'none')"))), tmp_path)
    assert staged.depth == LEVELS.get(name, 1)
    read = [each.name for each in staged.plan.network.streams()]
    results = []
    for start in range(0, len(inputs["s"]), 3):
        results += staged.batch({each: inputs[each][start : start + 3] for each in read}, now=start).get("q", [])
        if restarts:
            staged.restart()
    assert results, "results leave before the end"
    results += staged.batch({}, now=99, end=True).get("q", [])
    assert in_text(results) == in_text(whole)
