"""When results leave on Spark, read from batch ids and commit records rather than from a stop-watch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.language import parse_network
from millrace.testing import table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = {"v": pa.int32(), "ts": pa.timestamp("us", tz="UTC")}
SECOND = 1_000_000


def stream(name: str, folder: Path, promise: str) -> str:
    (folder / name).mkdir()
    source = f"FROM parquet OPTIONS (path '{folder / name}', max_files_per_trigger '1')"
    return f"CREATE STREAM {name} (v INT, ts TIMESTAMP) TIMESTAMP BY ts {promise} {source};\n"


def write(folder: Path, name: str, number: int, rows: pa.Table) -> None:
    hidden = folder / f".{number}"
    pq.write_table(rows, hidden)
    hidden.replace(folder / name / f"{number:04d}.parquet")


def batch_of(folder: Path) -> dict[int, int]:
    """The batch whose file holds each window, by the window's first second."""
    found = {}
    for path in sorted(folder.glob("part-*")):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            start = round(row["window_start"].timestamp())
            assert start not in found, "a window leaves once"
            found[start] = int(path.name.split("-")[1])
    return found


def test_a_window_leaves_in_the_micro_batch_that_completes_it(tmp_path: Path, spark_session: Any) -> None:
    from millrace.hosts.spark.host import SparkRun

    sql = (
        stream("a", tmp_path, "DISORDER INTERVAL 2 SECONDS")
        + f"""
        CREATE SINK out TO parquet OPTIONS (path '{tmp_path / "out"}');
        CREATE QUERY q INTO out AS SELECT window, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
    """
    )
    files = ["00:00:01 00:00:08", "00:00:11", "00:00:12 00:00:09.9", "00:00:21.999", "00:00:32", "00:00:30"]
    for number, times in enumerate(files):
        text = "\n".join(["v | ts", *(f"1 | {time}" for time in times.split())])
        write(tmp_path, "a", number, table(text, SCHEMA).table)
    run = SparkRun(
        parse_network(sql), RunOptions("spark", "available", checkpoint=tmp_path / "state"), session=spark_session
    )
    run.run()
    log = CommitLog(tmp_path / "state" / "commits")
    file_of = {batch: record["sources"]["a"]["files"] - 1 for batch, record in log.records()}
    # The bound is the greatest time less two seconds: 12 closes [0, 10), and 32 closes both [10, 20) and [20, 30).
    assert {window: file_of[batch] for window, batch in batch_of(tmp_path / "out").items()} == {0: 2, 10: 4, 20: 4}


class Live:
    """A live run in a thread, stopped at the end of the block."""

    def __init__(self, sql: str, folder: Path, session: Any) -> None:
        from millrace.hosts.spark.host import SparkRun

        self.log = CommitLog(folder / "state" / "commits")
        self.run = SparkRun(
            parse_network(sql),
            RunOptions("spark", checkpoint=folder / "state", trigger="200 milliseconds"),
            session=session,
        )
        self.thread = Thread(target=self.run.run)

    def __enter__(self) -> Live:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run.stop()
        self.thread.join(300)
        assert not self.thread.is_alive()

    def wait(self, condition: Callable[[Record], object], seconds: float = 240) -> None:
        until = time.monotonic() + seconds
        while not condition(self.log.newest() or {}):
            assert time.monotonic() < until, f"waited in vain; the newest record is {self.log.newest()}"
            assert self.thread.is_alive(), "the run ended by itself"
            time.sleep(0.05)


def at(second: float) -> pa.Table:
    return pa.table({"v": [1], "ts": [round(second * SECOND)]}).cast(pa.schema(list(SCHEMA.items())))


def read(record: Record, name: str) -> int:
    return int(record.get("sources", {}).get(name, {}).get("files", 0))


def test_a_silent_source_holds_a_window_back_two_triggers_at_most(tmp_path: Path, spark_session: Any) -> None:
    promise = "ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND"
    sql = (
        stream("main", tmp_path, promise)
        + stream("control", tmp_path, promise)
        + f"""
        CREATE SINK out TO parquet OPTIONS (path '{tmp_path / "out"}');
        CREATE QUERY q INTO out AS
          SELECT window, count(*) AS n FROM main UNION control [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
    """
    )
    for name in ("main", "control"):
        write(tmp_path, name, 0, at(1))
    with Live(sql, tmp_path, spark_session) as live:
        live.wait(lambda record: read(record, "main") == 1 == read(record, "control"))
        # While every source sends, nobody is spoken for, though the first window's end is in sight.
        for number in (1, 2, 3):
            for name in ("main", "control"):
                write(tmp_path, name, number, at(1 + number))
            live.wait(lambda record, number=number: min(read(record, "main"), read(record, "control")) > number)
        busy = live.log.newest() or {}
        # Then control stops before the end of the window, and main after it: three seconds later an ETS may speak.
        write(tmp_path, "control", 4, at(58))
        write(tmp_path, "main", 4, at(62))
        live.wait(lambda record: 0 in batch_of(tmp_path / "out"))
    records = dict(live.log.records())
    carrier = batch_of(tmp_path / "out")[0]
    assert busy["sources"]["control"]["enabled"] == 0 == busy["sources"]["main"]["enabled"]
    assert records[carrier]["sources"]["control"]["enabled"] == 1
    assert passes(records[carrier - 1], records[carrier])
    assert all(read(records[carrier], name) == read(records[carrier - 1], name) for name in ("main", "control"))
    woken = next(batch for batch in sorted(records)[1:] if passes(records[batch - 1], records[batch]))
    assert woken <= carrier <= woken + 1, "the window leaves in the first batch that the clock woke, or the next"


def passes(before: Record, record: Record) -> bool:
    """Whether the batch is the first whose clock has reached what the record before it asked for."""
    return before.get("wake_at") is not None and record["now"] >= before["wake_at"]


WINDOWED = "[RANGE 2 SECONDS SLIDE 2 SECONDS WA ts]"


def counting(name: str, folder: Path, streams: str) -> str:
    sink = f"CREATE SINK {name}_out TO parquet OPTIONS (path '{folder / name}_out');\n"
    return sink + f"CREATE QUERY {name} INTO {name}_out AS SELECT window, count(*) AS n FROM {streams} {WINDOWED};\n"


def counted(folder: Path, name: str) -> int:
    """How many rows the windows that have left hold."""
    paths = (folder / f"{name}_out").glob("part-*")
    return sum(sum(pq.read_table(path, partitioning=None)["n"].to_pylist()) for path in paths)


def test_silence_of_every_source_closes_the_last_window(tmp_path: Path, spark_session: Any) -> None:
    lull = "ORDERED ETS ON DEMAND LULL INTERVAL 1 SECOND"
    sql = (
        stream("paced", tmp_path, "ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND")
        + stream("lulled", tmp_path, lull)
        + stream("empty", tmp_path, lull)
        + stream("stamped", tmp_path, "").replace("TIMESTAMP BY ts", "INTERNAL TIMESTAMP AS ts")
        + counting("skew", tmp_path, "paced")
        + counting("lull", tmp_path, "lulled UNION empty")
        + counting("internal", tmp_path, "stamped")
    )
    for name in ("paced", "lulled", "stamped"):
        write(tmp_path, name, 0, at(time.time()))
    with Live(sql, tmp_path, spark_session) as live:
        live.wait(lambda _: all(counted(tmp_path, name) == 1 for name in ("skew", "lull", "internal")))
        live.wait(lambda record: record["wake_at"] is None)
        last = live.log.newest() or {}
        time.sleep(1)
        assert live.log.newest() == last, "where nothing waits the clock wakes nobody"
    assert {name: known["enabled"] for name, known in last["sources"].items()} == dict.fromkeys(last["sources"], 1)


def test_a_periodic_ets_wakes_micro_batches_and_closes_windows(tmp_path: Path, spark_session: Any) -> None:
    sql = (
        stream("lulled", tmp_path, "ORDERED ETS EVERY INTERVAL 1 SECOND LULL INTERVAL 1 SECOND")
        + stream("stamped", tmp_path, "ETS EVERY INTERVAL 1 SECOND").replace(
            "TIMESTAMP BY ts", "INTERNAL TIMESTAMP AS ts"
        )
        + counting("both", tmp_path, "lulled UNION stamped")
    )
    for name in ("lulled", "stamped"):
        write(tmp_path, name, 0, at(time.time()))
    with Live(sql, tmp_path, spark_session) as live:
        live.wait(lambda _: counted(tmp_path, "both") == 2)
        closed = live.log.newest() or {}
        live.wait(lambda record: record["batch"] >= closed["batch"] + 2)
    records = dict(live.log.records())
    woken = [
        batch for batch in sorted(records)[1:] if read(records[batch], "lulled") == read(records[batch - 1], "lulled")
    ]
    assert all(passes(records[batch - 1], records[batch]) for batch in woken), "a beat wakes, and nothing else"
    assert all(records[batch]["wake_at"] % SECOND == 0 for batch in woken)
    before, after = (records[batch]["sources"] for batch in (woken[-2], woken[-1]))
    assert all(after[name]["enabled"] == before[name]["enabled"] + 1 for name in after), "whether or not someone waits"


def test_an_end_does_not_overtake_new_files_and_comes_once(tmp_path: Path, spark_session: Any) -> None:
    from millrace.hosts.spark.host import SparkRun

    sql = (
        stream("a", tmp_path, "ORDERED")
        + f"""
        CREATE SINK out TO parquet OPTIONS (path '{tmp_path / "out"}');
        CREATE QUERY q INTO out AS SELECT window, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
    """
    )
    write(tmp_path, "a", 0, at(1))
    SparkRun(
        parse_network(sql), RunOptions("spark", "available", checkpoint=tmp_path / "state"), session=spark_session
    ).run()
    for number in (1, 2, 3):
        write(tmp_path, "a", number, at(10 * number + 1))
    report = SparkRun(
        parse_network(sql), RunOptions("spark", "end", checkpoint=tmp_path / "state"), session=spark_session
    ).run()
    assert sorted(batch_of(tmp_path / "out")) == [0, 10, 20, 30]
    assert report.sources["a"].late == 0
    again = SparkRun(
        parse_network(sql), RunOptions("spark", "end", checkpoint=tmp_path / "state"), session=spark_session
    )
    again.run()
    assert sorted(batch_of(tmp_path / "out")) == [0, 10, 20, 30], "a further run adds nothing"
