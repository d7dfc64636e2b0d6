"""kill -9 of a run on Spark at each named point of a micro-batch: every result appears, and appears once.

The kills of one process alone, worker, JVM or driver, run with every test; the others are `long`, for
`test_kill_points.py` holds the same of each point without Spark. All tests share one project and one checkpoint, in
their order: each goes on where the one before it was killed, so that every kill but the first meets a run that has
recovered, and those that strike at once meet one that is recovering. The last run is in the session of all tests.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.kills import Kill, killing
from tests.crash.network import add_minute, expected, project, results
from tests.e2e.commands import Started, absolute, millrace, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the way to the JVM is found in /proc"),
]

READER = "millrace.hosts.spark.source.network_source:NetworkReader"
STAGE = "millrace.hosts.spark.stage.stage:Stage"
WRITER = "millrace.hosts.spark.sink.network_sink:NetworkWriter"
LOG = "millrace.hosts.spark.commit_log.commit_log:CommitLog"

POINTS = {
    "before the offsets are logged": Kill(f"{READER}.latestOffset", call=4),
    "between the offsets and the tasks": Kill(f"{READER}.partitions", call=2),
    "in a reader's task": Kill(f"{READER}.read", "inside", call=3),
    "before a bucket writes its state": Kill(f"{STAGE}._save", call=6),
    "after a bucket of the first level has written its state": Kill(f"{STAGE}._save", "after", call=6),
    "after the last bucket has written its state": Kill(f"{STAGE}._save", "after", call=8),
    "after a task has written results": Kill(f"{WRITER}.write", "after", call=3),
    "before the sink commits": Kill(f"{WRITER}.commit", call=2),
    "between two renames": Kill(f"{WRITER}._publish", "after", call=4),
    "between the renames and the record": Kill(f"{LOG}.write", call=2),
    "after the record, before Spark's own": Kill(f"{LOG}.write", "after", call=2),
    "of the driver alone, while its JVM goes on to commit": Kill(f"{WRITER}.commit", call=2, who="driver"),
    "in recovery, before the batch is read again": Kill(f"{READER}.partitions"),
    "in recovery, before a bucket has its state": Kill(f"{STAGE}._restored"),
    "in recovery, between two renames": Kill(f"{WRITER}._publish", "after"),
    "in recovery, after the record": Kill(f"{LOG}.write", "after"),
}
ALWAYS = ("of the driver alone, while its JVM goes on to commit",)
WORKERS = (
    Kill(f"{READER}.read", "inside", call=2, who="worker"),
    Kill(f"{STAGE}._save", call=5, who="worker"),
    Kill(f"{STAGE}._save", "after", call=12, who="worker"),
    Kill(f"{WRITER}.write", "after", call=8, who="worker"),
)
PATIENCE = 240
"""Seconds: many times what a start takes on a quiet machine."""


@dataclass
class Site:
    """A project that is run, killed and run again."""

    folder: Path
    script: Path
    files: int

    def grow(self, more: int) -> None:
        """Let more minutes arrive."""
        for number in range(self.files, self.files + more):
            add_minute(self.folder, number)
        self.files += more

    def start(self) -> Started:
        """A run that goes on until it is stopped."""
        return Started(*self._run(), "--trigger", "100 milliseconds", folder=self.folder)

    def finish(self) -> None:
        """A run to the end of what is there, in this process."""
        ended = millrace(*self._run(), "--until-end", folder=self.folder)
        assert ended.returncode == 0, ended.stderr

    def _run(self) -> list[object]:
        return ["run", self.script, "--master", "local[2]", "--checkpoint", "state"]

    def committed(self) -> set[str]:
        """The records of batches."""
        return {path.name for path in (self.folder / "state" / "commits").glob("*.json")}

    def check_so_far(self) -> None:
        """Hold that what can be read now is right, and there once."""
        for sink, rows in results(self.folder).items():
            # Windows at the end are still open, and so are those that rows to come belong to.
            assert not rows - expected(self.files)[sink], sink

    def check(self) -> None:
        """Hold that all is there once."""
        assert results(self.folder) == expected(self.files)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("matrix")
    return Site(folder, absolute(project(folder, 2)), 2)


def test_a_run_outlives_its_python_workers_and_says_so_when_its_jvm_dies(site: Site) -> None:
    site.grow(4)
    with killing(*WORKERS) as struck, site.start() as run:
        wait_for(lambda: struck() or run.process.poll() is not None, PATIENCE)
        seen = site.committed()
        site.grow(1)
        wait_for(lambda: site.committed() - seen or run.process.poll() is not None, PATIENCE)
        assert run.process.poll() is None, run.process.communicate()
        os.kill(java_of(run.process.pid), signal.SIGKILL)
        said, code = run.process.communicate(timeout=PATIENCE)[1], run.process.wait()
    assert struck(), struck.missing()
    assert code == 1 and "hint:" in said and "Traceback" not in said, said
    site.check_so_far()


def java_of(process: int) -> int:
    """The JVM that a run has started."""
    return next(
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/stat")
        if (told := path.read_text().rpartition(")"))[0].endswith("(java") and told[2].split()[1] == str(process)
    )


@pytest.mark.parametrize(
    "kill",
    [pytest.param(kill, id=name, marks=() if name in ALWAYS else pytest.mark.long) for name, kill in POINTS.items()],
)
def test_a_run_that_is_killed_there_has_shown_no_row_twice(kill: Kill, site: Site) -> None:
    site.grow(2)
    with killing(kill) as struck, site.start() as run:
        wait_for(lambda: struck() or run.process.poll() is not None, PATIENCE)
        assert run.process.wait(300) == -9, run.process.communicate()
    assert struck()
    site.check_so_far()


@pytest.mark.usefixtures("spark_session")
def test_after_all_kills_every_row_is_there_once(site: Site) -> None:
    site.finish()
    site.check()


@pytest.mark.long
@pytest.mark.usefixtures("spark_session")
def test_after_twenty_kills_at_random_moments_every_row_is_there_once(tmp_path: Path) -> None:
    moments, site = random.Random(20), Site(tmp_path, absolute(project(tmp_path, 2)), 2)
    for _ in range(20):
        site.grow(1)
        with site.start():
            # From the start of Java to some micro-batches: the least and the most that lie in between.
            time.sleep(moments.uniform(1, 14))
        site.check_so_far()
    site.finish()
    site.check()
