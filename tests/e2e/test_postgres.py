"""Results in PostgreSQL from the command line, upserted by update key and by window; refusals; a sink of a package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.e2e.commands import RunOn, millrace, millrace_process
from tests.e2e.quotes import expected_of, run_in_two_parts
from tests.e2e.scripts import SCRIPT, project
from tests.postgres import database, fetched, server

pytestmark = pytest.mark.slow

SINKS = """
CREATE SINK board TO postgres OPTIONS (
  dsn '{dsn}', password '${{file:{secret}}}', mode 'upsert', deleted 'deleted', version 'ts'
);
CREATE SINK minutes TO postgres OPTIONS (dsn '{dsn}', table 'minutes', mode 'upsert');
"""
STORED = "SELECT symbol, to_char(window_start AT TIME ZONE 'UTC', 'HH24:MI'), n, total FROM minutes ORDER BY 1, 2"
SECRET = "hunter2-and-more"


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as dsn:
        yield dsn


def to(folder: Path, sink: str) -> Path:
    """The project with another sink."""
    return project(folder, SCRIPT.replace("csv OPTIONS (path 'out')", sink))


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_tables_hold_the_latest_quotes_and_each_minute_once(
    host: str, run_on: RunOn, postgres: str, tmp_path: Path
) -> None:
    # A file, for Spark of an earlier test has the environment of its own start.
    (tmp_path / "secret").write_text(SECRET)
    dsn = database(postgres, f"quotes_{host}")
    run_in_two_parts(run_on, host, SINKS.format(dsn=dsn, secret=tmp_path / "secret"), tmp_path)
    stored = fetched(dsn, "SELECT symbol, price FROM board ORDER BY 1, 2"), fetched(dsn, STORED)
    assert stored == expected_of(tmp_path)
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if SECRET.encode() in path.read_bytes()]


def test_a_table_of_another_shape_is_refused_by_check_and_by_run(postgres: str, tmp_path: Path) -> None:
    dsn = database(postgres, "shapes")
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE minutes (k text, n int)")
    script = to(tmp_path, f"postgres OPTIONS (dsn '{dsn}', table 'minutes')")
    for command in (["check", script], ["run", script, "--on", "local", "--until-end", "--checkpoint", "state"]):
        ran = millrace(*command, folder=tmp_path)
        assert ran.returncode == 2
        assert (
            'sink "counts": the table "minutes" does not take the results: it has no column "window_start"'
            in ran.stderr
        )
        assert "hint: Its columns are k, n. Add the column" in ran.stderr


def test_a_server_that_is_not_there_is_said_before_anything_is_read(tmp_path: Path) -> None:
    script = to(tmp_path, f"postgres OPTIONS (host '{tmp_path}', user 'me')")
    ran = millrace("run", script, "--on", "local", "--until-end", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert 'sink "counts": PostgreSQL does not answer' in ran.stderr


PACKAGE = '''
class Lines:
    """Each epoch as a file of its own."""

    def __init__(self, options, schema, query):
        self.options = options

    @staticmethod
    def check(options, schema, query):
        if "into" not in options:
            raise ValueError("it does not say where")

    def write(self, epoch, batches):
        with open(f"{self.options['into']}-{epoch}", "w") as file:
            file.writelines(f"{row}\\n" for batch in batches for row in batch.to_pylist())

    def close(self): ...
'''


def test_a_sink_of_an_installed_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "lines-1.dist-info").mkdir(parents=True)
    (site / "lines_of.py").write_text(PACKAGE)
    (site / "lines-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1\n")
    (site / "lines-1.dist-info" / "entry_points.txt").write_text("[millrace.sinks]\nlines = lines_of:Lines\n")
    paths = os.pathsep.join([str(Path(__file__).parents[2] / "src"), str(site)])
    script = to(tmp_path, "lines OPTIONS (into 'epoch')")
    run = ["run", script, "--on", "local", "--until-end", "--json"]
    ran = millrace_process(*run, folder=tmp_path, settings={"PYTHONPATH": paths})
    assert ran.returncode == 0, ran.stderr
    rows = [line for path in tmp_path.glob("epoch-*") for line in path.read_text().splitlines()]
    assert len(rows) == 6 and "'k': 'a'" in rows[0]
    assert json.loads(ran.stdout.splitlines()[-1])
    script.write_text(script.read_text().replace("into 'epoch'", "inot 'epoch'"))
    refused = millrace_process("check", script, folder=tmp_path, settings={"PYTHONPATH": paths})
    assert refused.returncode == 2
    assert 'sink "counts" cannot be written: ValueError: it does not say where' in refused.stderr
