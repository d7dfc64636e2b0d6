"""kill -9 around the transaction of a sink in Kafka, start again: committed messages hold every row once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash.kills import Kill, killing
from tests.crash.test_kill import growing
from tests.e2e.commands import Started, absolute, millrace, wait_for
from tests.e2e.scripts import SCRIPT, expected, project
from tests.kafka_broker import Broker

pytestmark = pytest.mark.slow

WRITER = "millrace.connectors.kafka.kafka_writer"
# Produced, and the transaction open; committed, and nobody here knows.
ON_THE_WAY = [Kill(f"{WRITER}:_Producer.send", "after"), Kill(f"{WRITER}:_Transactions.commit", "after")]
MATRIX = [
    Kill(f"{WRITER}:KafkaWriter.write", "before"),
    Kill(f"{WRITER}:_Transactions.__init__", "after"),
    Kill(f"{WRITER}:_Transactions.commit", "before"),
    Kill(f"{WRITER}:KafkaWriter.write", "after", call=2),
    Kill("millrace.hosts.sinks.writers:write_epoch", "after"),
]


def to_topic(folder: Path, broker: Broker, topic: str) -> Path:
    """The project with a topic for its sink."""
    servers = broker.bootstrap_servers
    sink = f"TO kafka OPTIONS (bootstrap_servers '{servers}', topic '{broker.create(topic, 2)}', key 'k')"
    return absolute(project(folder, SCRIPT.replace("TO csv OPTIONS (path 'out')", sink)))


def rows(broker: Broker, topic: str) -> list[tuple[str, ...]]:
    found = [json.loads(message.value()) for message in broker.messages(topic)]
    return sorted((row["window_start"][11:16], row["k"], str(row["n"]), str(row["total"])) for row in found)


def run_with(kills: list[Kill], folder: Path, broker: Broker, topic: str) -> None:
    run = ["run", to_topic(folder, broker, topic), "--on", "local", "--checkpoint", "state"]
    files = 3
    for kill in kills:
        with killing(kill) as struck, growing(folder, files, every=0.3) as count, Started(*run, folder=folder):
            wait_for(struck)
        files = count()
    ended = millrace(*run, "--until-end", folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert rows(broker, topic) == expected(files)


def test_a_local_run_killed_in_its_transaction_repeats_and_loses_nothing(kafka: Broker, tmp_path: Path) -> None:
    run_with(ON_THE_WAY, tmp_path, kafka, "few_kills")


@pytest.mark.long
def test_a_local_run_killed_anywhere_on_the_way_repeats_and_loses_nothing(kafka: Broker, tmp_path: Path) -> None:
    run_with([*MATRIX, *ON_THE_WAY, *MATRIX], tmp_path, kafka, "many_kills")


@pytest.mark.long
@pytest.mark.spark
def test_a_spark_run_killed_in_its_transaction_repeats_and_loses_nothing(kafka: Broker, tmp_path: Path) -> None:
    run = ["run", to_topic(tmp_path, kafka, "spark_kills"), "--master", "local[2]", "--checkpoint", "state"]
    for kill in ON_THE_WAY:
        with killing(kill) as struck, Started(*run, "--trigger", "100 milliseconds", folder=tmp_path):
            wait_for(struck)
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert rows(kafka, "spark_kills") == expected(3)
