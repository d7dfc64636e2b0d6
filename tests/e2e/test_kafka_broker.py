"""The broker of the tests: what it keeps through `kill -9`, and what it shows of transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka_broker import Broker, running


def _values(broker: Broker, topic: str, isolation: str = "read_committed") -> list[bytes]:
    return [message.value() for message in broker.messages(topic, isolation)]


@pytest.mark.slow
def test_a_broker_hides_the_rows_of_an_aborted_transaction(kafka: Broker) -> None:
    from confluent_kafka import Producer

    topic = kafka.create("aborted")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    for value, end in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        end()

    assert _values(kafka, topic) == [b"a"]
    assert _values(kafka, topic, "read_uncommitted") == [b"a", b"b"]


@pytest.mark.long
def test_a_killed_broker_starts_again_with_what_it_had_acknowledged(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        topic = broker.create("kept", partitions=2)
        broker.send(topic, ({"value": str(number), "partition": number % 2} for number in range(10)))
        broker.restart()
        broker.send(topic, [{"value": "last", "partition": 0}])

        assert _values(broker, topic) == [b"0", b"2", b"4", b"6", b"8", b"last", b"1", b"3", b"5", b"7", b"9"]
