"""Queries that share time on Spark, without starting it: the most urgent lets go, so all are as fresh as can be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.hosts.spark.stage import bucket_queues
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.kernel.updates.update_queue import UpdateQueue
from millrace.language import parse_network
from millrace.testing.hosts import in_memory

SECOND = 1_000_000
START = 100_000 * SECOND
KEYS, BATCHES = 240, 60


class Worked:
    """A clock that only the functions below move on."""

    seconds = 0.0


def cheap(value: int) -> int:
    Worked.seconds += 0.002
    return value


def dear(value: int) -> int:
    Worked.seconds += 0.032
    return value


def network(dear_share: float = 1, cheap_share: float = 1) -> Any:
    """Two queries over a stream; a row of one costs 16 times as much as one of the other."""
    functions = "".join(
        f"CREATE FUNCTION {name}(BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS '{__name__}:{name}';"
        for name in ("cheap", "dear")
    )
    return in_memory(
        parse_network(f"""{functions}
CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k)
  FROM parquet OPTIONS (path 'none');
CREATE QUERY a WITH (share = {dear_share}) AS SELECT k, dear(v) AS v, ts FROM s;
CREATE QUERY b WITH (share = {cheap_share}) AS SELECT k, cheap(v) AS v, ts FROM s;""")
    )


def updates(number: int) -> pa.Table:
    times = pa.array([number * SECOND] * KEYS, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"k": list(range(KEYS)), "v": [number] * KEYS, "ts": times})


def staleness(net: Any, folder: Path, *, restarts: bool = False) -> dict[str, float]:
    """The mean staleness of the keys of each query, in seconds, after a minute with an update of every key a second."""
    Worked.seconds = 0.0
    folder.mkdir()
    staged = Staged(net, folder, live=True, buckets=(3,), pace=TriggerPace(SECOND), took=SECOND // 2)
    for number in range(BATCHES):
        staged.batch({"s": [updates(number)]}, START + number * SECOND)
        if restarts:
            staged.restart()
    return {query: told["application_mean"] / SECOND for query, told in staged.record["queues"].items()}


@pytest.fixture(autouse=True)
def by_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_queues, "time", SimpleNamespace(perf_counter=lambda: Worked.seconds))


@pytest.mark.slow
def test_queries_together_are_less_stale_than_with_even_shares_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of n keys with costs c the sum is n² (Σ √c)² / 2 at best, and n² Σ c with half of the time each: as 25 to 34."""
    urgent = staleness(network(), tmp_path / "urgent")
    assert staleness(network(), tmp_path / "restored", restarts=True) == urgent, "it depends on what was saved alone"

    def evenly(queue: UpdateQueue, now: int) -> float:
        """The one that has used less of the time is the more urgent."""
        return 1 / (1 + queue.queue_metrics(now).let_go * (queue.row_cost or 1.0))

    monkeypatch.setattr(UpdateQueue, "urgency", evenly)
    even = staleness(network(), tmp_path / "even")
    assert sum(urgent.values()) < 0.85 * sum(even.values())


@pytest.mark.slow
def test_share_favours_a_query(tmp_path: Path) -> None:
    alike, favoured = (staleness(network(1, share), tmp_path / f"{share}") for share in (1, 9))
    assert favoured["b"] < 0.6 * alike["b"]
    assert favoured["a"] > alike["a"], "it is at the cost of the other"
