"""Quotes of symbols as CSV files, read as an update stream and as a plain one, and what DuckDB makes of them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb

from tests.e2e.commands import RunOn

STREAMS = """
CREATE STREAM quotes (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE STREAM plain (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
"""
QUERIES = """
CREATE QUERY board INTO board AS SELECT * FROM quotes;
CREATE QUERY per_minute INTO minutes AS
  SELECT symbol, window_start, count(*) AS n, sum(price) AS total
  FROM plain [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY symbol;
"""
_LATEST = """
SELECT symbol, price FROM (FROM quotes SELECT *, row_number() OVER (PARTITION BY symbol ORDER BY ts DESC) AS r)
WHERE r = 1 AND NOT deleted ORDER BY ALL
"""
_MINUTES = """
SELECT symbol, strftime(time_bucket(INTERVAL 1 MINUTE, ts), '%H:%M'), count(*), sum(price)::INT
FROM quotes GROUP BY ALL ORDER BY ALL
"""


def run_in_two_parts(run_on: RunOn, host: str, sinks: str, folder: Path) -> None:
    """Run the queries into the sinks `board` and `minutes` over two files, and over two more to the end."""
    random = Random(7)
    (folder / "in").mkdir()
    (folder / "quotes.sql").write_text(STREAMS + sinks + QUERIES)
    for number, end in enumerate(["--available-now", "--until-end"]):
        _add_quotes(folder, random, 2 * number)
        _add_quotes(folder, random, 2 * number + 1)
        ran = run_on(host, "quotes.sql", end, "--checkpoint", folder / "state", folder=folder)
        assert ran.returncode == 0, ran.stderr


def _add_quotes(folder: Path, random: Random, number: int) -> None:
    lines = [
        f"S{random.randrange(30)},{random.randrange(100)},{str(random.random() < 0.3).lower()},"
        f"2024-01-01 00:{number:02d}:{place:02d}"
        for place in range(60)
    ]
    (folder / "in" / f"{number:04d}.csv").write_text("\n".join(["symbol,price,deleted,ts", *lines]) + "\n")


def expected_of(folder: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What must stand in `board`, symbol and price, and in `minutes`: symbol, minute, count and total."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE quotes AS FROM read_csv('{folder}/in/*.csv')")
    return connection.execute(_LATEST).fetchall(), connection.execute(_MINUTES).fetchall()
