"""Rows that are pushed in small pieces: all are taken at once, arrive when they are pushed, and wake the run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.connectors import push_pull
from millrace.errors import RequestError, RunError
from millrace.hosts.local import intake
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from tests.e2e.commands import millrace, wait_for
from tests.unit.hosts.fed import row

UPDATES = """CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;
CREATE QUERY q AS SELECT k, v FROM s;"""
SECOND = 1_000_000


def pushed(*items: Any) -> mr.Pushed:
    source = mr.Pushed()
    for item in items:
        source.push(item)
    source.close()
    return source


def single_rows(count: int) -> Iterator[dict[str, Any]]:
    return (row(number, k=0, v=number) for number in range(count))


def until_end(sql: str, feed: Any) -> tuple[LocalRun, Report]:
    run = LocalRun(parse_network(sql), RunOptions("local", "end"), feeds={"s": feed})
    return run, run.run()


def an_hour_ago(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let pushed rows arrive an hour before the run reads them; that moment."""
    moment = time.time_ns() // 1_000 - 3600 * SECOND
    monkeypatch.setattr(time, "time_ns", lambda: moment * 1_000)
    return moment


def now() -> int:
    return int(datetime.now(UTC).timestamp() * SECOND)


@pytest.mark.parametrize("feed", ["pushed", "generator"])
def test_an_update_queue_chooses_among_all_single_rows_that_are_there(feed: str) -> None:
    source = pushed(*single_rows(500)) if feed == "pushed" else single_rows(500)
    run, report = until_end(UPDATES, source)
    assert report.sources["s"].received == 500
    # A generator is read for a moment of the clock at most: on a busy machine those are few rows.
    least = 450 if feed == "pushed" else 0
    assert report.queues["q"].superseded > least, "one row per turn would have superseded none"
    assert run.answers.of("q").row(0) == {"k": 0, "v": 499}


def test_latency_and_staleness_count_from_the_push(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = an_hour_ago(monkeypatch)
    source = pushed(*single_rows(3))
    monkeypatch.undo()
    run, report = until_end(UPDATES, source)
    assert now() - moment >= run.metrics().sinks["q"].latency.max >= 3600 * SECOND
    assert report.queues["q"].application_mean > 1000 * SECOND


def test_the_internal_time_of_a_row_is_when_it_was_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = an_hour_ago(monkeypatch)
    source = pushed({"v": 1}, [{"v": 2}, {"v": 3}])
    monkeypatch.undo()
    stream = "CREATE STREAM s (v INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM iterable;"
    run, _ = until_end(stream + "CREATE QUERY q AS SELECT ts FROM s;", source)
    times = pa.concat_tables(run.memory["q"]).column("ts").cast(pa.int64()).to_pylist()
    assert times == [moment] * 3


def test_arrivals_do_not_go_back_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    source, clock = mr.Pushed(), iter([9_000, 5_000, 11_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    for number in range(3):
        source.push({"v": number})
    assert [at for at, _ in source.take("s", lambda: 0, 9)] == [9, 9, 11]


def test_all_forms_of_rows_are_taken_together_in_order() -> None:
    schema = pa.schema([("v", pa.int32())])
    table = pa.table({"v": [3, 4], "other": ["x", "y"]})
    items = [(1, {"v": 1}), (2, [{"v": 2}]), (3, table), (4, []), (5, table.to_batches()[0]), (6, {"v": 5})]
    chunk = push_pull.merged(items, schema, "s")
    assert chunk.rows.column("v").to_pylist() == [1, 2, 3, 4, 3, 4, 5]
    assert chunk.arrived is not None and chunk.arrived.tolist() == [1, 2, 3, 3, 5, 5, 6]


def test_rows_before_one_that_does_not_fit_are_processed() -> None:
    wrong = row(5, k=0, v="many")
    run = LocalRun(parse_network(UPDATES), feeds={"s": pushed(*single_rows(5), wrong, *single_rows(3))})
    with pytest.raises(RunError, match='stream "s" was fed rows that do not fit'):
        run.run()
    assert run.report().sources["s"].received == 5


@pytest.mark.parametrize("ends", [False, True])
def test_a_push_wakes_a_run_that_sleeps(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_POLL", 3600 * SECOND)
    net, source = mr.Network(), mr.Pushed()
    net.stream("s", "k INT, v INT, ts TIMESTAMP", time="ts", update_key="k", source=source)
    net.sql("CREATE QUERY q AS SELECT k, v FROM s")
    handle = net.run(on="local", until="end" if ends else None, background=True, commit_interval="1 hour")
    answers = handle._run.answers.of("q")
    for number in range(3):
        source.push(row(number, k=0, v=number))
        # Not by the handle, which would wake the run.
        wait_for(lambda number=number: answers.row(0) == {"k": 0, "v": number})  # type: ignore[misc]
    if ends:
        source.close()
        handle.wait(300)
    handle.stop()


def test_a_generator_that_waits_does_not_hold_back_the_rows_before() -> None:
    seen: list[int] = []
    run = LocalRun(
        parse_network(UPDATES.replace("UPDATE KEY (k) ", "")),
        feeds={"s": _waiting(seen)},
        listeners=Listeners(results=lambda query, rows: seen.extend(rows.column("v").to_pylist())),
    )
    run.run()
    assert seen == [0, 1, 2, 3, 4]


def _waiting(seen: list[int]) -> Iterator[Any]:
    """Rows that each come when the one before has been answered, after a first wait."""
    time.sleep(0.05)
    for number in range(5):
        yield row(number, k=0, v=number)
        assert seen[number:] == [number]


def test_a_row_that_is_pushed_alone_costs_few_calls() -> None:
    sql = """CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
    CREATE QUERY q AS SELECT v FROM s WHERE v >= 0;"""
    source = mr.Pushed()
    run = LocalRun(parse_network(sql), feeds={"s": source})
    calls, rows, ours = 0, 50, str(Path(mr.__file__).parent)

    def count(frame: FrameType, event: str, of: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(ours)

    for number in range(2 * rows):
        source.push({"v": number, "ts": now()})
        if number == rows:
            sys.setprofile(count)
        while run._turn():
            pass
    sys.setprofile(None)
    assert run.metrics().sinks["q"].rows == 2 * rows
    # 292 of our own functions when this was written; 362 before it, when bookkeeping had made rows a third dearer.
    assert calls / rows < 325


# Commits


def commits(interval: int) -> Report:
    items = [[row(second, k=second, v=second) for second in range(start, start + 2_000)] for start in (0, 2_000, 4_000)]
    options = RunOptions("local", "end", commit_interval=interval)
    return LocalRun(parse_network(UPDATES), options, feeds={"s": items}).run()


def test_the_commit_interval_says_how_often_a_run_commits() -> None:
    assert commits(3600 * SECOND).steps == 1
    assert commits(0).steps > 3


def test_an_epoch_without_work_is_not_committed() -> None:
    reports: list[Report] = []
    options = RunOptions("local", commit_interval=1_000)

    def stop_after_five(report: Report) -> None:
        reports.append(report)
        if len(reports) == 5:
            run.stop()

    listeners = Listeners(progress=stop_after_five)
    run = LocalRun(parse_network(UPDATES), options, feeds={"s": mr.Pushed()}, listeners=listeners)
    run.run()
    assert {report.steps for report in reports[:5]} == {0}


def test_only_the_local_host_has_a_commit_interval() -> None:
    for host in ("spark", "virtual"):
        with pytest.raises(RequestError, match=f"{host} has no commit interval"):
            RunOptions(host, commit_interval=5)  # type: ignore[arg-type]
    net = mr.Network().sql(UPDATES)
    with pytest.raises(RequestError, match="commit_interval is a length of time"):
        net.run(on="local", commit_interval="soon")


def test_the_command_line_sets_the_commit_interval(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,v,ts\n1,1,1970-01-01 00:00:01\n")
    (tmp_path / "q.sql").write_text(UPDATES.replace("iterable", "csv OPTIONS (path 'in')"))
    found = {}
    for interval in ("1 hour", "0 seconds"):
        ran = millrace(
            "run", "q.sql", "--on", "local", "--until-end", "--json", "--commit-interval", interval, folder=tmp_path
        )
        assert ran.returncode == 0, ran.stderr
        found[interval] = ran.stdout
    assert '"steps": 1' in found["1 hour"] and '"steps": 1' not in found["0 seconds"]
    refused = millrace("run", "q.sql", "--on", "virtual", "--commit-interval", "1 second", folder=tmp_path)
    assert refused.returncode == 2 and "virtual has no commit interval" in refused.stderr
