"""`--log json` from outside: standard error is a log for programs, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import RunOn, Started, millrace, wait_for

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'a', on_malformed 'skip');
CREATE QUERY counts AS SELECT k, count(*) AS n FROM a [RANGE 1 SECOND SLIDE 1 SECOND WA ts] GROUP BY k;
"""
ROWS = ["1,2024-01-01 00:00:01", "1,2024-01-01 00:00:09", "2,2024-01-01 00:00:02", "x,"]


def project(folder: Path) -> str:
    (folder / "a").mkdir()
    (folder / "a" / "1.csv").write_text("\n".join(["k,ts", *ROWS]) + "\n")
    (folder / "counts.sql").write_text(SCRIPT)
    return "counts.sql"


def events(said: str) -> list[dict[str, Any]]:
    """Every line of standard error, which must be an object with the common fields."""
    found = [json.loads(line) for line in said.splitlines()]
    for each in found:
        assert list(each)[:3] == ["time", "level", "event"]
        assert each["time"].endswith("Z")
        assert abs((datetime.now(UTC) - datetime.fromisoformat(each["time"])).total_seconds()) < 600
    return found


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_run_tells_its_start_its_rows_and_its_end(host: str, tmp_path: Path, run_on: RunOn) -> None:
    ran = run_on(host, project(tmp_path), "--until-end", "--log", "json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 4, "a title, a head and two results"
    found = events(ran.stderr)
    names = [each["event"] for each in found]
    assert names[:2] == ["start", "source"] and names[-1] == "end"
    assert found[0]["host"] == host and found[0]["queries"] == ["counts"]
    assert (found[1]["stream"], found[1]["format"]) == ("a", "csv")
    assert "disorder 1 SECOND" in found[1]["contract"]
    fates = {each["event"]: (each["level"], each["stream"], each["total"]) for each in found if "total" in each}
    assert fates == {"late": ("warning", "a", 1), "quarantined": ("warning", "a", 1)}
    commits = [each for each in found if each["event"] == "commit"]
    if host != "virtual":
        assert sum(each["rows"] for each in commits) == len(ROWS)
        assert sum(each["results"].get("counts", 0) for each in commits) == 2
    assert found[-1]["results"] == {"counts": 2} and found[-1]["sources"]["a"]["received"] == len(ROWS)


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_host_that_does_not_replay_a_stream_warns(host: str, tmp_path: Path, run_on: RunOn) -> None:
    """Spark takes what is there: `REPLAY BY` has no pace there, and a script for each host says so."""
    script = project(tmp_path)
    (tmp_path / script).write_text(SCRIPT.replace("'skip');", "'skip') REPLAY BY ts SPEED 1000;"))
    ran = run_on(host, script, "--until-end", "--log", "json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    warnings = [each["text"] for each in events(ran.stderr) if each["event"] == "warning"]
    if host == "spark":
        [text] = warnings
        assert text.startswith('stream "a" is not replayed by "ts" on Spark')
    else:
        assert warnings == []


def test_changes_and_the_stop_are_told_while_a_run_works(tmp_path: Path) -> None:
    script = project(tmp_path)
    with Started("run", script, "--on", "local", "--control", "c", "--log", "json", folder=tmp_path) as started:
        wait_for((tmp_path / "c" / "listening").exists)
        asked = "ADD QUERY more AS SELECT k FROM a"
        assert millrace("control", "c", asked, folder=tmp_path).returncode == 0
        assert millrace("control", "c", "DROP QUERY more", folder=tmp_path).returncode == 0
        assert millrace("control", "c", "SHOW QUERIES", folder=tmp_path).returncode == 0
        code, _, said = started.interrupt()
    assert code == 0
    found = events(said)
    changes = [(each["did"], each["name"], each["request"]) for each in found if each["event"] == "change"]
    assert changes == [("added", "more", asked), ("dropped", "more", "DROP QUERY more")]
    assert [each["event"] for each in found if each["event"] in ("stopping", "end")] == ["stopping", "end"]


def test_an_error_is_one_line_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "wrong.sql").write_text(SCRIPT.replace("count(*)", "count(nothing)"))
    refused = millrace("run", "wrong.sql", "--on", "local", "--log", "json", folder=tmp_path)
    (line,) = events(refused.stderr)
    assert refused.returncode == 2
    assert (line["level"], line["event"], line["place"]) == ("error", "error", "line 4, column 40")
    assert '"nothing"' in line["error"] and line["hint"]


def test_a_log_for_people_is_as_before(tmp_path: Path) -> None:
    said = millrace("run", project(tmp_path), "--on", "local", "--until-end", folder=tmp_path).stderr
    assert "4 rows in" in said and "{" not in said
