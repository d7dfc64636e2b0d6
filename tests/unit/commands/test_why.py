"""Why there are no results yet, asked from outside: of records, of a run that listens, or of nobody."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from millrace.commands.command_line import main
from millrace.commands.why import why
from millrace.errors import RequestError, RunError
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.why.lag import Lag
from millrace.hosts.why.waits import Awaited, StreamLag, Wait
from millrace.language import bind_changes, parse_network
from tests.background import running
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import SECOND, Fed, row

STREAM = "CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
SQL = STREAM + "CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];"


def stalled(now: int) -> Lag:
    stream = StreamLag(5 * SECOND, now - 40 * SECOND, 5 * SECOND, now - 40 * SECOND, "external", "ordered")
    return Lag(
        now, True, {"s": stream}, {"q": Wait(3, (Awaited("s", "", 10 * SECOND, 5 * SECOND, now - 40 * SECOND),))}
    )


def test_a_record_tells_of_a_run_alive_or_dead_and_how_old_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time_ns() // 1_000 - 3_600 * SECOND
    CommitLog(tmp_path / "commits").write(17, {"batch": 17, "now": now, "lag": stalled(now).data()})
    assert main(["why", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("as of micro-batch 17, 1 h")
    assert (
        lines[1] == 'q waits for stream "s", whose bound has stood at 1970-01-01 00:00:05 for 40 s, last heard 40 s ago'
    )
    assert lines[2] == "  3 rows are held"
    assert main(["why", str(tmp_path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["batch"], round(data["age_seconds"]) // 60) == (17, 60)
    assert data["waits"]["q"]["awaited"][0]["stream"] == "s"


def test_a_record_without_the_facts_is_refused(tmp_path: Path) -> None:
    CommitLog(tmp_path / "commits").write(0, {"batch": 0, "now": 1})
    with pytest.raises(RunError, match="does not say what holds it back"):
        why(tmp_path, 1)


def test_where_nobody_listens_and_nothing_is_recorded_the_request_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "no run listens in" in said and "none on Spark has left a record there" in said
    assert "hint: Name the --checkpoint folder of a run on Spark" in said
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("asked", ["control", "."])
def test_a_local_run_that_listens_is_asked_itself(tmp_path: Path, asked: str) -> None:
    feed, changes = Fed(), LiveChanges(parse_network(SQL), SQL, bind_changes)
    run = LocalRun(
        changes.network, RunOptions("local", control=tmp_path / "control"), feeds={"s": feed}, changes=changes
    )
    with running(run):
        assert str(why(tmp_path / asked, 10)).splitlines()[0] == "nothing waits"
        feed.tell(row(1, k="x"), row(3, k="y"))
        wait_for(lambda: why(tmp_path / asked, 10).lag.waits)
        found = why(tmp_path / asked, 10)
        assert 'q waits for stream "s", whose bound has stood at 1970-01-01 00:00:03 for' in str(found)
        assert "batch" not in found.data()
        assert run.changes.history == [], "to ask is no change"
    with pytest.raises(RequestError, match="no run listens in"):
        why(tmp_path / asked, 1)
