"""How a run on Spark ends, and what it leaves to others in its process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import millrace as mr
from millrace.errors import MillraceError
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session.session import running_session
from millrace.language import parse_network
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import row

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SCRIPT = """
CREATE FUNCTION slow(INT) RETURNS INT LANGUAGE PYTHON AS 'tests.unit.hosts.spark.test_host:slow';
CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path '{folder}');
CREATE QUERY q AS SELECT slow(v) AS v FROM s;
"""
TICKS = "symbol STRING, price DOUBLE, ts TIMESTAMP"


def slow(value: int) -> int:
    time.sleep(1.0)
    return value


def put(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    times = pa.array([number * 1_000_000]).cast(pa.timestamp("us", tz="UTC"))
    draft = folder / f".{number}"
    pq.write_table(pa.table({"v": pa.array([number], pa.int32()), "ts": times}), draft)
    draft.replace(folder / f"{number:04d}.parquet")


def counted(folder: Path, log: str) -> int:
    return len(list((folder / "spark" / log).glob("[0-9]*")))


@pytest.fixture(autouse=True)
def session_before() -> Iterator[SparkSession | None]:
    """The session that other tests have left open, if there is one: it stays, and no other one does."""
    before = running_session()
    yield before
    assert running_session() is before


def test_runs_share_a_session_and_each_ends_after_its_present_micro_batch(tmp_path: Path) -> None:
    for name in ("one", "other"):
        put(tmp_path / name, 1)
    first, second = (
        SparkRun(
            parse_network(SCRIPT.format(folder=tmp_path / name)),
            RunOptions("spark", master="local[2]", trigger="200 milliseconds", checkpoint=tmp_path / f"{name}-state"),
        )
        for name in ("one", "other")
    )
    partitions = first.session.conf.get("spark.sql.shuffle.partitions")
    threads = [Thread(target=run.run) for run in (first, second)]
    try:
        for thread in threads:
            thread.start()
        wait_for(lambda: first.report().received == 1)
        put(tmp_path / "one", 2)
        wait_for(lambda: counted(first.folder, "offsets") == 2)
        first.stop()
        threads[0].join(300)
        assert counted(first.folder, "commits") == 2, "the micro-batch under way was not broken off"
        assert [each["v"] for table in first.memory["q"] for each in table.to_pylist()] == [1, 2]
        first.close()
        put(tmp_path / "other", 2)
        wait_for(lambda: second.report().received == 2)
        assert second.session.conf.get("spark.sql.shuffle.partitions") == partitions
    finally:
        for run, thread in zip((first, second), threads, strict=True):
            run.stop()
            thread.join(300)
            run.close()


def test_a_source_that_raises_ends_the_streaming_query_in_a_session_of_the_users(
    tmp_path: Path, session_before: SparkSession | None
) -> None:
    asked = iter([[row(1, symbol="A", price=1.0)]])

    def ask() -> list[dict[str, Any]] | None:
        found = next(asked, None)
        if found is None:
            raise ValueError("the exchange is closed")
        return found

    session = mr.spark_session("local[2]")
    try:
        net = mr.Network()
        net.stream("ticks", TICKS, time="ts", source=mr.Polled(ask, every="300 milliseconds"))
        net.sql("CREATE QUERY q AS SELECT symbol FROM ticks")
        handle = net.run(on="spark", trigger="100 milliseconds", checkpoint=tmp_path / "state")
        with pytest.raises((MillraceError, ValueError), match="the exchange is closed"):
            handle.wait()
        assert session.streams.active == []
    finally:
        if session is not session_before:
            session.stop()


def test_an_answer_that_is_asked_for_right_after_a_change_is_given(tmp_path: Path) -> None:
    pushed = mr.Pushed()
    net = mr.Network()
    net.stream("ticks", TICKS, time="ts", update_key="symbol", source=pushed)
    net.sql("CREATE QUERY prices AS SELECT symbol, price FROM ticks")
    handle = net.run(on="spark", master="local[2]", trigger="200 milliseconds", checkpoint=tmp_path / "state")
    try:
        pushed.push([row(1, symbol="A", price=1.0)])
        wait_for(lambda: handle.latest("prices", "A") is not None)
        added = Thread(target=lambda: handle.add("CREATE QUERY more AS SELECT symbol, price * 2 AS p FROM ticks"))
        added.start()
        pushed.push([row(2, symbol="A", price=2.0)])
        found: list[Any] = []
        # Both requests stand in line when the run comes to them, or one after the other: neither may block.
        asked = Thread(target=lambda: found.append(handle.latest("prices", "A", refresh=True)), daemon=True)
        asked.start()
        asked.join(300)
        added.join(300)
        assert found == [{"symbol": "A", "price": 2.0}]
    finally:
        handle.stop()


def below(process: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    children = {each for each, parent in parents.items() if parent == process}
    for child in children:
        yield child
        yield from below(child)


def killed(module: str) -> int:
    """How many Python processes of Spark's in which it plans with a module have been killed, their parents too."""
    count = 0
    for process in below(os.getpid()):
        with suppress(OSError):
            if module in Path(f"/proc/{process}/cmdline").read_text():
                os.kill(process, signal.SIGKILL)
                count += 1
    return count


def test_a_run_goes_on_when_a_planner_is_killed_and_when_the_clock_is_set_back(tmp_path: Path) -> None:
    put(tmp_path / "in", 1)
    network = parse_network(SCRIPT.format(folder=tmp_path / "in").replace("slow(v) AS v", "v"))
    options = RunOptions("spark", master="local[2]", trigger="200 milliseconds", checkpoint=tmp_path / "state")
    run = SparkRun(network, options)
    thread = Thread(target=run.run)
    thread.start()
    try:
        wait_for(lambda: run.report().received == 1, 400)
        assert killed("write_into_data_source")
        put(tmp_path / "in", 2)
        wait_for(lambda: run.report().received == 2 or not thread.is_alive(), 400)
        query = run._query.query
        run._query.set_back._ahead += 3_600_000_000
        wait_for(lambda: run._query.query is not query or not thread.is_alive(), 400)
        put(tmp_path / "in", 3)
        wait_for(lambda: run.report().received == 3 or not thread.is_alive(), 400)
    finally:
        run.stop()
        thread.join(400)
        run.close()
    assert [value for rows in run.memory["q"] for value in rows["v"].to_pylist()] == [1, 2, 3]
