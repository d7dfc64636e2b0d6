"""Batches on the local host are cut where functions of a user run, so that no result or query waits for a whole one."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from tests.unit.hosts.fed import row
from tests.unit.hosts.local import noted_calls

ROWS = 40
STREAM = "CREATE STREAM {0} (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {1};"
FUNCTION = "CREATE FUNCTION {0}(INT) RETURNS INT LANGUAGE PYTHON AS 'tests.unit.hosts.local.noted_calls:{0}';"
SLOW = STREAM.format("s", "iterable") + FUNCTION.format("noted")


class Delivered:
    """The results that have been delivered, as (query, value), and what the function had been called with before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order: list[tuple[str, int]] = []
        self.at_call: list[int] = []
        monkeypatch.setattr(noted_calls, "on_call", self.called)

    def called(self, value: int) -> None:
        self.at_call.append(len(self.order))

    def results(self, query: str, rows: pa.Table) -> None:
        self.order += [(query, value) for value in rows.column("v").to_pylist()]


def batch(count: int = ROWS) -> list[dict[str, Any]]:
    return [row(number, v=number) for number in range(count)]


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "rr", "batch:10"])
def test_the_first_result_leaves_long_before_the_last_row_is_computed(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered = Delivered(monkeypatch)
    query = "SELECT v FROM (SELECT noted(v) AS v FROM s) WHERE v >= 0"
    sql = f"{SLOW} CREATE QUERY q WITH (strategy = '{strategy}') AS {query};"
    source = mr.Pushed()
    source.push(batch())
    source.close()
    options = RunOptions("local", "end")
    LocalRun(parse_network(sql), options, feeds={"s": source}, listeners=Listeners(results=delivered.results)).run()
    assert delivered.order == [("q", number) for number in range(ROWS)]
    assert len(delivered.at_call) == ROWS
    assert delivered.at_call[-1] >= ROWS // 3, "results had been delivered when the last row was computed"


@pytest.mark.parametrize("commit_interval", [1_000, 1_000_000])
def test_a_row_of_another_query_does_not_wait_for_a_batch(
    commit_interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered, slow, quick = Delivered(monkeypatch), mr.Pushed(), mr.Pushed()

    def called(value: int) -> None:
        if value == 5:
            quick.push(row(1, v=99))
            quick.close()
            slow.close()

    monkeypatch.setattr(noted_calls, "on_call", called)
    queries = (
        "CREATE QUERY slow AS SELECT noted(v) AS v FROM s; CREATE QUERY quick WITH (share = 100) AS SELECT v FROM t;"
    )
    slow.push(pa.table({"v": pa.array(range(ROWS), pa.int32()), "ts": pa.array(range(ROWS)).cast(pa.timestamp("us"))}))
    reports: list[Report] = []
    LocalRun(
        parse_network(SLOW + STREAM.format("t", "iterable") + queries),
        RunOptions("local", "end", commit_interval=commit_interval),
        feeds={"s": slow, "t": quick},
        listeners=Listeners(results=delivered.results, progress=reports.append),
    ).run()
    assert sorted(delivered.order) == [("quick", 99), *(("slow", number) for number in range(ROWS))]
    assert delivered.order.index(("quick", 99)) < ROWS - 8, "it did not wait for the rest of the batch"
    if commit_interval == 1_000:
        assert len(reports) > 3, "commits do not wait for the whole batch either"


@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_a_run_that_is_stopped_within_a_chunk_goes_on_there(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = pa.array(range(ROWS)).cast(pa.timestamp("us", tz="UTC"))
    (tmp_path / "in").mkdir()
    if source == "parquet":
        pq.write_table(pa.table({"v": pa.array(range(ROWS), pa.int32()), "ts": times}), tmp_path / "in" / "1.parquet")
    else:
        lines = [f"{number},1970-01-01 00:00:00.0000{number:02}" for number in range(ROWS)]
        (tmp_path / "in" / "1.csv").write_text(
            "\n".join(["v,ts", *lines[:9], "many,1970-01-01 00:00:00", *lines[9:], ""])
        )
    sql = (
        STREAM.format("s", f"{source} OPTIONS (path '{tmp_path / 'in'}', on_malformed 'skip')")
        + FUNCTION.format("noted")
        + f"CREATE SINK out TO parquet OPTIONS (path '{tmp_path / 'out'}');"
        + "CREATE QUERY q INTO out AS SELECT noted(v) AS v FROM s;"
    )
    runs: list[LocalRun] = []
    monkeypatch.setattr(noted_calls, "on_call", lambda value: runs[-1].stop() if value in (5, 17) else None)
    for _ in range(3):
        options = RunOptions("local", "available", checkpoint=tmp_path / "state")
        runs.append(LocalRun(parse_network(sql), options))
        report = runs[-1].run()
    assert report.sources["s"].quarantined == (source == "csv")
    found = [
        value for path in sorted((tmp_path / "out").glob("part-*")) for value in pq.read_table(path)["v"].to_pylist()
    ]
    assert found == list(range(ROWS))
    assert len(list((tmp_path / "out").glob("part-*"))) == 3, "each run has done a part"


@pytest.mark.parametrize("polled", [False, True])
def test_what_a_source_gave_at_once_is_processed_before_a_run_ends(
    polled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter([batch()])
    source: Any = mr.Polled(lambda: next(given, None)) if polled else mr.Pushed()
    if not polled:
        source.push(batch())
    run = LocalRun(parse_network(f"{SLOW} CREATE QUERY q AS SELECT noted(v) AS v FROM s;"), feeds={"s": source})
    monkeypatch.setattr(noted_calls, "on_call", lambda value: run.stop() if value == 5 else None)
    thread = Thread(target=run.run)
    thread.start()
    thread.join(300)
    assert not thread.is_alive()
    assert pa.concat_tables(run.memory["q"]).column("v").to_pylist() == list(range(ROWS))


def test_a_function_of_columns_takes_whole_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(noted_calls, "on_call", sizes.append)
    sql = STREAM.format("s", "iterable") + FUNCTION.format("noted_columns")
    sql += "CREATE QUERY q AS SELECT noted_columns(v) AS v FROM s;"
    LocalRun(parse_network(sql), RunOptions("local", "end"), feeds={"s": [batch()]}).run()
    assert sizes == [ROWS]


def test_a_query_of_batches_takes_so_many_rows_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(noted_calls, "on_call", sizes.append)
    sql = STREAM.format("s", "iterable") + FUNCTION.format("noted_columns")
    sql += "CREATE QUERY q WITH (strategy = 'batch:15') AS SELECT noted_columns(v) AS v FROM s;"
    LocalRun(parse_network(sql), RunOptions("local", "end"), feeds={"s": [batch()]}).run()
    assert sizes == [15, 15, 10]
