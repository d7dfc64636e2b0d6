"""The oldest and newest messages of a topic of Kafka, as they are: values and keys as bytes, and Kafka's own time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.connectors.kafka.kafka_source import KafkaSource
from millrace.connectors.opened_source import open_source
from millrace.connectors.source import PartitionSpan
from millrace.errors import RequestError
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.endpoints import Connector, Stream

VALUE, KEY, STAMP = "value", "kafka_key", "kafka_timestamp"
MESSAGE = pa.schema([(VALUE, pa.binary()), (KEY, pa.binary()), (STAMP, TIMESTAMP)])
MOST_MESSAGES = 100_000
MOST_BYTES = 1 << 26
_ADDRESS = re.compile(r"kafka://(?P<servers>[^/]+)/(?P<topic>[^/]+)")


@dataclass(frozen=True)
class TopicMessages:
    """Messages by partition, in their order; `whole` if these are all there are. `options` are those of a stream."""

    path: str
    options: Mapping[str, str]
    partitions: Mapping[str, pa.Table]
    whole: bool

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.options["topic"]


def is_topic(path: str) -> bool:
    """True if a path names a topic, or is to.

    >>> is_topic("kafka://localhost:9092/clicks"), is_topic("clicks.csv")
    (True, False)
    """
    return path.startswith("kafka://")


def topic_messages(path: str, options: Mapping[str, str]) -> TopicMessages:
    """Messages of a topic; `options` are more of those that a stream would have, such as passwords."""
    address = _ADDRESS.fullmatch(path)
    if address is None:
        raise RequestError(
            f'"{path}" does not name a topic',
            hint="Write kafka://host:9092/topic, or kafka://host:9092,other:9092/topic.",
        )
    options = {"bootstrap_servers": address["servers"], "topic": address["topic"], **options}
    stream = Stream(
        address["topic"],
        MESSAGE,
        TimeContract("latent", ets="on_demand"),
        Connector("kafka", {**options, "format": "raw"}),
    )
    source = open_source(stream, MESSAGE)
    assert isinstance(source, KafkaSource)
    try:
        spans = source.spans()
        most = _Share(MOST_MESSAGES // 2 // len(spans), MOST_BYTES // 2 // len(spans))
        partitions = {name: most.messages(source, name, span) for name, span in sorted(spans.items(), key=_numbered)}
    finally:
        source.close()
    if not any(map(len, partitions.values())):
        raise RequestError(f'topic "{address["topic"]}" has no messages', hint="Send it some first.")
    return TopicMessages(path, options, partitions, most.whole)


def _numbered(each: tuple[str, PartitionSpan]) -> int:
    return int(each[0].rpartition("/")[2])


@dataclass
class _Share:
    """How many messages, and about how many bytes, are read at each end of a partition; `whole` if that was all."""

    messages_most: int
    bytes_most: int
    whole: bool = True

    def messages(self, source: KafkaSource, name: str, span: PartitionSpan) -> pa.Table:
        """The oldest and newest messages of a partition."""
        first, end = span.first, span.end
        if end - first <= 2 * self.messages_most:
            return self._read(source, name, first, end, 2 * self.bytes_most)
        self.whole = False
        ends = ((first, first + self.messages_most), (end - self.messages_most, end))
        return pa.concat_tables([self._read(source, name, *each, self.bytes_most) for each in ends])

    def _read(self, source: KafkaSource, name: str, start: int, stop: int, most: int) -> pa.Table:
        found: list[pa.RecordBatch] = []
        for piece in source.read(name, start, stop):
            found.append(piece.rows)
            most -= piece.rows.nbytes
            if most < 0 and piece.position < stop:
                self.whole = False
                break
        return pa.Table.from_batches(found, MESSAGE)
