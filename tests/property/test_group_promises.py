"""Answers over a stream that promises group by group, at the end and before it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import millrace as mr

SECOND = 1_000_000
COLUMNS = "k STRING, n INT, done BOOLEAN, ts TIMESTAMP"
MINUTE = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
BEST = "rank() OVER (PARTITION BY window_start, window_end ORDER BY c DESC) = 1"
SESSIONS = "SELECT window_start, window_end, k, count(*) AS c FROM s [SESSION 5 SECONDS] GROUP BY k"
INNER = f"SELECT window_start, window_end, k, count(*) AS c FROM s {MINUTE} GROUP BY k"
QUERIES = {
    "windows": INNER,
    "sessions": SESSIONS,
    "nested": f"SELECT window_start, sum(c) AS c FROM ({INNER}) GROUP BY window_start, window_end",
    "ranked": f"SELECT * FROM ({INNER}) QUALIFY {BEST}",
    "ordered": f"SELECT window_start, k, c FROM ({INNER}) ORDER BY window_start",
    "windows of sessions": f"SELECT window_start, window_end, k, max(c) AS c FROM ({SESSIONS}) {MINUTE} GROUP BY k",
    "distinct": "SELECT DISTINCT k, ts FROM s",
    "trailing": "SELECT window_start, window_end, k, count(*) AS c FROM s [RANGE 10 SECONDS] GROUP BY k",
    "all together": f"SELECT window_start, window_end, count(*) AS c FROM s {MINUTE}",
}


def readings(seed: int) -> list[list[dict[str, Any]]]:
    """Batches of rows of three devices, one ten minutes behind; all are known from the first batch on."""
    random, clock = Random(seed), {"a": 600, "b": 600, "c": 0}
    batches = [[{"k": k, "n": 0, "done": False, "ts": second * SECOND} for k, second in clock.items()]]
    for _ in range(20):
        batches.append([])
        for _ in range(random.randint(1, 9)):
            device = random.choice("abc")
            clock[device] += random.choice([0, 1, 3, 9])
            done = random.random() < 0.5
            batches[-1].append({"k": device, "n": 1, "done": done, "ts": clock[device] * SECOND})
    return batches


def answered(select: str, batches: list[list[dict[str, Any]]], until: str, **contract: Any) -> mr.Handle:
    net = mr.Network()
    net.stream("s", COLUMNS, time="ts", source=batches, **contract)
    return net.sql(f"CREATE QUERY q AS {select}").run(on="local", until=until)


def rows(handle: mr.Handle) -> list[str]:
    return sorted(map(str, handle.results("q").to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("select", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_a_stream_with_enough_disorder(select: str, seed: int) -> None:
    batches = readings(seed)
    by_group = answered(select, batches, "end", punctuated_by="done", per="k")
    assert rows(by_group) == rows(answered(select, batches, "end", disorder="1 hour"))
    assert (by_group.metrics().sources["s"].late, by_group.metrics().turned_away) == (0, 0)


@pytest.mark.parametrize("select", QUERIES.values(), ids=QUERIES)
def test_results_come_before_the_end(select: str) -> None:
    batches = readings(1)
    assert answered(select, batches, "available", punctuated_by="done", per="k").results("q").num_rows
