"""kill -9 while rows wait in a queue of updates: the last value of every key is exact, and no key goes back."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest

from tests.crash.test_kill import growing
from tests.e2e.commands import Started, millrace, wait_for

pytestmark = pytest.mark.slow

KEYS = 1000
SCRIPT = """
CREATE STREAM prices (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k)
  FROM csv OPTIONS (path 'in');
CREATE SINK answers TO csv OPTIONS (path 'out');
CREATE QUERY doubled WITH (queue = 'inplace', budget = '1 rows') INTO answers AS
  SELECT k, v * 2 AS v FROM prices WHERE v >= 0;
"""


def add_file(folder: Path, number: int) -> None:
    """An update of every key, all at one second."""
    at = f"2024-01-01 00:{number // 60:02d}:{number % 60:02d}"
    lines = [f"{key},{number * KEYS + key},{at}" for key in range(KEYS)]
    hidden = folder / "in" / f".{number:04d}.csv"
    hidden.write_text("\n".join(["k,v,ts", *lines]) + "\n")
    hidden.replace(folder / "in" / f"{number:04d}.csv")


def latest(folder: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for path in sorted((folder / "out").glob("part-*")):
        with path.open() as file:
            for row in csv.DictReader(file):
                key, value = int(row["k"]), int(row["v"])
                assert value > found.get(key, -1), "a key goes back, or an answer is given twice"
                found[key] = value
    return found


def waiting(current: Path) -> int:
    """How many rows wait in the queue that a checkpoint holds."""
    notes = json.loads(current.read_text())["control"]["notes"]
    (counts,) = next(note["counts"] for name, note in notes.items() if name.startswith("update_queue"))
    return int(counts[0] - sum(counts[1:]))


def wait_for_save(path: Path, before: int) -> None:
    wait_for(lambda: saved_at(path) != before)


def saved_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def test_a_killed_run_loses_nothing_that_waited_in_its_queue(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "script.sql").write_text(SCRIPT)
    run = ["run", "script.sql", "--on", "local", "--checkpoint", "state"]
    current, files, held = tmp_path / "state" / "current.json", 0, []
    for kill in range(3):
        before = saved_at(current)
        with growing(tmp_path, files, every=0.05, add=add_file) as count, Started(*run, folder=tmp_path):
            wait_for_save(current, before)
            time.sleep(0.3 * kill)
        files = count()
        held.append(waiting(current))
    assert min(held) > 0, "a checkpoint of a run that is behind holds rows"
    ended = millrace(*run, "--until-end", "--json", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert latest(tmp_path) == {key: ((files - 1) * KEYS + key) * 2 for key in range(KEYS)}
    summary = json.loads(ended.stdout.splitlines()[-1])["summary"]
    source, queue = summary["sources"]["prices"], summary["queues"]["doubled"]
    assert source["received"] == files * KEYS == source["processed"] + source["superseded"]
    assert (queue["let_go"], queue["waiting"]) == (source["processed"], 0)
    answers = sum(len(path.read_text().splitlines()) - 1 for path in (tmp_path / "out").glob("part-*"))
    assert answers == source["processed"]
