"""Results as messages of Kafka from the command line: keyed, with tombstones, on local and Spark; refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import duckdb
import pytest

from tests.e2e.commands import RunOn, environment, millrace
from tests.e2e.scripts import SCRIPT, project
from tests.kafka_broker import Broker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
QUOTES = """
CREATE STREAM quotes (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE STREAM plain (symbol STRING, price INT, deleted BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK board TO kafka OPTIONS (
  bootstrap_servers '{servers}', topic 'board_{host}', deleted 'deleted', headers 'ts', compression.type 'lz4'
);
CREATE SINK minutes TO kafka OPTIONS (bootstrap_servers '{servers}', topic 'minutes_{host}', key 'symbol');
CREATE QUERY board INTO board AS SELECT * FROM quotes;
CREATE QUERY per_minute INTO minutes AS
  SELECT symbol, count(*) AS n, sum(price) AS total FROM plain [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY symbol;
"""
LATEST = """
SELECT symbol, price FROM (FROM quotes SELECT *, row_number() OVER (PARTITION BY symbol ORDER BY ts DESC) AS r)
WHERE r = 1 AND NOT deleted ORDER BY ALL
"""
MINUTES = """
SELECT symbol, strftime(time_bucket(INTERVAL 1 MINUTE, ts), '%H:%M'), count(*), sum(price)::INT
FROM quotes GROUP BY ALL ORDER BY ALL
"""


def add_quotes(folder: Path, random: Random, number: int) -> None:
    lines = [
        f"S{random.randrange(30)},{random.randrange(100)},{str(random.random() < 0.3).lower()},"
        f"2024-01-01 00:{number:02d}:{place:02d}"
        for place in range(60)
    ]
    (folder / "in" / f"{number:04d}.csv").write_text("\n".join(["symbol,price,deleted,ts", *lines]) + "\n")


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_topics_hold_the_latest_quotes_and_each_minute_once(
    host: str, run_on: RunOn, kafka: Broker, tmp_path: Path
) -> None:
    topics = [kafka.create(f"{name}_{host}", 3) for name in ("board", "minutes")]
    random = Random(7)
    (tmp_path / "in").mkdir()
    (tmp_path / "quotes.sql").write_text(QUOTES.format(servers=kafka.bootstrap_servers, host=host))
    for number, end in enumerate(["--available-now", "--until-end"]):
        add_quotes(tmp_path, random, 2 * number)
        add_quotes(tmp_path, random, 2 * number + 1)
        ran = run_on(host, "quotes.sql", end, "--checkpoint", tmp_path / "state", folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
    duckdb.sql(f"CREATE OR REPLACE TABLE quotes AS FROM read_csv('{tmp_path}/in/*.csv')")
    latest = {message.key().decode(): message.value() for message in kafka.messages(topics[0])}
    board = sorted((key, json.loads(value)["price"]) for key, value in latest.items() if value is not None)
    assert board == duckdb.sql(LATEST).fetchall()
    minutes = [json.loads(message.value()) for message in kafka.messages(topics[1])]
    found = sorted((row["symbol"], row["window_start"][11:16], row["n"], row["total"]) for row in minutes)
    assert found == duckdb.sql(MINUTES).fetchall()


def test_a_topic_that_is_not_there_is_said_before_anything_is_read(kafka: Broker, tmp_path: Path) -> None:
    sink = f"kafka OPTIONS (bootstrap_servers '{kafka.bootstrap_servers}', topic 'none')"
    script = project(tmp_path, SCRIPT.replace("csv OPTIONS (path 'out')", sink))
    for command in (["check", script], ["run", script, "--on", "local", "--until-end"]):
        ran = millrace(*command, folder=tmp_path)
        assert ran.returncode == 1
        assert f'sink "counts": the Kafka broker at "{kafka.bootstrap_servers}" has no topic "none"' in ran.stderr


def test_the_example_gives_its_output_and_is_on_its_page(kafka: Broker) -> None:
    example = ROOT / "examples" / "kafka_sink.py"
    command = [sys.executable, example, kafka.bootstrap_servers]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment())
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == sorted(example.with_suffix(".out").read_text().splitlines())
    queries = example.read_text().split('"' * 3)[3]
    assert f"```sql{queries}```" in (ROOT / "docs" / "kafka-sink.md").read_text()
