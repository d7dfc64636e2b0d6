"""Outer joins whose rows without a match leave little by little: the same answers on every host."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import QueryError
from millrace.language import parse_network
from millrace.testing import Bench, Host

WITHIN = 5
STREAMS = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS FROM iterable;
CREATE STREAM b (j INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS FROM iterable;
"""
JOIN = "FROM a LEFT JOIN b ON k = j AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
SQL = f"""{STREAMS}
CREATE QUERY q WITH (smooth = '20 seconds') AS SELECT k, j, a.ts AS at {JOIN};
CREATE QUERY counted WITH (smooth = '20 seconds') AS SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE] AS n {JOIN};
"""


def rows(seed: int, keys: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    times = np.cumsum(random.integers(0, 3, 200)) + random.integers(0, 3, 200)
    return [(int(key), int(time)) for key, time in zip(random.integers(0, keys, 200), times, strict=True)]


def table(given: list[tuple[int, int]], name: str) -> pa.Table:
    times = pa.array([time * 1_000_000 for _, time in given]).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({name: pa.array([key for key, _ in given], pa.int32()), "ts": times})


def test_the_answer_is_that_of_a_nested_loop(host: Host) -> None:
    a, b = rows(1, 9), rows(2, 40)
    found = host.run(SQL, {"a": [table(a[:90], "k"), table(a[90:], "k")], "b": table(b, "j")})
    wanted: Counter[tuple[int, int | None, int]] = Counter()
    for key, time in a:
        matches = sum(other == key and time <= at <= time + WITHIN for other, at in b)
        wanted[key, key if matches else None, time] += matches or 1
    assert Counter((row["k"], row["j"], int(row["at"].timestamp())) for row in found["q"]) == wanted
    assert sum(row["n"] for row in found["counted"]) == sum(wanted.values())
    assert any(other is None for _, other, _ in wanted)


@pytest.mark.parametrize(
    ("smooth", "expected"), [("", [60, 0, 1]), ("WITH (smooth = '1 minute')", [2, 30, 29])], ids=["plain", "smooth"]
)
def test_a_bound_makes_no_burst(smooth: str, expected: list[int]) -> None:
    """How many rows leave with the bound, with thirty rows after it, and at the end."""
    bench = Bench(f"{STREAMS} CREATE QUERY q {smooth} AS SELECT k {JOIN};")
    bench.push("b", table([(99, 0)], "j"))
    bench.push("a", table([(1, 10 + number // 20) for number in range(60)], "k"))
    bench.push("b", table([(99, 19)], "j"))
    bench.push("b", table([(99, 40)], "j"))
    bench.push("a", table([(1, 40)], "k"))
    counts = [len(bench.results("q"))]
    for number in range(30):
        bench.push("b", table([(99, 40 + number % 2)], "j"))
    counts.append(len(bench.results("q")))
    bench.end("a", "b")
    counts.append(len(bench.results("q")))
    assert counts == expected


def test_it_is_refused_where_no_join_is_outer() -> None:
    with pytest.raises(QueryError, match='option "smooth" has no effect') as refused:
        parse_network(f"{STREAMS} SELECT k FROM a WITH (smooth = '1 second');")
    assert "outer joins" in refused.value.hint
