"""A script with several kinds of windows from the command line: its files, its late rows, and its refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, chatter, check_refused, millrace

pytestmark = pytest.mark.slow

STREAM = """
CREATE STREAM clicks (client STRING, page STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS LATE INTO too_late
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
"""
SCRIPT = f"""{STREAM}
CREATE SINK too_late TO csv OPTIONS (path 'out/too_late');
CREATE SINK visits TO csv OPTIONS (path 'out/visits');
CREATE SINK fours TO csv OPTIONS (path 'out/fours');
CREATE SINK busiest TO csv OPTIONS (path 'out/busiest');
CREATE QUERY visited INTO visits AS
  SELECT window, client, count(*) AS n, last(page) AS left_at FROM clicks [SESSION 30 SECONDS] GROUP BY client;
CREATE QUERY by_fours INTO fours AS SELECT window, count(DISTINCT client) AS clients FROM clicks [ROWS 4 SLIDE 4];
CREATE QUERY most INTO busiest AS
  SELECT window_start, max(n) AS most, count(*) AS pages
  FROM (SELECT window, page, count(*) AS n FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY page) AS per_page
  GROUP BY window_start, window_end;
"""
FILES = [
    ["ann,home,12:00:00", "ben,home,12:00:10", "ann,news,12:00:20", "ann,home,12:00:25"],
    ["ben,news,12:00:24", "ann,news,12:01:00", "ben,home,12:00:31", "ben,home,12:01:05"],
    ["ann,home,12:01:29", "ben,late,12:01:00"],
]
EXPECTED = {
    # Ben's click of 12:00:31 came when 12:01:00 had been seen, his last one when 12:01:29 had.
    "too_late": [("ben", "home", "12:00:31"), ("ben", "late", "12:01:00")],
    # Ann's click of 12:01:00 comes 35 seconds after the one before it, Ben's of 12:01:05 comes 41 seconds after.
    "visits": [
        ("12:00:00", "12:00:55", "ann", "3", "home"),
        ("12:00:10", "12:00:54", "ben", "2", "news"),
        ("12:01:00", "12:01:59", "ann", "2", "home"),
        ("12:01:05", "12:01:35", "ben", "1", "home"),
    ],
    # The rows that were let in, in order of arrival: ann ben ann ann, ben ann ben ann.
    "fours": [("0", "4", "2"), ("4", "8", "2")],
    # 12:00 has home 3 times and news twice; 12:01 has news once and home twice.
    "busiest": [("12:00:00", "3", "2"), ("12:01:00", "2", "2")],
}


def project(folder: Path, script: str) -> Path:
    (folder / "in").mkdir()
    for number, rows in enumerate(FILES):
        lines = [f"{client},{page},2024-01-01 {clock}" for client, page, clock in (row.split(",") for row in rows)]
        (folder / "in" / f"{number}.csv").write_text("\n".join(["client,page,ts", *lines]) + "\n")
    path = folder / "clicks.sql"
    path.write_text(script)
    return path


def written(folder: Path, sink: str) -> list[tuple[str, ...]]:
    """The rows of a sink in order, their times as clocks."""
    rows: list[list[str]] = []
    for path in sorted((folder / "out" / sink).glob("part-*")):
        with path.open() as file:
            rows += list(csv.reader(file))[1:]
    return sorted(tuple(value[11:19] if value.startswith("2024-") else value for value in row) for row in rows)


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_run_writes_sessions_counted_windows_nested_aggregates_and_late_rows(
    host: str, run_on: RunOn, tmp_path: Path
) -> None:
    ran = run_on(host, project(tmp_path, SCRIPT), "--until-end", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert chatter(ran.stderr) == []
    assert {sink: written(tmp_path, sink) for sink in EXPECTED} == EXPECTED
    assert "clicks: 10 rows" in ran.stderr
    assert "2 late" in ran.stderr


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_run_that_goes_on_from_its_checkpoint_writes_the_same(host: str, run_on: RunOn, tmp_path: Path) -> None:
    script = project(tmp_path, SCRIPT)
    later = [tmp_path / "in" / "1.csv", tmp_path / "in" / "2.csv"]
    kept = [path.read_text() for path in later]
    for path in later:
        path.unlink()
    run = [host, script, "--checkpoint", "state"]
    first = run_on(*run, "--available-now", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert written(tmp_path, "fours") == EXPECTED["fours"][:1], "four rows have come"
    assert written(tmp_path, "visits") == []
    for path, text in zip(later, kept, strict=True):
        path.write_text(text)
    second = run_on(*run, "--until-end", folder=tmp_path)
    assert second.returncode == 0, second.stderr
    assert {sink: written(tmp_path, sink) for sink in EXPECTED} == EXPECTED


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT client, count(*) FROM clicks [RANGE UNLIMITED PRECEDING] GROUP BY client", "state_limit"),
        ("SELECT client, count(*) FROM clicks GROUP BY client", "RANGE"),
        ("SELECT DISTINCT client FROM clicks", "RANGE"),
        ("SELECT count(*) FROM clicks [ROWS 0 SLIDE 1]", "ROWS"),
        ("SELECT page, count(*) FROM clicks [ROWS 3 PARTITION BY client] GROUP BY page", "PARTITION BY"),
        ("SELECT count(*) FROM clicks [SESSION 0 SECONDS]", "0"),
        ("SELECT approx_percentile(length(page), 2) FROM clicks [SESSION 1 MINUTE]", "0"),
        ("SELECT count(*) FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE WA page]", "page"),
        ("SELECT count(*) AS n FROM clicks [SESSION 1 MINUTE] WITH (flush = 'sometimes')", "flush"),
    ],
)
def test_a_wrong_request_is_refused_with_what_to_do(query: str, said: str, tmp_path: Path) -> None:
    check_refused(project(tmp_path, f"{STREAM}CREATE QUERY q AS {query};"), said)


def test_a_run_fails_when_more_groups_are_held_than_it_was_told(tmp_path: Path) -> None:
    query = "SELECT window, client, count(*) AS n FROM clicks [RANGE UNLIMITED PRECEDING] GROUP BY client"
    script = project(tmp_path, f"{STREAM}CREATE QUERY q AS {query} WITH (state_limit = 1);")
    ran = millrace("run", script, "--on", "local", "--until-end", folder=tmp_path)
    assert ran.returncode == 1
    assert "more than 1 group" in ran.stderr
    assert "state_limit" in ran.stderr
    assert "Traceback" not in ran.stderr
