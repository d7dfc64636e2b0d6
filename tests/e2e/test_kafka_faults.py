"""What goes wrong in the midst of a run over topics, on a real broker: set aside and counted, or a clear error.

After every error the fault is mended and a run on the same checkpoint goes on: nothing is lost, nothing is there twice.
"""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.connectors.source import Unreachable
from millrace.errors import MalformedRow, RunError
from tests.e2e.commands import eventually
from tests.e2e.kafka_streams import column, message, rows, sent, stream_text
from tests.kafka_broker import PASSWORD, USER, Broker
from tests.schema_registry import registry

pytestmark = pytest.mark.slow

WORD = {
    "type": "record",
    "name": "Word",
    "fields": [
        {"name": "word", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
poisonous = {0}
"""Numbers that `inverse` fails at."""


def inverse(number: int) -> int:
    """A function of a user that does not expect all messages."""
    return -number // (number not in poisonous)


def copied(broker: Broker, topic: str, out: str, checkpoint: Path, *, sink: str = "", **options: str) -> mr.Network:
    """A network that copies one topic to another."""
    kept = f"bootstrap_servers '{broker.bootstrap_servers}', topic '{out}', retry_seconds '1' {sink}"
    text = f"{stream_text(broker, topic, options=options)} CREATE SINK k TO kafka OPTIONS ({kept});"
    return mr.Network().sql(f"{text} CREATE QUERY q INTO k AS SELECT n FROM s;")


def numbers(broker: Broker, topic: str) -> list[int]:
    return sorted(json.loads(each.value())["n"] for each in broker.messages(topic))


def word(text: str, schema: int) -> dict[str, Any]:
    fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'millrace[avro]'")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, WORD, {"word": text, "ts": datetime(2026, 1, 1, tzinfo=UTC)})
    return {"partition": 0, "value": b"\0" + schema.to_bytes(4, "big") + out.getvalue()}


def test_a_schema_that_the_registry_does_not_have_is_set_aside_or_an_error_until_it_is_there(
    kafka: Broker, tmp_path: Path
) -> None:
    topic = sent(kafka, "unknown-schema", word("a", 1), word("b", 9), word("c", 1), partitions=1)
    schemas: dict[int, Any] = {1: WORD}
    fact = "names schema 9, which the registry does not have"
    with registry(schemas) as address:
        avro = {"format": "avro", "schema_registry": address}
        text = stream_text(kafka, topic, columns="word STRING", options=avro)
        with pytest.raises(MalformedRow, match=f'partition "{topic}/0", offset 1: .*{fact}'):
            rows(text, "SELECT word FROM s", checkpoint=tmp_path / "c")
        aside = stream_text(
            kafka,
            topic,
            columns="word STRING",
            time="ORDERED QUARANTINE INTO bad",
            options={**avro, "on_malformed": "skip"},
        )
        net = mr.Network().sql(f"{aside} CREATE SINK bad TO csv OPTIONS (path '{tmp_path / 'bad'}');")
        handle = net.sql("CREATE QUERY q AS SELECT word FROM s").run(on="local", until="end")
        assert column(handle.results("q"), "word") == ["a", "c"]
        assert handle.metrics().sources["s"].quarantined == 1
        (kept,) = (tmp_path / "bad").glob("*.csv")
        assert fact in kept.read_text() and f"{topic}/0" in kept.read_text()
        schemas[9] = WORD
        assert column(rows(text, "SELECT word FROM s", checkpoint=tmp_path / "c"), "word") == ["b", "c"]


def test_a_registry_that_does_not_answer_ends_the_run_after_a_while(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millrace.connectors.partitioned_input.PATIENCE", 0.2)
    topic = sent(kafka, "no-registry", word("a", 1), partitions=1)
    options = {"format": "avro", "schema_registry": "http://127.0.0.1:1"}
    with pytest.raises(Unreachable, match=r'the schema registry "http://127\.0\.0\.1:1" does not answer') as caught:
        rows(stream_text(kafka, topic, columns="word STRING", options=options), "SELECT word FROM s")
    assert "correct schema_registry" in caught.value.hint


def test_a_poison_message_fails_each_run_until_the_query_is_mended(kafka: Broker, tmp_path: Path) -> None:
    topic = sent(kafka, "poison", *(message(0, place, n=n) for place, n in enumerate((3, 2, 0, 1))), partitions=1)
    out = kafka.create("poison-out")

    def run() -> None:
        net = copied(kafka, topic, out, tmp_path)
        net.function("inverse", inverse, takes="BIGINT", returns="BIGINT")
        net.sql("CREATE OR REPLACE QUERY q INTO k AS SELECT inverse(n) AS n FROM s;")
        net.run(on="local", until="end", checkpoint=tmp_path / "c")

    for _ in range(2):
        with pytest.raises(RunError, match=r'"inverse".*ZeroDivisionError'):
            run()
    poisonous.clear()
    run()
    assert numbers(kafka, out) == [-3, -2, -1, 0]


@pytest.mark.parametrize("end", ["source", "sink"])
def test_a_right_that_is_taken_away_ends_the_run_and_what_it_missed_comes_later(
    end: str, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    topic, out = sent(kafka, f"revoked-{end}", message(0, 0, n=0), partitions=1), kafka.create(f"revoked-{end}-out")
    sasl = {
        "bootstrap_servers": kafka.sasl_servers, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
        "sasl_username": USER, "sasl_password": "${env:KAFKA_PASSWORD}",
    }  # fmt: skip
    written = ", ".join(["", *(f"{name} '{value}'" for name, value in sasl.items() if name != "bootstrap_servers")])

    def net() -> mr.Network:
        if end == "source":
            return copied(kafka, topic, out, tmp_path, **sasl)
        made = copied(kafka, topic, out, tmp_path, sink=written).script
        sinks = made.index("CREATE SINK")
        return mr.Network().sql(made[:sinks] + made[sinks:].replace(kafka.bootstrap_servers, kafka.sasl_servers))

    handle = net().run(on="local", checkpoint=tmp_path / "c")
    eventually(lambda: numbers(kafka, out), [0])
    kafka.forbid(topic if end == "source" else out)
    if end == "sink":
        kafka.send(topic, [message(0, 1, n=1)])
    with pytest.raises(RunError, match="Topic authorization failed") as caught:
        handle.wait(300)
    if end == "source":
        # Not before: who has asked for rows while that was allowed may still be given some.
        kafka.send(topic, [message(0, 1, n=1)])
    assert topic in str(caught.value) and "right" in caught.value.hint
    assert numbers(kafka, out) == [0]
    copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c", until="available")
    assert numbers(kafka, out) == [0, 1]


def test_a_topic_of_results_that_is_deleted_ends_the_run_and_gets_the_rest_when_it_is_there_again(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millrace.connectors.kafka.kafka_writer._CALL", 1.0)
    topic, out = sent(kafka, "feeds-deleted", message(0, 0, n=0), partitions=1), kafka.create("deleted-out")
    handle = copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c")
    eventually(lambda: numbers(kafka, out), [0])
    kafka.delete(out)
    kafka.send(topic, [message(0, 1, n=1)])
    with pytest.raises(RunError, match=f'has no topic "{out}"'):
        handle.wait(300)
    kafka.create(out)
    copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c", until="available")
    assert numbers(kafka, out) == [1]


def test_a_broker_that_falls_silent_is_waited_for_and_then_an_error(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millrace.connectors.kafka.kafka_source._TIMEOUT", 0.5)
    topic, out = sent(kafka, "silent", message(0, 0, n=0), partitions=1), kafka.create("silent-out")
    handle = copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c")
    eventually(lambda: numbers(kafka, out), [0])
    with kafka.paused():
        time.sleep(1.5)
    kafka.send(topic, [message(0, 1, n=1)])
    eventually(lambda: numbers(kafka, out), [0, 1])
    with monkeypatch.context() as hasty:
        hasty.setattr("millrace.connectors.partitioned_input.PATIENCE", 0.5)
        with kafka.paused(), pytest.raises(Unreachable, match='does not answer for stream "s"'):
            handle.wait(300)
        with kafka.paused(), pytest.raises(Unreachable, match='does not answer for stream "s"'):
            copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c", until="available")
    kafka.send(topic, [message(0, 2, n=2)])
    copied(kafka, topic, out, tmp_path).run(on="local", checkpoint=tmp_path / "c", until="available")
    assert numbers(kafka, out) == [0, 1, 2]
