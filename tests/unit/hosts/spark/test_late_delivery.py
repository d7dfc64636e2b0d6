"""Staleness on Spark, without starting it: from the arrival of a file until the commit of the micro-batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.hosts.spark.stage import bucket_queues
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling
from millrace.testing.hosts import in_memory

SECOND = 1_000_000
START = 100_000 * SECOND
KEYS = 30
WAITED = 0.3
"""Seconds that a file waits before a micro-batch looks for it."""


def network(query: str, **options: str) -> Any:
    chosen = ", ".join(spelling(name, value) for name, value in options.items())
    return in_memory(
        parse_network(f"""
CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  UPDATE KEY (k) FROM parquet OPTIONS (path 'none');
CREATE QUERY q {f"WITH ({chosen})" if chosen else ""} AS {query};""")
    )


def updates(number: int) -> pa.Table:
    """One of every key, ten seconds after those before."""
    times = pa.array([number * 10 * SECOND] * KEYS, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"k": list(range(KEYS)), "v": [number] * KEYS, "ts": times})


def run(staged: Staged, batches: int, *, restarts: bool) -> int:
    """A micro-batch a second, each with an update of every key; how many results there were."""
    given = 0
    for number in range(batches):
        now = START + number * SECOND
        files = {"s": [updates(number)]}
        given += len(staged.batch(files, now, first=now - round(WAITED * SECOND)).get("q", []))
        if restarts:
            staged.restart()
    return given


def seconds(staged: Staged) -> bucket_queues.QueueMetrics:
    told: bucket_queues.QueueMetrics = bucket_queues.queue_metrics_of(staged.record["queues"]["q"])
    return told


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
@pytest.mark.parametrize("policy", ["inplace", "linecutting", "append"])
def test_an_answer_is_stale_from_the_arrival_of_an_update_until_the_commit(
    policy: str, restarts: bool, tmp_path: Path
) -> None:
    """An update waits for 0.3 seconds, and is delivered 0.4 seconds after the look; the next one comes after that."""
    staged = Staged(network("SELECT k, v, ts FROM s", queue=policy), tmp_path, live=True, took=400_000)
    assert run(staged, 8, restarts=restarts) == 8 * KEYS
    told, lived = seconds(staged), 7 + WAITED
    assert told.queue_mean / SECOND == pytest.approx(8 * WAITED**2 / 2 / lived)
    # Of the last one what has passed until the look: when it is committed is not known yet.
    assert told.application_mean / SECOND == pytest.approx((7 * 0.7**2 / 2 + WAITED**2 / 2) / lived)
    assert (told.queue_now, told.application_now) == (0, 0), "who reads the record reads what was let go with it"


@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
def test_an_update_that_comes_before_the_last_one_is_committed_counts_from_the_commit_on(
    restarts: bool, tmp_path: Path
) -> None:
    """A commit 0.9 seconds after the look finds the next update 0.2 seconds old."""
    staged = Staged(network("SELECT k, v, ts FROM s"), tmp_path, live=True, took=900_000)
    run(staged, 8, restarts=restarts)
    first, others, last = 1.2**2 / 2, (1.2**2 - 0.2**2) / 2, (0.3**2 - 0.2**2) / 2
    assert seconds(staged).application_mean / SECOND == pytest.approx((first + 6 * others + last) / (7 + WAITED))


def test_a_run_that_goes_idle_has_delivered_when_it_committed(tmp_path: Path) -> None:
    """Not when, an hour later, the next micro-batch comes."""
    staged = Staged(network("SELECT k, v, ts FROM s"), tmp_path, live=True, took=400_000)
    staged.batch({"s": [updates(0)]}, START)
    hour = 3600 * SECOND
    staged.batch({"s": [updates(1)]}, START + hour)
    assert seconds(staged).application_mean / SECOND == pytest.approx(0.4**2 / 2 / 3600)


def test_a_micro_batch_that_is_run_again_tells_the_same(tmp_path: Path) -> None:
    staged = Staged(network("SELECT k, v, ts FROM s", budget="10 rows"), tmp_path, live=True, took=400_000)
    run(staged, 4, restarts=False)
    before, now = staged.saved(), START + 4 * SECOND
    staged.batch({"s": [updates(4)]}, now)
    first = seconds(staged)
    staged.back_to(before)
    staged.took = 2 * SECOND
    staged.batch({"s": [updates(4)]}, now)
    assert (seconds(staged).application_mean, seconds(staged).queue_mean) == (first.application_mean, first.queue_mean)
    assert first.application_now == first.queue_now > 0, "what waits is stale"
    assert first.application_mean > first.queue_mean


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
@pytest.mark.parametrize("mode", ["eager", "lazy", "every"])
def test_windows_too_are_stale_until_the_commit(mode: str, restarts: bool, tmp_path: Path) -> None:
    """From the second update on each closes a window: it is stale until the commit, 0.7 seconds."""
    query = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"
    staged = Staged(network(query, update_window=mode), tmp_path, live=True, took=400_000)
    closed = run(staged, 9, restarts=restarts) // KEYS
    assert closed == 8
    told, lived = seconds(staged), 8 + WAITED
    expected = ((closed - 1) * 0.7**2 / 2 + WAITED**2 / 2) / lived
    assert told.application_mean / SECOND == pytest.approx(expected)
    assert told.application_now == 0
