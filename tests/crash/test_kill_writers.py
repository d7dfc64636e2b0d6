"""kill -9 around the hand-over to a writer, start again: the table of a PostgreSQL server holds every row once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.kills import Kill, killing
from tests.crash.test_kill import growing
from tests.e2e.commands import Started, absolute, millrace, wait_for
from tests.e2e.scripts import SCRIPT, expected, project
from tests.postgres import database, fetched, server

pytestmark = pytest.mark.slow

WRITER = "millrace.connectors.postgres.postgres_writer:PostgresWriter"
ON_THE_WAY = [
    # Staged, and no epoch knows of it.
    Kill("millrace.hosts.checkpoint.checkpoint:Checkpoint.save", "before", call=2),
    # Recorded, and not handed over; then again while that is made up for.
    Kill("millrace.hosts.checkpoint.checkpoint:Checkpoint.save", "after"),
    Kill(f"{WRITER}.write", "before"),
    # Rows have been sent, and their transaction is open.
    Kill(f"{WRITER}.copy", "after"),
    # The transaction has been committed, and nobody here knows.
    Kill(f"{WRITER}.write", "after", call=2),
    Kill(f"{WRITER}.write", "after"),
    # Taken and removed, in the middle of an epoch.
    Kill("millrace.hosts.sinks.writers:write_epoch", "after"),
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as dsn:
        yield dsn


def to_table(folder: Path, dsn: str, files: int = 3) -> Path:
    """The project with a table for its sink."""
    sink = f"TO postgres OPTIONS (dsn '{dsn}', table 'minutes')"
    return absolute(project(folder, SCRIPT.replace("TO csv OPTIONS (path 'out')", sink), files))


def rows(dsn: str) -> list[tuple[str, ...]]:
    query = "SELECT to_char(window_start AT TIME ZONE 'UTC', 'HH24:MI'), k, n::text, total::text FROM minutes"
    return sorted(fetched(dsn, query))


def test_a_local_run_killed_on_the_way_to_a_table_repeats_and_loses_nothing(postgres: str, tmp_path: Path) -> None:
    dsn = database(postgres, "local_kills")
    run = ["run", to_table(tmp_path, dsn), "--on", "local", "--checkpoint", "state"]
    files = 3
    for kill in ON_THE_WAY:
        with killing(kill) as struck, growing(tmp_path, files, every=0.3) as count, Started(*run, folder=tmp_path):
            wait_for(struck)
        files = count()
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert rows(dsn) == expected(files)
    assert list((tmp_path / "state" / "staged").iterdir()) == []


@pytest.mark.long
@pytest.mark.spark
def test_a_spark_run_killed_on_the_way_to_a_table_repeats_and_loses_nothing(postgres: str, tmp_path: Path) -> None:
    dsn = database(postgres, "spark_kills")
    run = ["run", to_table(tmp_path, dsn), "--master", "local[2]", "--checkpoint", "state"]
    # Recorded, and not handed over; in the open transaction; between it and the mark that the epoch was delivered.
    recorded = Kill("millrace.hosts.spark.commit_log.commit_log:CommitLog.write", "after")
    for kill in (recorded, Kill(f"{WRITER}.copy", "after"), Kill(f"{WRITER}.write", "after")):
        with killing(kill) as struck, Started(*run, "--trigger", "100 milliseconds", folder=tmp_path):
            wait_for(struck)
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert rows(dsn) == expected(3)
    assert not list((tmp_path / "state" / "staged" / "per_minute").iterdir())
