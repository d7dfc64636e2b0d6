"""kill -9 around a change of a running network: it was made whole or not at all, and each result appears once."""

from __future__ import annotations

import csv
import random
import time
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from millrace.errors import RequestError, RunError
from millrace.hosts.control.request_folder import ask
from tests.crash.kills import Kill, killing
from tests.crash.test_kill import growing
from tests.e2e.commands import Started, absolute, millrace, wait_for
from tests.e2e.scripts import expected, project, results

pytestmark = pytest.mark.slow

ADD = """CREATE SINK {0}_sink TO csv OPTIONS (path '{1}/{0}');
ADD QUERY {0} INTO {0}_sink AS SELECT window, sum(v) AS total FROM links [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];"""


class Asking(Thread):
    """A change that is asked for while the run may die; `done` is True once it has been confirmed."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__()
        self.folder, self.text, self.done = folder, text, False
        self.start()

    def run(self) -> None:
        try:
            ask(self.folder / "state", self.text, timeout=30)
            self.done = True
        except (RequestError, RunError):
            pass


def running(folder: Path) -> dict[str, int | None]:
    """The queries of the run, as soon as it listens, with their starts."""
    found: list[dict[str, Any]] = []

    def listens() -> bool:
        try:
            found[:] = ask(folder / "state", "SHOW QUERIES", timeout=30)
        except (RequestError, RunError):
            return False
        return True

    wait_for(listens)
    return {each["query"]: each["since_microseconds"] for each in found}


def totals(folder: Path, query: str) -> list[tuple[str, int]]:
    """All rows of an added query, sorted: minute and total."""
    rows: list[dict[str, str]] = []
    for path in sorted((folder / query).glob("part-*")):
        with path.open() as file:
            rows += csv.DictReader(file)
    return sorted((row["window_start"][11:16], int(row["total"])) for row in rows)


def totals_since(start: int, files: int) -> list[tuple[str, int]]:
    """What an added query answers after so many files: two rows a minute, less those before its start."""
    midnight = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    found = []
    for number in range(files):
        begin = midnight + 60 * number
        values = [value for second, value in ((10, number), (30, 1)) if (begin + second) * 1e6 >= start]
        if values:
            found.append((f"{number // 60:02d}:{number % 60:02d}", sum(values)))
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_a_change_is_made_whole_or_not_at_all(seed: int, tmp_path: Path) -> None:
    moments = random.Random(seed)
    run: list[object] = ["run", project(tmp_path), "--on", "local", "--checkpoint", "state"]
    files, starts, confirmed, dropped = 3, dict[str, int](), set[str](), set[str]()
    takes = 0.0
    for kill in range(4):
        with growing(tmp_path, files) as count, Started(*run, folder=tmp_path):
            now = running(tmp_path)
            assert confirmed <= set(now) and not dropped & set(now), "what was confirmed lasts"
            starts |= {name: start for name, start in now.items() if start is not None}
            asked, added = time.monotonic(), Asking(tmp_path, ADD.format(f"totals_{kill}", tmp_path))
            if not kill:
                # The first change is waited for: the later kills fall within the time that one takes here and now.
                added.join()
                assert added.done, "a change is made"
                takes = time.monotonic() - asked
            time.sleep(moments.uniform(0, takes))
            victim = min(set(now) - {"per_minute"}, default=None) if kill % 2 else None
            leaving = Asking(tmp_path, f"DROP QUERY {victim}") if victim else None
            time.sleep(moments.uniform(0, takes))
        added.join()
        confirmed |= {f"totals_{kill}"} if added.done else set()
        if leaving is not None and victim is not None:
            leaving.join()
            confirmed.discard(victim)
            dropped |= {victim} if leaving.done else set()
        files = count()
    with Started(*run, folder=tmp_path):
        last = running(tmp_path)
    starts |= {name: start for name, start in last.items() if start is not None}
    check(run, tmp_path, files, starts, last)


def check(run: list[object], folder: Path, files: int, starts: dict[str, int], last: Container[str]) -> None:
    """Run to the end, and hold that all queries have answered, each once."""
    ended = millrace(*run, "--until-end", folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert results(folder) == expected(files)
    check_added(folder, files, starts, last)


def check_added(folder: Path, files: int, starts: dict[str, int], last: Container[str]) -> None:
    """Hold that the queries that were added have answered for the rows since their start, each once."""
    assert starts, "some change was made"
    for name, start in starts.items():
        answer, found = totals_since(start, files), totals(folder, name)
        assert found == (answer if name in last else answer[: len(found)]), name


RECORD, PLAN = (
    "millrace.hosts.spark.commit_log.checkpoint_manifest:CheckpointManifest.write",
    "millrace.hosts.spark.commit_log.plan_log:PlanLog.write",
)
POINTS = {
    # A start comes to each of these points once, and the change a second time.
    "before": Kill(RECORD, call=2),
    "between": Kill(PLAN, call=2),
    "after": Kill(PLAN, "after", call=2),
}


def newest(folder: Path) -> str:
    """The record of the last micro-batch on Spark."""
    return max((path.name for path in (folder / "state" / "commits").glob("*.json")), default="")


def killed_in_a_change(kill: Kill, query: str, run: list[object], folder: Path, files: int) -> int:
    """Add a query to a run on Spark that is killed there; how many files there are then."""
    before = newest(folder)
    with (
        growing(folder, files, every=2.0, most=files + 5) as count,
        killing(kill) as struck,
        Started(*run, "--trigger", "100 milliseconds", folder=folder) as started,
    ):
        # Once rows have been read a query that is added has a start.
        wait_for(lambda: newest(folder) > before)
        running(folder)
        added = Asking(folder, ADD.format(query, folder))
        added.join()
        said = "" if started.process.poll() is None else started.process.communicate()[1]
    assert struck() and not added.done, said
    return count()


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
@pytest.mark.parametrize("points", [("between",), pytest.param(tuple(POINTS), marks=pytest.mark.long)])
def test_a_change_is_made_from_its_record_on_on_spark(points: tuple[str, ...], tmp_path: Path) -> None:
    run: list[object] = ["run", absolute(project(tmp_path)), "--master", "local[2]", "--checkpoint", "state"]
    files, added = 3, {f"totals_{name}" for name in points if name != "before"}
    for name in points:
        files = killed_in_a_change(POINTS[name], f"totals_{name}", run, tmp_path, files)
    with ThreadPoolExecutor() as beside:
        asked = beside.submit(running, tmp_path)
        ended = millrace(*run, "--until-end", folder=tmp_path)
        last = asked.result()
    assert ended.returncode == 0, ended.stderr
    assert set(last) == {"per_minute", *added}
    assert results(tmp_path) == expected(files)
    check_added(tmp_path, files, {name: start for name, start in last.items() if start is not None}, last)
