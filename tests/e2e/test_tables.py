"""Clicks joined with a table of users that is refreshed while the run goes on, stopped, and started again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import duckdb
import pyarrow.parquet as pq
import pytest

import millrace as mr
from tests.e2e.commands import millrace, wait_for

START = datetime(2024, 1, 1, tzinfo=UTC)
SCRIPT = """
CREATE STREAM clicks (user_id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path '{folder}/clicks');
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, country STRING) FROM csv OPTIONS (path '{folder}/users.csv');
CREATE TABLE bots (id BIGINT) FROM csv OPTIONS (path '{folder}/bots.csv');
CREATE SINK named TO parquet OPTIONS (path '{folder}/named');
CREATE SINK by_country TO parquet OPTIONS (path '{folder}/by_country');
CREATE QUERY named INTO named AS
  SELECT c.ts, c.user_id, u.name FROM clicks c LEFT JOIN users u ON c.user_id = u.id AND u.country <> 'none'
  WHERE c.user_id NOT IN (SELECT id FROM bots);
CREATE QUERY by_country INTO by_country AS
  SELECT window_start, window_end, u.country, count(*) AS n FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] c
  JOIN users u ON c.user_id = u.id GROUP BY u.country;
"""
EXPECTED = """
SELECT c.ts::VARCHAR, c.user_id, u.name FROM clicks c
LEFT JOIN users u ON c.user_id = u.id AND u.country <> 'none' AND u.version = c.version WHERE c.user_id <> 3
"""
BY_COUNTRY = """
SELECT time_bucket(INTERVAL 1 MINUTE, c.ts)::VARCHAR, u.country, count(*) FROM clicks c
JOIN users u ON c.user_id = u.id AND u.version = c.version GROUP BY ALL ORDER BY ALL
"""


class Site:
    """The files of a site, what a row should meet, and DuckDB as the judge: version by version."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, Random(seed)
        self.base = self.greatest = START
        self.version = self.files = self.kept = 0
        self.known = duckdb.connect()
        self.known.execute("CREATE TABLE clicks (ts TIMESTAMP, user_id BIGINT, version INT)")
        self.known.execute("CREATE TABLE users (id BIGINT, name VARCHAR, country VARCHAR, version INT)")
        (folder / "clicks").mkdir()
        (folder / "bots.csv").write_text("id\n3\n")
        (folder / "site.sql").write_text(SCRIPT.format(folder=folder))
        self.change_users()

    def change_users(self) -> None:
        """Put another table of users in place, which rows meet from the next file of clicks on."""
        self.version += 1
        rows = [
            (number, f"user {number} of {self.version}", self.random.choice(["de", "fr", "none"]))
            for number in range(8)
            if self.random.random() < 0.8
        ]
        text = "".join(f"{number},{name},{country}\n" for number, name, country in rows)
        (self.folder / "draft.csv").write_text(f"id,name,country\n{text}")
        (self.folder / "draft.csv").rename(self.folder / "users.csv")
        for row in rows:
            self.known.execute("INSERT INTO users VALUES (?, ?, ?, ?)", [*row, self.version])
        # A new version is for rows after all that were seen.
        self.base += timedelta(seconds=60)

    def click(self, count: int, *, early: bool = False, version: int | None = None) -> None:
        """A file of clicks out of order; with `early` their times are those of the version before."""
        latest = self.greatest if early else self.base + timedelta(seconds=9)
        times = [latest - timedelta(milliseconds=self.random.randrange(8000)) for _ in range(count)]
        self.greatest = max(self.greatest, *times)
        version = self.version - early if version is None else version
        rows = [(each, self.random.randrange(10)) for each in times]
        text = "".join(f"{user},{time:%Y-%m-%d %H:%M:%S.%f}\n" for time, user in rows)
        (self.folder / "clicks" / f".{self.files:03d}.csv").write_text(f"user_id,ts\n{text}")
        (self.folder / "clicks" / f".{self.files:03d}.csv").rename(self.folder / "clicks" / f"{self.files:03d}.csv")
        for time, user in rows:
            self.known.execute("INSERT INTO clicks VALUES (?, ?, ?)", [time.replace(tzinfo=None), user, version])
        self.files += 1
        self.kept += sum(user != 3 for _, user in rows)

    def named(self) -> list[tuple[object, ...]]:
        """The rows of `named`, as far as they have been committed."""
        found = [pq.read_table(path) for path in sorted((self.folder / "named").glob("part-*"))]
        rows = [row for each in found for row in each.to_pylist()]
        return [(str(row["ts"].replace(tzinfo=None)), row["user_id"], row["name"]) for row in rows]

    def check(self) -> None:
        """All rows are what DuckDB says."""
        wait_for(lambda: len(self.named()) >= self.kept)
        rows = self.known.execute(EXPECTED).fetchall()
        assert sorted(self.named(), key=str) == sorted(((_plain(ts), user, name) for ts, user, name in rows), key=str)


def _plain(ts: str) -> str:
    return str(datetime.fromisoformat(ts))


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def test_rows_meet_the_users_of_their_time_through_refreshes_and_restarts(
    host: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if host == "spark":
        request.getfixturevalue("spark_session")
    site = Site(tmp_path, seed=7)
    site.click(20)
    for _ in range(2):
        handle = mr.Network().sql((tmp_path / "site.sql").read_text()).run(on=host, checkpoint=tmp_path / "state")  # type: ignore[arg-type]
        site.check()
        site.change_users()
        handle.refresh_table("users")
        site.click(5, early=True)
        site.click(20)
        site.check()
        handle.stop()
        # Between two runs the file changes again, and this version no row ever meets.
        (tmp_path / "users.csv").write_text("id,name,country\n1,nobody,de\n")
    handle = (
        mr.Network()
        .sql((tmp_path / "site.sql").read_text())
        .run(  # type: ignore[call-overload]
            on=host, checkpoint=tmp_path / "state", until="end"
        )
    )
    rows = [row for path in (tmp_path / "by_country").glob("part-*") for row in pq.read_table(path).to_pylist()]
    found = [(str(row["window_start"].replace(tzinfo=None)), row["country"], row["n"]) for row in rows]
    expected = [(_plain(start), *rest) for start, *rest in site.known.execute(BY_COUNTRY).fetchall()]
    assert sorted(found) == sorted(expected)
    assert len(list((tmp_path / "state" / "tables").glob("users-*"))) <= 3, "old versions are dropped"


def test_check_and_run_name_a_table_that_cannot_be_used(tmp_path: Path) -> None:
    site = Site(tmp_path, seed=1)
    (tmp_path / "users.csv").write_text("id,name,country\n1,a,de\n1,b,fr\n")
    done = millrace("check", tmp_path / "site.sql", folder=tmp_path)
    assert done.returncode == 1 and 'table "users" has 2 rows with the primary key id = 1' in done.stderr
    (tmp_path / "users.csv").unlink()
    done = millrace("run", tmp_path / "site.sql", "--on", "local", "--until-end", folder=tmp_path)
    assert done.returncode == 2 and 'table "users" cannot be read' in done.stderr and site.files == 0
