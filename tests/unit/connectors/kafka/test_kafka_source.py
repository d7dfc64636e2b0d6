"""The source of Kafka, without a broker: what it makes of answers that are none."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from millrace.connectors.kafka.kafka_source import KafkaSource
from millrace.connectors.source import Unreachable

confluent_kafka: Any = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


class Admin:
    """A client that has one partition, and an answer to each question for offsets."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)

    def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Any]:
        found: Future[Any] = Future()
        found.set_result(SimpleNamespace(offset=self.offsets.pop(0)))
        return dict.fromkeys(asked, found)

    def poll(self, _: float) -> None: ...


def source(*offsets: int, **options: str) -> KafkaSource:
    made = KafkaSource({"bootstrap_servers": "b:9092", "topic": "t", **options}, pa.schema({"n": pa.int64()}), "s")
    listed = {"t": SimpleNamespace(error=None, partitions={0: None})}
    made.__dict__["_admin"] = Admin(*offsets)
    made.__dict__["_consumer"] = SimpleNamespace(
        list_topics=lambda *_, **__: SimpleNamespace(topics=listed), close=lambda: None
    )
    return made


@pytest.mark.parametrize("late", [1, 2])
def test_an_end_that_the_broker_did_not_give_in_time_is_not_the_end_of_the_partition(late: int) -> None:
    answers = [0, 7, 7]
    assert source(*answers).spans()["t/0"].end == 7
    answers[late] = confluent_kafka.OFFSET_INVALID
    with pytest.raises(Unreachable, match="does not answer"):
        source(*answers).spans()


def test_a_start_that_the_broker_did_not_give_in_time_is_not_the_end_of_the_partition() -> None:
    made = source(0, 7, 7, confluent_kafka.OFFSET_INVALID, -1, start="2026-01-01")
    spans = made.spans()
    with pytest.raises(Unreachable, match="does not answer"):
        made.starts(spans)
    # There is no message at that time or later.
    assert made.starts(spans) == {"t/0": 7}
