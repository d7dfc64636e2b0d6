"""A script of joins from the command line: pairs, rows without a partner, the row in force, and refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, chatter, check_refused, millrace

pytestmark = pytest.mark.slow

STREAMS = """
CREATE STREAM calls (client STRING, id INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'calls', max_files_per_trigger '1');
CREATE STREAM answers (client STRING, said STRING, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'answers', max_files_per_trigger '1');
"""
SCRIPT = f"""{STREAMS}
CREATE SINK pairs TO csv OPTIONS (path 'out/pairs');
CREATE SINK alone TO csv OPTIONS (path 'out/alone');
CREATE SINK latest TO csv OPTIONS (path 'out/latest');
CREATE SINK turns TO csv OPTIONS (path 'out/turns');
CREATE QUERY paired INTO pairs AS
  SELECT c.id, a.said FROM calls AS c JOIN answers AS a
  ON c.client = a.client AND a.ts BETWEEN c.ts AND c.ts + INTERVAL 10 SECONDS;
CREATE QUERY unanswered INTO alone AS
  SELECT c.id FROM calls AS c LEFT JOIN answers AS a
  ON c.client = a.client AND a.ts BETWEEN c.ts AND c.ts + INTERVAL 10 SECONDS WHERE a.said IS NULL;
CREATE QUERY last_call INTO latest AS
  SELECT a.said, c.id FROM answers AS a ASOF JOIN calls AS c ON c.ts <= a.ts AND c.client = a.client;
CREATE QUERY one_by_one INTO turns AS
  SELECT c.id, a.said FROM calls AS c SEQ answers AS a MODE CHRONICLE WITHIN INTERVAL 30 SECONDS
  WHERE c.client = a.client;
"""
FILES = {
    "calls": [
        ["client,id,ts", "ann,1,12:00:00", "ben,2,12:00:02", "ann,3,12:00:06"],
        ["client,id,ts", ",4,12:00:08", "ben,5,12:00:20", "ann,6,12:00:17"],
        ["client,id,ts", "ann,7,12:00:50"],
    ],
    "answers": [
        ["client,said,ts", "ann,yes,12:00:06", "ben,no,12:00:13"],
        ["client,said,ts", "ann,why,12:00:10", ",what,12:00:09", "ben,oh,12:00:21"],
        ["client,said,ts", "ann,so,12:00:27", "ann,bye,12:01:30"],
    ],
}
EXPECTED = {
    # Ben's first answer comes 11 seconds after his first call.
    "pairs": [("1", "why"), ("1", "yes"), ("3", "why"), ("3", "yes"), ("5", "oh"), ("6", "so")],
    "alone": [("2",), ("4",), ("7",)],
    "latest": [("bye", "7"), ("no", "2"), ("oh", "5"), ("so", "6"), ("why", "3"), ("yes", "3")],
    # Ann's last answer comes 40 seconds after her last call.
    "turns": [("1", "yes"), ("2", "no"), ("3", "why"), ("5", "oh"), ("6", "so")],
}


def project(folder: Path, script: str, files: int = 3) -> Path:
    for stream in FILES:
        (folder / stream).mkdir()
        for number in range(files):
            add_file(folder, stream, number)
    path = folder / "calls.sql"
    path.write_text(script)
    return path


def add_file(folder: Path, stream: str, number: int) -> None:
    head, *rows = FILES[stream][number]
    lines = [f"{client},{value},2024-01-01 {clock}" for client, value, clock in (row.split(",") for row in rows)]
    (folder / stream / f"{number}.csv").write_text("\n".join([head, *lines]) + "\n")


def written(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """The rows of every sink in order."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for sink in EXPECTED:
        found[sink] = []
        for path in (folder / "out" / sink).glob("part-*"):
            with path.open() as file:
                found[sink] += [tuple(row) for row in list(csv.reader(file))[1:]]
    return {sink: sorted(rows) for sink, rows in found.items()}


@pytest.mark.parametrize("host", ["virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_run_writes_what_belongs_together(host: str, run_on: RunOn, tmp_path: Path) -> None:
    ran = run_on(host, project(tmp_path, SCRIPT), "--until-end", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert chatter(ran.stderr) == []
    assert written(tmp_path) == EXPECTED


def test_a_run_that_goes_on_from_its_checkpoint_writes_the_same(tmp_path: Path) -> None:
    run = ["run", project(tmp_path, SCRIPT, files=2), "--on", "local", "--checkpoint", "state"]
    first = millrace(*run, "--available-now", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    early = written(tmp_path)
    assert early["pairs"] == EXPECTED["pairs"][:-1], "a pair is given as soon as both rows are there"
    # Answers have come up to 12:00:21, and may trail by five seconds; that call 4 has no client is known at once.
    assert early["alone"] == [("2",), ("4",)]
    for stream in FILES:
        add_file(tmp_path, stream, 2)
    second = millrace(*run, "--until-end", folder=tmp_path)
    assert second.returncode == 0, second.stderr
    assert written(tmp_path) == EXPECTED


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT c.id, a.said FROM calls AS c JOIN answers AS a ON c.client = a.client", "RANGE"),
        ("SELECT c.id, a.said FROM calls AS c JOIN answers AS a ON c.ts <= a.ts", "answers"),
        ("SELECT client FROM calls AS c, answers AS a WHERE c.client = a.client WINDOW 1 MINUTE", "c.client"),
        ("SELECT * FROM calls SEQ answers MODE CHRONICLE", "WITHIN"),
        ("SELECT c.id FROM calls AS c ASOF JOIN answers AS a ON a.ts >= c.ts", "ASOF"),
    ],
)
def test_a_join_that_would_keep_rows_for_ever_is_refused_with_what_to_do(query: str, said: str, tmp_path: Path) -> None:
    check_refused(project(tmp_path, f"{STREAMS}CREATE QUERY q AS {query};"), said)
