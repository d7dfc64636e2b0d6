"""kill -9 at any moment, start again on the same checkpoint: the sink holds every row once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.e2e.commands import Started, millrace, wait_for
from tests.e2e.scripts import add_file, expected, project, results

pytestmark = pytest.mark.slow


@contextmanager
def growing(
    folder: Path, first: int, every: float = 0.03, add: Callable[[Path, int], None] = add_file
) -> Iterator[Callable[[], int]]:
    """Files added to the stream's folder all the while; calling it says how many there are."""
    done, count = Event(), [first]

    def grow() -> None:
        # A file is a minute of one day.
        while not done.wait(every) and count[0] < 1_400:
            add(folder, count[0])
            count[0] += 1

    thread = Thread(target=grow)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_local_run_goes_on_and_repeats_nothing(seed: int, tmp_path: Path) -> None:
    moments = random.Random(seed)
    script = project(tmp_path)
    run = ["run", script, "--on", "local", "--checkpoint", "state"]
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
