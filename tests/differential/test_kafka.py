"""Random messages in a real broker, read in runs that go on from a checkpoint: windows equal DuckDB's over the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from tests.e2e.kafka_streams import DAY
from tests.kafka_broker import Broker

_PARTITIONS = 4
_QUERIES = """
CREATE SINK counted TO parquet OPTIONS (path '{folder}/counted');
CREATE SINK pairs TO parquet OPTIONS (path '{folder}/pairs');
CREATE QUERY counted INTO counted AS
  SELECT window_start, word, count(*) AS n, sum(amount) AS total
  FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY word;
CREATE QUERY pairs INTO pairs AS SELECT number, kafka_offset FROM s WHERE amount > 90;
"""
_COUNTED = """
SELECT time_bucket(INTERVAL 10 SECONDS, ts)::TIMESTAMPTZ AS window_start, word,
  count(*) AS n, sum(amount)::BIGINT AS total
FROM messages GROUP BY ALL
"""


def _batches(seed: int, count: int) -> Iterator[list[dict[str, Any]]]:
    """Messages in batches: skewed over partitions, out of order in each by at most 3 seconds, with torn ones."""
    random, number = Random(seed), 0
    clocks = [random.uniform(0, 20) for _ in range(_PARTITIONS)]
    for _ in range(count):
        batch = []
        for _ in range(random.randint(0, 400)):
            partition = min(int(random.expovariate(1.2)), _PARTITIONS - 1)
            clocks[partition] += random.expovariate(8)
            at = DAY + timedelta(seconds=round(clocks[partition] - random.uniform(0, 3), 3))
            row = {"number": number, "word": random.choice("abcde"), "amount": random.randint(0, 99), "ts": str(at)}
            value = b"\xff torn" if random.random() < 0.01 else json.dumps(row).encode()
            batch.append({"partition": partition, "value": value})
            number += 1
        yield batch


def _script(broker: Broker, topic: str, folder: Path) -> str:
    return (
        "CREATE STREAM s (number BIGINT, word STRING, amount BIGINT, ts TIMESTAMP, kafka_offset BIGINT) "
        "TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS "
        f"FROM kafka OPTIONS (bootstrap_servers '{broker.bootstrap_servers}', topic '{topic}', on_malformed 'skip', "
        "max_rows_per_trigger '150');" + _QUERIES.format(folder=folder)
    )


def _check(folder: Path, sent: list[list[dict[str, Any]]]) -> None:
    """Compare what is in the sinks with DuckDB over all messages that were sent."""
    offsets = [0] * _PARTITIONS
    rows = []
    for each in (each for batch in sent for each in batch):
        if not each["value"].startswith(b"\xff"):
            rows.append({**json.loads(each["value"]), "kafka_offset": offsets[each["partition"]]})
        offsets[each["partition"]] += 1
    (folder / "messages.json").write_text("\n".join(map(json.dumps, rows)))
    with duckdb.connect() as database:
        database.sql("SET TimeZone = 'UTC'")
        columns = "{number: 'BIGINT', word: 'VARCHAR', amount: 'BIGINT', ts: 'TIMESTAMP', kafka_offset: 'BIGINT'}"
        database.sql(f"CREATE TABLE messages AS FROM read_json('{folder}/messages.json', columns = {columns})")
        for name, text in (
            ("counted", _COUNTED),
            ("pairs", "SELECT number, kafka_offset FROM messages WHERE amount > 90"),
        ):
            found = database.sql(f"SELECT * FROM read_parquet('{folder}/{name}/*.parquet')")
            columns = ", ".join(sorted(found.columns))
            wanted = database.sql(f"SELECT {columns} FROM ({text}) ORDER BY ALL").fetchall()
            assert database.sql(f"SELECT {columns} FROM found ORDER BY ALL").fetchall() == wanted
            assert wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_local_runs_over_random_messages_equal_duckdb(kafka: Broker, tmp_path: Path, seed: int) -> None:
    from millrace.hosts.local.host import LocalRun

    topic = kafka.create(f"differential-{seed}", _PARTITIONS)
    network = parse_network(_script(kafka, topic, tmp_path))
    sent = []
    for batch in _batches(seed, 6):
        kafka.send(topic, batch)
        sent.append(batch)
        LocalRun(network, RunOptions("local", "available", checkpoint=tmp_path / "c")).run()
    report = LocalRun(network, RunOptions("local", "end", checkpoint=tmp_path / "c")).run()
    torn = sum(each["value"].startswith(b"\xff") for batch in sent for each in batch)
    assert (report.sources["s"].late, report.sources["s"].quarantined) == (0, torn)
    _check(tmp_path, sent)


@pytest.mark.slow
@pytest.mark.spark
def test_runs_over_random_messages_equal_duckdb_on_spark(kafka: Broker, tmp_path: Path, spark_session: Any) -> None:
    from millrace.hosts.spark.host import SparkRun

    topic = kafka.create("differential-spark", _PARTITIONS)
    network = parse_network(_script(kafka, topic, tmp_path).replace("'150'", "'400'"))
    sent = list(_batches(3, 3))
    for batch in sent:
        kafka.send(topic, batch)
        ending = "end" if batch is sent[-1] else "available"
        options = RunOptions("spark", ending, checkpoint=tmp_path / "c")
        report = SparkRun(network, options, session=spark_session).run()
    torn = sum(each["value"].startswith(b"\xff") for batch in sent for each in batch)
    assert (report.sources["s"].late, report.sources["s"].quarantined) == (0, torn)
    _check(tmp_path, sent)
