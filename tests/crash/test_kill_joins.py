"""kill -9 in the middle of joins, start again on the same checkpoint: every pair and every single row once."""

from __future__ import annotations

import csv
import random
import time
from pathlib import Path

import pytest

from tests.crash.test_kill import growing, saved_at
from tests.e2e.commands import Started, millrace, wait_for
from tests.e2e.scripts import project

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM links (k STRING, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK next TO csv OPTIONS (path 'out/next');
CREATE SINK latest TO csv OPTIONS (path 'out/latest');
CREATE QUERY followed INTO next AS
  SELECT x.ts AS at, x.k, y.v FROM links AS x LEFT JOIN links AS y
  ON x.k = y.k AND y.ts BETWEEN x.ts + INTERVAL 1 SECOND AND x.ts + INTERVAL 1 MINUTE;
CREATE QUERY before INTO latest AS
  SELECT y.ts AS at, y.k, x.v FROM links AS y ASOF LEFT JOIN links AS x ON x.ts < y.ts AND x.k = y.k;
"""


def test_a_killed_run_of_joins_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    moments = random.Random(3)
    run = ["run", project(tmp_path, SCRIPT), "--on", "local", "--checkpoint", "state"]
    current, files = tmp_path / "state" / "current.json", 3
    for kill in range(3):
        before = saved_at(current)
        with growing(tmp_path, files) as count, Started(*run, folder=tmp_path):
            wait_for(lambda before=before: saved_at(current) != before)
            time.sleep(0 if kill % 2 else moments.uniform(0, 1.2))
        files = count()
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert written(tmp_path, "next") == neighbours(files, 1)
    assert written(tmp_path, "latest") == neighbours(files, -1)


def written(folder: Path, sink: str) -> list[tuple[str, ...]]:
    """All rows of a sink, sorted: minute, key, value of the other row."""
    rows: list[list[str]] = []
    for path in (folder / "out" / sink).glob("part-*"):
        with path.open() as file:
            rows += list(csv.reader(file))[1:]
    return sorted((at[11:16], key, value) for at, key, value in rows)


def neighbours(files: int, step: int) -> list[tuple[str, ...]]:
    """Each row with the value of the row a minute after or before it, if there is one: a has the number of its file."""
    return sorted(
        (f"{number // 60:02d}:{number % 60:02d}", key, value if 0 <= number + step < files else "")
        for number in range(files)
        for key, value in (("a", str(number + step)), ("b", "1"))
    )
