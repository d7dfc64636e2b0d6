"""A tumbling count from topic to topic as a loop over messages in Python: the client and a dict, and nothing else.

It keeps no checkpoint and has no transactions: it is the least that such a program can do.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

_BATCH = 10_000


class Counts:
    """Counts per window and word, and the time that each partition has reached."""

    def __init__(self, producer: Producer, topic: str, window: int, delay: int, partitions: int) -> None:
        self._producer, self._topic, self._window, self._delay = producer, topic, window, delay
        self._counts: dict[int, dict[str, int]] = {}
        self._reached = dict.fromkeys(range(partitions), 0)

    def add(self, message: Any) -> None:
        """Count a message."""
        row = json.loads(message.value())
        at = int(datetime.fromisoformat(row["ts"]).replace(tzinfo=UTC).timestamp() * 1_000)
        counts = self._counts.setdefault(at // self._window * self._window, {})
        counts[row["word"]] = counts.get(row["word"], 0) + 1
        self._reached[message.partition()] = max(self._reached[message.partition()], at)

    def release(self) -> None:
        """Write the windows that are complete."""
        bound = min(self._reached.values()) - self._delay
        for start in sorted(each for each in self._counts if each + self._window <= bound):
            for word, count in self._counts.pop(start).items():
                value = json.dumps({"start": start, "value": count})
                self._producer.produce(self._topic, value.encode(), word.encode())
            self._producer.poll(0)


def count(servers: str, topic: str, output: str, window: int, delay: int, partitions: int, *, bounded: bool) -> None:
    """Count all that there is, or for ever; times are milliseconds."""
    own = {"group.id": "loop", "enable.auto.commit": False, "enable.partition.eof": bounded, "fetch.wait.max.ms": 20}
    consumer = Consumer({"bootstrap.servers": servers, **own})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    counts, ended = Counts(producer, output, window, delay, partitions), 0
    while ended < partitions:
        for message in consumer.consume(_BATCH, 0.1 if bounded else 0.005):
            if message.error() is None:
                counts.add(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended += 1
        counts.release()
    producer.flush()
    consumer.close()


if __name__ == "__main__":
    servers, topic, output, window, delay, partitions = sys.argv[1:]
    count(servers, topic, output, int(window), int(delay), int(partitions), bounded=False)
