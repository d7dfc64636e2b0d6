"""Queries that Spark carries out on several levels, or by other attributes than time, over many micro-batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.errors import CheckpointError
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.checkpoint_manifest import CheckpointManifest
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.language import parse_network
from tests.background import running
from tests.e2e.commands import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")


def stream(folder: Path, promise: str, columns: str = "k INT, ts TIMESTAMP") -> str:
    (folder / "s").mkdir(exist_ok=True)
    source = f"FROM parquet OPTIONS (path '{folder / 's'}', max_files_per_trigger '1')"
    return f"CREATE STREAM s ({columns}) TIMESTAMP BY ts {promise} {source};\n"


def query(folder: Path, name: str, select: str) -> str:
    sink = f"CREATE SINK {name}_out TO parquet OPTIONS (path '{folder / name}');\n"
    return f"{sink}CREATE QUERY {name} INTO {name}_out AS {select};\n"


NESTED = """
    SELECT window_start, n, count(*) AS devices, min(k) AS least
    FROM (SELECT window, k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k)
    GROUP BY window_start, n
"""
BATCH = """
    SELECT start, n, count(*) AS devices, min(k) AS least
    FROM (SELECT epoch_us(ts) // 10000000 * 10 AS start, k, count(*) AS n FROM rows GROUP BY ALL) GROUP BY ALL
"""


def add(folder: Path, number: int, rows: pa.Table) -> None:
    hidden = folder / f".{number}"
    pq.write_table(rows, hidden)
    hidden.replace(folder / "s" / f"{number:04d}.parquet")


def devices(number: int, seconds: int = 7, count: int = 4000) -> pa.Table:
    """Rows of many devices over some seconds, after those of the file before."""
    draw = np.random.default_rng(number)
    times = np.sort(draw.integers(number * seconds * SECOND, (number + 1) * seconds * SECOND, count))
    keys = draw.integers(0, 1000, count).astype(np.int32)
    return pa.table({"k": pa.array(keys), "ts": pa.array(times).cast(TIMESTAMP)})


def at(second: float, *keys: int) -> pa.Table:
    times = pa.array([round(second * SECOND)] * len(keys), pa.int64()).cast(TIMESTAMP)
    return pa.table({"k": pa.array(keys, pa.int32()), "ts": times})


def results(folder: Path, name: str) -> list[dict[str, Any]]:
    paths = sorted((folder / name).glob("part-*"))
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def run(sql: str, folder: Path, session: Any, ending: Any) -> Any:
    from millrace.hosts.spark.host import SparkRun

    made = SparkRun(parse_network(sql), RunOptions("spark", ending, checkpoint=folder / "state"), session=session)
    return made.run()


def by_window(rows: Sequence[dict[str, Any]]) -> list[tuple[int, ...]]:
    found = [(round(row["window_start"].timestamp()), row["n"], row["devices"], row["least"]) for row in rows]
    return sorted(found)


def test_a_nested_aggregate_equals_the_batch_answer_and_goes_on_after_a_restart(
    tmp_path: Path, spark_session: Any
) -> None:
    sql = stream(tmp_path, "ORDERED") + query(tmp_path, "q", NESTED)
    tables = [devices(number) for number in range(6)]
    for number in range(3):
        add(tmp_path, number, tables[number])
    run(sql, tmp_path, spark_session, "available")
    leaving = by_window(results(tmp_path, "q"))
    assert {start for start, *_ in leaving} == {0, 10}, "the window from 20 on is open on the first level"
    for number in range(3, 6):
        add(tmp_path, number, tables[number])
    report = run(sql, tmp_path, spark_session, "end")
    rows = pa.concat_tables(tables)
    expected = sorted(duckdb.from_arrow(rows).query("rows", BATCH).fetchall())
    assert by_window(results(tmp_path, "q")) == expected
    assert (report.sources["s"].received, report.sources["s"].late) == (rows.num_rows, 0)
    assert (report.results["q"], report.held) == (len(expected), 0)


def test_a_window_leaves_in_the_micro_batch_that_completes_it_through_all_levels(
    tmp_path: Path, spark_session: Any
) -> None:
    sql = stream(tmp_path, "ORDERED") + query(tmp_path, "q", NESTED)
    for number in range(4):
        add(tmp_path, number, devices(number, seconds=10, count=100))
    run(sql, tmp_path, spark_session, "available")
    log = CommitLog(tmp_path / "state" / "commits")
    file_of = {batch: record["sources"]["s"]["files"] - 1 for batch, record in log.records()}
    for path in (tmp_path / "q").glob("part-*"):
        starts = {round(row["window_start"].timestamp()) for row in pq.read_table(path, partitioning=None).to_pylist()}
        assert starts == {10 * (file_of[int(path.name.split("-")[1])] - 1)}
    assert len(list((tmp_path / "q").glob("part-*"))) >= 3


def test_silence_of_every_source_closes_the_last_window_of_the_last_level(tmp_path: Path, spark_session: Any) -> None:
    from millrace.hosts.spark.host import SparkRun

    # The inner windows are over long before the outer one, which nobody but the outer level waits for.
    select = """
        SELECT count(*) AS devices, sum(n) AS readings
        FROM (SELECT window, k, count(*) AS n FROM s [RANGE 1 SECOND SLIDE 1 SECOND WA ts] GROUP BY k)
        [RANGE 8 SECONDS SLIDE 8 SECONDS]
    """
    sql = stream(tmp_path, "ORDERED ETS ON DEMAND LULL INTERVAL 1 SECOND") + query(tmp_path, "q", select)
    made = SparkRun(
        parse_network(sql),
        RunOptions("spark", checkpoint=tmp_path / "state", trigger="200 milliseconds"),
        session=spark_session,
    )
    log = CommitLog(tmp_path / "state" / "commits")
    add(tmp_path, 0, at(time.time() - 100, 7))
    with running(made):
        wait_for(lambda: len(results(tmp_path, "q")) == 1)
        time.sleep(8 - time.time() % 8)
        add(tmp_path, 1, at(time.time(), 1, 1, 2, 3))
        wait_for(lambda: len(results(tmp_path, "q")) == 2)
        wait_for(lambda: (log.newest() or {})["wake_at"] is None)
        last = log.newest()
        time.sleep(1)
        assert log.newest() == last, "where nothing waits nobody is woken"
    assert [(row["devices"], row["readings"]) for row in results(tmp_path, "q")] == [(1, 1), (3, 4)]
    waited = [record["wants"] for _, record in log.records()]
    assert any(waited), "it was the outer level that waited"
    assert waited[-1] == {}


def test_a_checkpoint_with_too_few_levels_is_refused(tmp_path: Path, spark_session: Any) -> None:
    sql = stream(tmp_path, "ORDERED") + query(tmp_path, "q", NESTED)
    add(tmp_path, 0, devices(0, count=10))
    run(sql, tmp_path, spark_session, "available")
    known = CheckpointManifest.read(tmp_path / "state")
    assert known is not None and known.levels == 2
    replace(known, levels=1).write(tmp_path / "state")
    with pytest.raises(CheckpointError, match=r"need 2 stages, and the checkpoint .* has 1"):
        run(sql, tmp_path, spark_session, "available")


def test_row_windows_number_the_stream_over_files_and_micro_batches(tmp_path: Path, spark_session: Any) -> None:
    select = "SELECT window, k % 3 AS part, count(*) AS n FROM s [ROWS 1500 SLIDE 1000] GROUP BY k % 3"
    sql = stream(tmp_path, "ORDERED").replace("'1'", "'2'") + query(tmp_path, "q", select)
    tables = [devices(number, count=700) for number in range(5)]
    for number, table in enumerate(tables):
        add(tmp_path, number, table)
    run(sql, tmp_path, spark_session, "end")
    keys = pa.concat_tables(tables)["k"].to_numpy() % 3
    expected = {
        (start, int(part)): int(count)
        for start in range(-1000, 3500, 1000)
        for part, count in zip(*np.unique(keys[max(start, 0) : start + 1500], return_counts=True), strict=True)
    }
    assert {(row["window_start"], row["part"]): row["n"] for row in results(tmp_path, "q")} == expected


def test_late_rows_go_to_the_stream_and_the_sink_that_are_named_for_them(tmp_path: Path, spark_session: Any) -> None:
    sql = (
        stream(tmp_path, "ORDERED LATE INTO too_late")
        + f"CREATE SINK too_late TO parquet OPTIONS (path '{tmp_path / 'late'}');\n"
        + query(tmp_path, "q", "SELECT k FROM s")
    )
    seconds = [[1, 5, 3], [4, 6], [7, 2, 1]]
    for number, times in enumerate(seconds):
        ts = pa.array([each * SECOND for each in times], pa.int64()).cast(TIMESTAMP)
        add(tmp_path, number, pa.table({"k": pa.array(times, pa.int32()), "ts": ts}))
    report = run(sql, tmp_path, spark_session, "end")
    assert sorted(row["k"] for row in results(tmp_path, "late")) == [1, 2, 3, 4]
    assert sorted(row["k"] for row in results(tmp_path, "q")) == [1, 5, 6, 7]
    assert (report.sources["s"].received, report.sources["s"].late) == (8, 4)


def test_a_device_that_is_behind_holds_no_other_back(tmp_path: Path, spark_session: Any) -> None:
    select = "SELECT window, k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k"
    promise = "PUNCTUATED BY until PER (k)"
    sql = stream(tmp_path, promise, "k INT, ts TIMESTAMP, until TIMESTAMP") + query(tmp_path, "q", select)
    behind = 3
    for minute in range(5):
        keys = list(range(20))
        minutes = [minute - behind if key == 0 else minute for key in keys]
        # A device sends a row in the middle of a minute, and at its end a row that promises the next one.
        starts = [each * 60 + second for second in (30, 59) for each in minutes]
        untils = [None] * len(keys) + [(each + 1) * 60 for each in minutes]
        rows = [[None if each is None else each * SECOND for each in times] for times in (starts, untils)]
        columns = [pa.array(keys * 2, pa.int32()), *(pa.array(each, pa.int64()).cast(TIMESTAMP) for each in rows)]
        add(tmp_path, minute, pa.table(columns, ["k", "ts", "until"]))
    report = run(sql, tmp_path, spark_session, "available")
    assert report.sources["s"].late == 0
    found = {(row["k"], round(row["window_start"].timestamp()) // 60): row["n"] for row in results(tmp_path, "q")}
    assert found == {(key, minute - (behind if key == 0 else 0)): 2 for key in range(20) for minute in range(5)}


WIDEST = """
class Widest:
    def initialize(self):
        return 0

    def iterate(self, state, column):
        return max(state, *column.to_pylist())

    def merge(self, state, other):
        return max(state, other)

    def terminate(self, state):
        return state
"""


def test_an_aggregate_of_the_users_own_is_found_where_the_driver_finds_it(
    tmp_path: Path, spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "widest_of_all.py").write_text(WIDEST)
    monkeypatch.syspath_prepend(tmp_path / "code")
    sql = (
        "CREATE AGGREGATE widest(INT) RETURNS INT LANGUAGE PYTHON AS 'widest_of_all:Widest';\n"
        + stream(tmp_path, "ORDERED")
        + query(tmp_path, "q", "SELECT widest(k) AS k FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]")
    )
    add(tmp_path, 0, at(1, 5, 3))
    add(tmp_path, 1, at(2, 9, 7))
    run(sql, tmp_path, spark_session, "end")
    assert [row["k"] for row in results(tmp_path, "q")] == [9]
