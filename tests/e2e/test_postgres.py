"""Results in PostgreSQL from the command line, upserted by update key and by window; refusals; a sink of a package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import psycopg
import pytest

from tests.e2e.commands import RunOn, millrace, millrace_process
from tests.e2e.scripts import SCRIPT, project
from tests.postgres import database, fetched, server

pytestmark = pytest.mark.slow

QUOTES = """
CREATE STREAM quotes (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE STREAM plain (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK board TO postgres OPTIONS (
  dsn '{dsn}', password '${{file:{secret}}}', mode 'upsert', deleted 'deleted', version 'ts'
);
CREATE SINK minutes TO postgres OPTIONS (dsn '{dsn}', table 'minutes', mode 'upsert');
CREATE QUERY board INTO board AS SELECT * FROM quotes;
CREATE QUERY per_minute INTO minutes AS
  SELECT symbol, count(*) AS n, sum(price) AS total FROM plain [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY symbol;
"""
LATEST = "SELECT symbol, price FROM (FROM quotes SELECT *, row_number() OVER (PARTITION BY symbol ORDER BY ts DESC) AS r) WHERE r = 1 AND NOT deleted ORDER BY ALL"  # fmt: skip  # noqa: E501
MINUTES = "SELECT symbol, strftime(time_bucket(INTERVAL 1 MINUTE, ts), '%H:%M'), count(*), sum(price)::INT FROM quotes GROUP BY ALL ORDER BY ALL"  # fmt: skip  # noqa: E501
STORED = "SELECT symbol, to_char(window_start AT TIME ZONE 'UTC', 'HH24:MI'), n, total FROM minutes ORDER BY 1, 2"
SECRET = "hunter2-and-more"


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as dsn:
        yield dsn


def to(folder: Path, sink: str) -> Path:
    """The project with another sink."""
    return project(folder, SCRIPT.replace("csv OPTIONS (path 'out')", sink))


def add_quotes(folder: Path, random: Random, number: int) -> None:
    lines = [
        f"S{random.randrange(30)},{random.randrange(100)},{str(random.random() < 0.3).lower()},"
        f"2024-01-01 00:{number:02d}:{place:02d}"
        for place in range(60)
    ]
    (folder / "in" / f"{number:04d}.csv").write_text("\n".join(["symbol,price,deleted,ts", *lines]) + "\n")


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_tables_hold_the_latest_quotes_and_each_minute_once(
    host: str, run_on: RunOn, postgres: str, tmp_path: Path
) -> None:
    # A file, for Spark of an earlier test has the environment of its own start.
    (tmp_path / "secret").write_text(SECRET)
    dsn, random = database(postgres, f"quotes_{host}"), Random(7)
    (tmp_path / "in").mkdir()
    (tmp_path / "quotes.sql").write_text(QUOTES.format(dsn=dsn, secret=tmp_path / "secret"))
    for number, end in enumerate(["--available-now", "--until-end"]):
        add_quotes(tmp_path, random, 2 * number)
        add_quotes(tmp_path, random, 2 * number + 1)
        ran = run_on(host, "quotes.sql", end, "--checkpoint", tmp_path / "state", folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
    duckdb.sql(f"CREATE OR REPLACE TABLE quotes AS FROM read_csv('{tmp_path}/in/*.csv')")
    assert fetched(dsn, "SELECT symbol, price FROM board ORDER BY 1, 2") == duckdb.sql(LATEST).fetchall()
    assert fetched(dsn, STORED) == duckdb.sql(MINUTES).fetchall()
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
