"""Operator slack as a number of rows, against a reading row by row."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from millrace.testing import Host

ROWS = 5
SQL = """
CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 1 HOUR FROM iterable;
CREATE QUERY q AS SELECT window, k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]
  GROUP BY k WITH (slack = '5 rows');
"""
BY_NUMBER = (
    SQL.replace("ts TIMESTAMP)", "ts BIGINT)")
    .replace("INTERVAL 1 HOUR", "3600")
    .replace("RANGE 10 SECONDS SLIDE 10 SECONDS", "RANGE 10 SLIDE 10")
)


def rows() -> list[tuple[str, int]]:
    """Rows a second or forty apart, a fifth of them ninety seconds behind: by few rows, or by many."""
    random = np.random.default_rng(4)
    times = 1_000 + np.cumsum(random.choice([1, 1, 1, 40], 150)) - 90 * (random.random(150) < 0.2)
    return [(str(random.choice(["a", "b", "c"])), int(time)) for time in times]


def expected(given: list[tuple[str, int]]) -> tuple[dict[tuple[str, int], int], int]:
    """The rows of each group and window that trail by at most so many rows, and how many trail by more."""
    counts: Counter[tuple[str, int]] = Counter()
    for place, (key, time) in enumerate(given):
        if time >= max((each for _, each in given[: max(place - ROWS, 0)]), default=0):
            counts[key, time // 10 * 10] += 1
    return dict(counts), len(given) - sum(counts.values())


@pytest.mark.parametrize("unit", ["time", "number"])
def test_rows_that_trail_by_more_rows_are_left_out(host: Host, unit: str) -> None:
    given = rows()
    times = pa.array([time * (1 if unit == "number" else 1_000_000) for _, time in given])
    sql, kind = (SQL, pa.timestamp("us", tz="UTC")) if unit == "time" else (BY_NUMBER, pa.int64())
    table = pa.table({"k": [key for key, _ in given], "ts": times.cast(kind)})
    run = host.open(sql, {"s": [table.slice(start, 40) for start in range(0, len(given), 40)]})
    report = run.run()
    found = [row for each in run.memory["q"] for row in each.to_pylist()]
    counts, left_out = expected(given)
    assert {(row["k"], seconds(row["window_start"])): row["n"] for row in found} == counts
    assert report.turned_away == left_out > 5


def seconds(start: dt.datetime | int) -> int:
    return start if isinstance(start, int) else int(start.timestamp())


@pytest.mark.parametrize("value", ["0 rows", "five rows", "-1 rows", "3.5 rows"])
def test_a_slack_is_a_length_or_a_number_of_rows(value: str) -> None:
    with pytest.raises(Exception, match='option "slack" cannot be') as refused:
        Host("virtual").run(SQL.replace("5 rows", value), {"s": []})
    assert "or a number of rows" in str(refused.value.hint)  # type: ignore[attr-defined]
