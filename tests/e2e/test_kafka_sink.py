"""Results as messages of Kafka from the command line: keyed, with tombstones, on local and Spark; refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, environment, millrace
from tests.e2e.quotes import expected_of, run_in_two_parts
from tests.e2e.scripts import SCRIPT, project
from tests.kafka_broker import Broker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SINKS = """
CREATE SINK board TO kafka OPTIONS (
  bootstrap_servers '{servers}', topic 'board_{host}', deleted 'deleted', headers 'ts', compression.type 'lz4'
);
CREATE SINK minutes TO kafka OPTIONS (bootstrap_servers '{servers}', topic 'minutes_{host}', key 'symbol');
"""


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_topics_hold_the_latest_quotes_and_each_minute_once(
    host: str, run_on: RunOn, kafka: Broker, tmp_path: Path
) -> None:
    topics = [kafka.create(f"{name}_{host}", 3) for name in ("board", "minutes")]
    run_in_two_parts(run_on, host, SINKS.format(servers=kafka.bootstrap_servers, host=host), tmp_path)
    expected = expected_of(tmp_path)
    latest = {message.key().decode(): message.value() for message in kafka.messages(topics[0])}
    board = sorted((key, json.loads(value)["price"]) for key, value in latest.items() if value is not None)
    assert board == expected[0]
    minutes = [json.loads(message.value()) for message in kafka.messages(topics[1])]
    found = sorted((row["symbol"], row["window_start"][11:16], row["n"], row["total"]) for row in minutes)
    assert found == expected[1]


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
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment())
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == sorted(example.with_suffix(".out").read_text().splitlines())
    queries = example.read_text().split('"' * 3)[3]
    assert f"```sql{queries}```" in (ROOT / "docs" / "kafka-sink.md").read_text()
