"""kill -9 of a run with two levels, start again on the same checkpoint: the sink holds every row once."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from tests.e2e.commands import Started, millrace_process, wait_for
from tests.e2e.scripts import HEAD

pytestmark = [pytest.mark.long, pytest.mark.spark]

SCRIPT = """
CREATE STREAM links (k STRING, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK counts TO csv OPTIONS (path 'out');
CREATE QUERY spread INTO counts AS
  SELECT window_start, n, count(*) AS links
  FROM (SELECT k, count(*) AS n FROM links [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k)
  GROUP BY window_start, n;
"""


def add_minute(folder: Path, number: int) -> None:
    """A file in which three links each send once, twice and three times."""
    lines = [HEAD, *(f"k{link},1,2024-01-01 00:{number:02d}:10" for link in range(1, 10) for _ in range(link % 3 + 1))]
    hidden = folder / "in" / f".{number:04d}.csv"
    hidden.write_text("\n".join(lines) + "\n")
    hidden.replace(folder / "in" / f"{number:04d}.csv")


def results(folder: Path) -> list[tuple[str, str, str]]:
    rows = [row for path in sorted((folder / "out").glob("part-*")) for row in csv.DictReader(path.open())]
    return sorted((row["window_start"][11:16], row["n"], row["links"]) for row in rows)


def committed(folder: Path) -> set[str]:
    return {path.name for path in (folder / "state" / "commits").glob("*.json")}


def test_a_killed_run_with_two_levels_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    script = tmp_path / "spread.sql"
    script.write_text(SCRIPT)
    files = 5
    for number in range(files):
        add_minute(tmp_path, number)
    run = ["run", script, "--master", "local[2]", "--checkpoint", "state"]
    for pause in (0.0, 0.3):
        seen = committed(tmp_path)
        with Started(*run, "--trigger", "100 milliseconds", folder=tmp_path):
            # The record is the sink's last act, and Spark has yet to write its own.
            wait_for(lambda seen=seen: len(committed(tmp_path) - seen) >= 2)
            time.sleep(pause)
        add_minute(tmp_path, files)
        files += 1
    ended = millrace_process(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert results(tmp_path) == sorted((f"00:{number:02d}", str(n), "3") for number in range(files) for n in (1, 2, 3))
