"""What a run on Spark says of itself comes from its commit log."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from millrace.errors import RequestError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.commit_reader import CommitReader
from millrace.hosts.why.lag import Lag
from millrace.language import parse_network

STREAMS = "".join(
    f"CREATE STREAM {name} (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;"
    for name in ("s", "t")
)
QUERIES = parse_network(
    f"""{STREAMS}
    CREATE QUERY newest WITH (queue = 'linecutting') AS SELECT k, v FROM s;
    CREATE QUERY both AS SELECT s.k, s.v FROM s JOIN t ON s.k = t.k;
    CREATE QUERY plain WITH (queue = 'append') AS SELECT v FROM s;
    CREATE STREAM p (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
    CREATE QUERY none AS SELECT v FROM p;"""
).queries


def test_before_the_first_commit_every_queue_is_there_and_empty(tmp_path: Path) -> None:
    queues = CommitReader(CommitLog(tmp_path), profiled=False).report(QUERIES).queues
    policies = {"newest": "linecutting", "both": "inplace", "both#2": "inplace", "plain": "append"}
    assert {name: queue.policy for name, queue in queues.items()} == policies
    assert {queue.entered + queue.waiting for queue in queues.values()} == {0}


def test_what_holds_a_run_back_is_as_of_the_newest_commit_or_of_when_nothing_had_come_since(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    reader = CommitReader(log, profiled=False)
    assert reader.lag().now == 0
    moments = []
    for batch, now in enumerate((1_000, 9_000)):
        log.write(batch, {"batch": batch, "lag": Lag(now, True, {}, {}).data()})
        moments.append(reader.lag().now)
        reader.found_nothing(now + 5_000)
        moments.append(reader.lag().now)
    # A commit says more than what was known before it.
    assert moments == [1_000, 6_000, 9_000, 14_000]


def progress_of(batch: int, at: str = "00.000", **milliseconds: int) -> dict[str, Any]:
    return {"batchId": batch, "timestamp": f"2026-01-01T00:00:{at}Z", "durationMs": milliseconds}


def test_micro_batches_that_spark_has_passed_are_timed_too(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    reader = CommitReader(log, profiled=False)
    for batch in range(3):
        log.write(batch, {"batch": batch})
    assert len(list(reader.look())) == 3
    done = [progress_of(batch, addBatch=900, triggerExecution=1_000 + batch) for batch in (0, 2)]
    idle = progress_of(3, triggerExecution=4)
    asked = list[str]()

    class Query:
        """What Spark says of its query: it has been idle for ten seconds, and forgot micro-batch 1."""

        lastProgress = idle

        @property
        def recentProgress(self) -> list[dict[str, Any]]:
            asked.append("recent")
            return [*done, idle]

    reader.time_newest(Query(), None)  # type: ignore[arg-type]
    assert [(each["batch"], each["seconds"]) for each in reader.report(QUERIES).batches] == [(0, 1.0), (2, 1.002)]
    reader.time_newest(Query(), None)  # type: ignore[arg-type]
    assert asked == ["recent"]


def test_a_micro_batch_is_timed_when_spark_has_told_of_it(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    reader = CommitReader(log, profiled=False)
    log.write(0, {"batch": 0})
    assert len(list(reader.look())) == 1
    for newest in (None, progress_of(0, triggerExecution=4)):
        reader.time_newest(SimpleNamespace(lastProgress=newest), None)  # type: ignore[arg-type]
        assert reader.report(QUERIES).batches == ()
    reader.time_newest(SimpleNamespace(lastProgress=progress_of(0, addBatch=1, triggerExecution=7)), None)  # type: ignore[arg-type]
    assert [each["seconds"] for each in reader.report(QUERIES).batches] == [0.007]


@pytest.mark.parametrize(("interval", "seconds"), [(500_000, [1.5, 1.5, 0.8]), (None, [1.0, 0.5, 0.3])])
def test_a_result_is_as_old_as_the_rows_of_its_micro_batch_may_be(
    tmp_path: Path, interval: int | None, seconds: list[float]
) -> None:
    log = CommitLog(tmp_path)
    reader = CommitReader(log, profiled=False)
    # The second begins when the first has ended; before the last Spark was idle for some triggers.
    told = [("10.000", 1_000, 4), ("11.000", 500, 6), ("20.000", 300, 6), ("30.000", 300, 10)]
    totals = [0.0]
    for batch, (at, took, rows) in enumerate(told):
        log.write(batch, {"batch": batch, "metrics": {"results": {"plain": rows}}})
        assert len(list(reader.look())) == 1
        progress = progress_of(batch, at, addBatch=1, triggerExecution=took)
        reader.time_newest(SimpleNamespace(lastProgress=progress), interval)  # type: ignore[arg-type]
        totals.append(reader.report(QUERIES).latency["plain"].sum / 1e6)
    first, second, last = seconds
    assert np.diff(totals).tolist() == pytest.approx([4 * first, 2 * second, 0, 4 * last])
    assert reader.report(QUERIES).latency["plain"].count == 10


def test_before_the_first_commit_nobody_says_that_a_query_has_no_queue(tmp_path: Path) -> None:
    reader = CommitReader(CommitLog(tmp_path), profiled=False)
    with pytest.raises(RequestError, match="no bucket has reported single keys"):
        reader.staleness("newest", QUERIES)
    with pytest.raises(RequestError, match='query "none" has no queue'):
        reader.staleness("none", QUERIES)
