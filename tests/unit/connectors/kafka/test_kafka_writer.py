"""The writer of Kafka against a real broker: what a consumer that reads committed messages finds."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from millrace.connectors.kafka.kafka_writer import KafkaWriter
from millrace.errors import CheckpointError, RequestError, RunError
from millrace.kernel.elements import TIMESTAMP
from tests.kafka_broker import Broker

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int32()), ("ts", TIMESTAMP), ("gone", pa.bool_())])
_NAMES = count()


@pytest.fixture
def topic(kafka: Broker) -> str:
    return kafka.create(f"out{next(_NAMES)}", 2)


def writer(kafka: Broker, topic: str, schema: pa.Schema = SCHEMA, **options: str) -> KafkaWriter:
    servers = {"bootstrap_servers": kafka.bootstrap_servers, "topic": topic, "run": topic}
    return KafkaWriter({**servers, **options}, schema, "q")


def rows(*given: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    columns = [dict(zip(schema.names, row, strict=True)) for row in given]
    whole = pa.RecordBatch.from_pylist(columns, schema)
    return iter([whole.slice(0, 1), whole.slice(1)])


def at(second: int) -> datetime:
    return datetime(2024, 1, 1, 0, 0, second, 5000, UTC)


def numbers(kafka: Broker, topic: str, isolation: str = "read_committed") -> list[int]:
    return sorted(json.loads(message.value())["n"] for message in kafka.messages(topic, isolation))


def test_an_epoch_is_there_once_however_often_it_is_given(kafka: Broker, topic: str) -> None:
    one = writer(kafka, topic)
    one.write(3, rows(("a", 1, at(1), None), ("b", 2, at(1), None)))
    one.write(3, rows(("a", 1, at(1), None), ("b", 2, at(1), None)))
    one.close()
    other = writer(kafka, topic)
    other.write(3, rows(("a", 1, at(1), None), ("b", 2, at(1), None)))
    other.write(7, rows(("c", 3, at(1), None)))
    assert numbers(kafka, topic) == [1, 2, 3]
    # Another run is not this one.
    writer(kafka, topic, run=f"{topic}-anew").write(0, rows(("c", 4, at(1), None)))
    assert numbers(kafka, topic) == [1, 2, 3, 4]
    with pytest.raises(CheckpointError, match="has taken epoch 7 of this checkpoint already"):
        other.write(6, rows(("c", 5, at(1), None)))


def test_keys_values_headers_and_times_are_those_of_the_columns(kafka: Broker, topic: str) -> None:
    one = writer(kafka, topic, key="k", headers="n, k", timestamp="ts", deleted="gone")
    one.write(0, rows(("é", 1, at(1), False), (None, None, at(2), None), ("x", 3, None, True)))
    found = {message.key(): message for message in kafka.messages(topic)}
    first, unkeyed, deleted = found["é".encode()], found[None], found[b"x"]
    assert json.loads(first.value()) == {"k": "é", "n": 1, "ts": "2024-01-01 00:00:01.005000"}
    assert first.headers() == [("n", b"1"), ("k", "é".encode())]
    assert first.timestamp()[1] == at(1).timestamp() * 1000
    assert json.loads(unkeyed.value())["n"] is None and unkeyed.headers() is None
    assert deleted.value() is None and time.time() * 1000 - deleted.timestamp()[1] < 600_000


def test_times_are_those_of_the_column_without_headers_too(kafka: Broker, topic: str) -> None:
    writer(kafka, topic, key="k", timestamp="ts").write(0, rows(("a", 1, at(1), None)))
    (message,) = kafka.messages(topic)
    assert message.timestamp()[1] == at(1).timestamp() * 1000


def test_a_key_of_several_columns_is_json_and_by_default_that_of_the_results(kafka: Broker, topic: str) -> None:
    writer(kafka, topic, results_key='["k", "ts"]').write(0, rows(("a", 1, at(1), None)))
    (message,) = kafka.messages(topic)
    assert json.loads(message.key()) == {"k": "a", "ts": "2024-01-01 00:00:01.005000"}


def test_a_raw_value_is_the_column_as_it_is(kafka: Broker, topic: str) -> None:
    schema = pa.schema([("n", pa.int64()), ("payload", pa.binary())])
    one = writer(kafka, topic, schema, format="raw", value="payload", key="n")
    one.write(0, rows((7, b"\x00\xff"), (8, None), schema=schema))
    assert {message.key(): message.value() for message in kafka.messages(topic)} == {b"7": b"\x00\xff", b"8": None}


def test_rows_of_a_key_stay_in_order_and_in_one_partition(kafka: Broker, topic: str) -> None:
    schema = pa.schema([("k", pa.int32()), ("n", pa.int32())])
    batch = pa.record_batch({"k": [each % 5 for each in range(120_000)], "n": range(120_000)}, schema)
    writer(kafka, topic, schema, key="k").write(0, iter([batch]))
    found: dict[bytes, list[Any]] = {}
    for message in kafka.messages(topic):
        found.setdefault(message.key(), []).append((message.partition(), json.loads(message.value())["n"]))
    for key, places in found.items():
        assert len({partition for partition, _ in places}) == 1
        assert [number for _, number in places] == list(range(int(key), 120_000, 5))


def test_messages_that_were_not_committed_are_not_seen_and_are_written_again(kafka: Broker, topic: str) -> None:
    one = writer(kafka, topic)
    one.write(0, rows(("a", 1, at(1), None)))
    producer: Any = one._open
    # What the broker does not have yet would be given up.
    producer.commit = lambda: producer.producer.flush() / 0
    with pytest.raises(ZeroDivisionError):
        one.write(1, rows(("a", 2, at(1), None)))
    writer(kafka, topic).write(1, rows(("a", 2, at(1), None)))
    assert numbers(kafka, topic) == [1, 2]
    assert numbers(kafka, topic, "read_uncommitted") == [1, 2, 2]


def test_a_writer_that_was_replaced_cannot_write(kafka: Broker, topic: str) -> None:
    old = writer(kafka, topic)
    old.write(0, rows(("a", 1, at(1), None)))
    writer(kafka, topic).write(1, rows(("a", 2, at(1), None)))
    with pytest.raises(RunError, match="another process has begun to write results of this query"):
        old.write(1, rows(("a", 9, at(1), None)))
    assert numbers(kafka, topic) == [1, 2]


def test_at_least_once_repeats_what_is_given_again(kafka: Broker, topic: str) -> None:
    for _ in range(2):
        writer(kafka, topic, delivery="at_least_once").write(0, rows(("a", 1, at(1), None), ("b", 2, at(1), None)))
    assert numbers(kafka, topic, "read_uncommitted") == [1, 1, 2, 2]


def test_a_call_that_the_client_never_answers_is_given_up_and_the_epoch_is_written_anew(
    kafka: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = threading.Event()

    class Losing:
        """A producer whose next note is lost, as the client loses one when its broker comes back just then."""

        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def __len__(self) -> int:
            return len(self.real)

        def send_offsets_to_transaction(self, *_: Any) -> None:
            lost.wait(60)

    monkeypatch.setattr("millrace.connectors.kafka.kafka_writer._LOST", 0.2)
    one: Any = writer(kafka, topic, retry_seconds="60")
    one.write(0, rows(("a", 1, at(1), None)))
    one._open.producer = Losing(one._open.producer)
    one.write(1, rows(("a", 2, at(1), None)))
    lost.set()
    assert numbers(kafka, topic) == [1, 2]


@pytest.mark.long
def test_an_epoch_waits_for_a_broker_that_comes_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.kafka_broker import running

    with running(tmp_path_factory.mktemp("restarted")) as broker:
        topic = broker.create("out", 1)
        one = writer(broker, topic, retry_seconds="120")
        one.write(0, rows(("a", 1, at(1), None)))
        broker.kill()
        waiting = threading.Thread(target=one.write, args=(1, rows(("a", 2, at(1), None), ("b", 3, at(1), None))))
        waiting.start()
        time.sleep(0.5)
        broker.start()
        waiting.join(240)
        assert not waiting.is_alive()
        one.write(2, rows(("a", 4, at(1), None)))
        assert numbers(broker, topic) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"tpoic": "x"}, 'no option "tpoic"'),
        ({"bootstrap_servers": ""}, "no broker is named"),
        ({"format": "xml"}, 'option "format" does not take "xml"'),
        ({"delivery": "twice"}, 'option "delivery" does not take "twice"'),
        ({"key": "kk"}, 'the option "key" names "kk"'),
        ({"deleted": "gone"}, "a message that deletes needs a key"),
        ({"deleted": "n", "key": "k"}, 'option "deleted" does not take "n"'),
        ({"timestamp": "k"}, 'option "timestamp" does not take "k"'),
        ({"format": "raw"}, "raw messages need a value"),
        ({"format": "raw", "value": "n"}, 'option "value" does not take "n"'),
        ({"value": "k"}, 'option "value" is for raw messages'),
        ({"retry_seconds": "x"}, 'option "retry_seconds" does not take "x"'),
        ({"compression.type": "none", "linger.sm": "5"}, 'does not take the options of the sink: .*"linger.sm"'),
    ],
)
def test_wrong_options_are_refused(kafka: Broker, topic: str, options: dict[str, str], fact: str) -> None:
    with pytest.raises(RequestError, match=fact):
        KafkaWriter.check({"bootstrap_servers": kafka.bootstrap_servers, "topic": topic, **options}, SCHEMA, "q")


def test_a_topic_that_is_not_there_and_a_broker_that_is_not_there_are_named(kafka: Broker) -> None:
    with pytest.raises(RunError, match='has no topic "nowhere"'):
        KafkaWriter.check({"bootstrap_servers": kafka.bootstrap_servers}, SCHEMA, "nowhere")
    with pytest.raises(RunError, match=r'the Kafka broker at "127\.0\.0\.1:1" does not answer'):
        KafkaWriter.check({"bootstrap_servers": "127.0.0.1:1"}, SCHEMA, "q")


def test_a_message_that_is_too_large_leaves_nothing_of_its_epoch(kafka: Broker, topic: str) -> None:
    with pytest.raises(RunError, match="a message is too large"):
        writer(kafka, topic).write(0, rows(("a", 1, at(1), None), ("x" * 2_000_000, 2, at(1), None)))
    assert kafka.messages(topic) == []
