"""kill -9 at any moment, start again on the same checkpoint: the sinks hold every window, pair and single row once."""

from __future__ import annotations

import csv
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.e2e.commands import Started, millrace, wait_for
from tests.e2e.scripts import SCRIPT, add_file, expected, project, results

pytestmark = pytest.mark.slow

JOINS = """
CREATE SINK next TO csv OPTIONS (path 'next');
CREATE SINK latest TO csv OPTIONS (path 'latest');
CREATE QUERY followed INTO next AS
  SELECT x.ts AS at, x.k, y.v FROM links AS x LEFT JOIN links AS y
  ON x.k = y.k AND y.ts BETWEEN x.ts + INTERVAL 1 SECOND AND x.ts + INTERVAL 1 MINUTE;
CREATE QUERY before INTO latest AS
  SELECT y.ts AS at, y.k, x.v FROM links AS y ASOF LEFT JOIN links AS x ON x.ts < y.ts AND x.k = y.k;
"""


@contextmanager
def growing(
    folder: Path, first: int, every: float = 0.1, add: Callable[[Path, int], None] = add_file, most: int = 1_400
) -> Iterator[Callable[[], int]]:
    """Files added to the stream's folder all the while, up to `most`; calling it says how many there are."""
    done, count = Event(), [first]

    def grow() -> None:
        # A file is a minute of one day.
        while not done.wait(every) and count[0] < most:
            add(folder, count[0])
            count[0] += 1

    thread = Thread(target=grow)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_killed_local_run_goes_on_and_repeats_nothing(seed: int, tmp_path: Path) -> None:
    moments = random.Random(seed)
    run = ["run", project(tmp_path, SCRIPT + JOINS), "--on", "local", "--checkpoint", "state"]
    current, files = tmp_path / "state" / "current.json", 3
    for kill in range(4):
        before = saved_at(current)
        with growing(tmp_path, files) as count, Started(*run, folder=tmp_path):
            wait_for(lambda before=before: saved_at(current) != before)
            # Sometimes right after a commit, between it and the publishing of its results; sometimes well after.
            time.sleep(0 if kill % 2 else moments.uniform(0, 1.2))
        files = count()
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert results(tmp_path) == expected(files)
    assert joined(tmp_path / "next") == neighbours(files, 1)
    assert joined(tmp_path / "latest") == neighbours(files, -1)


def joined(folder: Path) -> list[tuple[str, ...]]:
    """All rows of a sink, sorted: minute, key, value of the other row."""
    rows: list[list[str]] = []
    for path in folder.glob("part-*"):
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


def saved_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.long
@pytest.mark.spark
def test_a_killed_spark_run_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    script = project(tmp_path, files=4)
    run = ["run", script, "--master", "local[2]", "--checkpoint", "state"]
    files = 4
    for pause in (0.0, 0.15):
        seen = committed(tmp_path)
        with Started(*run, "--trigger", "100 milliseconds", folder=tmp_path):
            # A file a batch; the record is the sink's last act, and Spark has yet to write its own.
            wait_for(lambda seen=seen: len(committed(tmp_path) - seen) >= 2)
            time.sleep(pause)
        add_file(tmp_path, files)
        files += 1
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert results(tmp_path) == expected(files)


def committed(folder: Path) -> set[str]:
    return {path.name for path in (folder / "state" / "commits").glob("*.json")}
