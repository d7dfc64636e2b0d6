"""More updates than a slow function can take, on Spark: micro-batches stay within their interval and answers fresh.

What is asserted are rows, not seconds: a row takes two milliseconds or more, however busy the machine is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.hosts.spark.stage.bucket_queues import STALEST
from millrace.hosts.spark.stage.budget import FIRST_ROWS
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork
from tests.background import running
from tests.e2e.commands import wait_for
from tests.e2e.slow_functions import SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS, ROWS, FILES = 40, 2000, 6
NEWEST = {value % KEYS: value for value in range(FILES * ROWS - KEYS, FILES * ROWS)}
"""The last value of each key."""
BUCKETS = 2
MOST = int(BUCKETS * 0.8 / SECONDS)
"""How many rows fit into a micro-batch: two buckets work side by side for 80 % of a second, for both queries."""
SCRIPT = """
CREATE FUNCTION slow(BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'tests.e2e.slow_functions:slow';
CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k)
  FROM parquet OPTIONS (path '{folder}/s', max_files_per_trigger '1');
CREATE SINK fresh_rows TO parquet OPTIONS (path '{folder}/fresh');
CREATE SINK every_row TO parquet OPTIONS (path '{folder}/every');
CREATE QUERY fresh WITH (queue = 'inplace') INTO fresh_rows AS SELECT k, slow(v) AS v, ts FROM s;
CREATE QUERY every WITH (queue = 'append') INTO every_row AS SELECT k, slow(v) AS v, ts FROM s;
"""


def network(folder: Path) -> QueryNetwork:
    return parse_network(SCRIPT.format(folder=folder))


def write(folder: Path) -> None:
    """Files of updates that go round all keys, a millisecond apart; `v` counts them."""
    folder.mkdir()
    for number in range(FILES):
        values = range(number * ROWS, (number + 1) * ROWS)
        rows = {"k": [value % KEYS for value in values], "v": list(values)}
        times = pa.array([value * 1000 for value in values], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({**rows, "ts": times}), folder / f"{number:04d}.parquet")


@contextmanager
def live_run(folder: Path, session: Any) -> Iterator[Any]:
    from millrace.hosts.spark.host import SparkRun

    run = SparkRun(
        network(folder), RunOptions("spark", checkpoint=folder / "state", trigger="1 second"), session=session
    )
    with running(run):
        yield run


def let_go(record: Record) -> dict[str, int]:
    return {title: told["let_go"] for title, told in record["queues"].items()}


def read(folder: Path) -> list[dict[str, Any]]:
    """All results, micro-batch by micro-batch."""
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def check_accounts(run: Any) -> None:
    """No row is lost, and of the two queries the one counts that has processed least."""
    source, queues = run.report().sources["s"], run.report().queues
    parts = (source.processed, source.late, source.quarantined, source.shed, source.superseded, source.buffered)
    assert source.received == sum(parts) == FILES * ROWS
    assert source.processed == queues["fresh"].let_go < queues["every"].let_go


def test_under_overload_micro_batches_stay_within_their_interval_and_answers_fresh(
    tmp_path: Path, spark_session: Any
) -> None:
    write(tmp_path / "s")
    log = CommitLog(tmp_path / "state" / "commits")
    with live_run(tmp_path, spark_session) as run:
        wait_for(lambda: ((log.newest() or {}).get("sources") or {"s": {"files": 0}})["s"]["files"] == FILES)
    check_accounts(run)
    records = [record for _, record in log.records()]
    sizes = [sum(later.values()) - sum(earlier.values()) for earlier, later in pairwise([{}, *map(let_go, records)])]
    assert sizes[0] <= 2 * BUCKETS * FIRST_ROWS, "nothing is known yet"
    assert max(sizes[1:]) <= MOST
    told = records[-1]["queues"]
    assert told["fresh"]["waiting"] <= KEYS
    assert told["fresh"]["superseded"] > 0
    assert told["every"]["waiting"] > FILES * ROWS - len(records) * MOST - 2 * BUCKETS * FIRST_ROWS > 0
    assert told["every"]["application_now"] > told["fresh"]["application_now"]
    stale = run.staleness("every")
    assert STALEST <= stale.num_rows <= BUCKETS * STALEST
    assert stale.column("application_now")[0].as_py() > 0

    from millrace.hosts.spark.host import SparkRun

    rest = SparkRun(
        network(tmp_path), RunOptions("spark", "available", checkpoint=tmp_path / "state"), session=spark_session
    )
    report = rest.run()
    assert report.queues["every"].waiting == report.queues["fresh"].waiting == 0
    assert sorted(row["v"] for row in read(tmp_path / "every")) == list(range(FILES * ROWS)), "all of them, each once"
    last: dict[int, int] = {}
    for row in read(tmp_path / "fresh"):
        assert row["v"] > last.get(row["k"], -1), "a key never goes back"
        last[row["k"]] = row["v"]
    assert last == NEWEST


def test_another_queue_is_taken_to_while_rows_wait(tmp_path: Path, spark_session: Any) -> None:
    write(tmp_path / "s")
    net = mr.Network()
    columns = "k BIGINT, v BIGINT, ts TIMESTAMP"
    stream = net.stream("s", columns, time="ts", update_key="k", source="parquet", path=tmp_path / "s")
    net.query("q", stream.select("k", "v"), settings={"queue": "append", "budget": "100 rows"})
    handle = net.run(on="spark", checkpoint=tmp_path / "state", trigger="500 milliseconds")
    try:
        wait_for(lambda: handle.metrics().queues and handle.metrics().queues["q"].let_go >= 200)
        before = handle.metrics().queues["q"]
        assert (before.policy, before.let_go % 100, before.superseded) == ("append", 0, 0)
        assert before.waiting == FILES * ROWS - before.let_go
        handle.alter("q", queue="inplace")
        wait_for(lambda: handle.metrics().queues["q"].waiting == 0)
        after = handle.metrics().queues["q"]
        assert after.policy == "inplace"
        # What left while the change was on its way, and then one row a key.
        assert after.let_go - before.let_go < 1000
        assert after.entered == FILES * ROWS == after.let_go + after.superseded
    finally:
        handle.stop()
    results = handle.results("q").to_pylist()
    assert {row["k"]: row["v"] for row in results} == NEWEST
