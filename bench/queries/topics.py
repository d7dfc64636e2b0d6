"""Messages of a topic of Kafka, and what a tumbling count of them gives.

Rules:
- Words are keys of messages, so that all of a word are in one partition: no system has to send them on to another
  partition. Times are the messages' own, too. Rows are out of order by less than a second.
- The last message of every partition is an hour later than all others: with it every window is complete, for every
  system.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Producer

PARTITIONS, WORDS, WINDOW, DELAY = 2, 1_000, 10, 5
"""As many partitions as cores; windows, and how late rows may be, are seconds."""
SECONDS = 600
FIRST = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000
"""Milliseconds."""
_END = FIRST + (SECONDS + 3_600) * 1_000
_SLICE = 100_000
Result = tuple[int, str, int]
"""The start of a window in milliseconds, a word, and how often it was there."""


def rows(count: int) -> pa.Table:
    """The rows, in the order in which they are sent."""
    random = np.random.default_rng(1)
    at = FIRST + 1_000 + np.arange(count) * (SECONDS * 1_000) // count - random.integers(0, 1_000, count)
    words = pa.array(random.integers(0, WORDS, count)).cast(pa.string())
    return pa.table(
        {"word": pc.binary_join_element_wise("w", words, ""), "amount": random.integers(0, 100, count), "ts": at}
    )


def message(word: str, amount: int, at: int) -> dict[str, Any]:
    """A message for `Producer.produce`; `at` is milliseconds."""
    value = json.dumps({"word": word, "amount": amount, "ts": iso(at)})
    return {"key": word.encode(), "value": value.encode(), "timestamp": at}


def iso(at: int) -> str:
    """Milliseconds as text."""
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "")


def send(servers: str, topic: str, table: pa.Table) -> None:
    """Send all rows, and what comes after them in each partition."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000})
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        texts = pc.strftime(part["ts"].cast(pa.timestamp("ms")), format="%Y-%m-%dT%H:%M:%S")
        pieces = (
            '{"word": "',
            part["word"],
            '", "amount": ',
            part["amount"].cast(pa.string()),
            ', "ts": "',
            texts,
            '"}',
        )
        values = pc.binary_join_element_wise(*pieces, "").cast(pa.binary())
        sent = pa.table({"key": part["word"].cast(pa.binary()), "value": values, "timestamp": part["ts"]}).to_pylist()
        for each in sent:
            producer.produce(topic, **each)
        producer.flush()
    for partition in range(PARTITIONS):
        producer.produce(topic, partition=partition, **message("end", 0, _END))
    producer.flush()


def truth(table: pa.Table) -> Iterator[Result]:
    """What a count must give."""
    starts = pc.multiply(pc.divide(table["ts"], WINDOW * 1_000), WINDOW * 1_000)
    counted = (
        pa.table({"start": starts, "word": table["word"]}).group_by(["start", "word"]).aggregate([([], "count_all")])
    )
    return zip(*(counted[name].to_pylist() for name in ("start", "word", "count_all")), strict=True)


def result(found: Any) -> Result:
    """The result in a message, however the system writes it."""
    value = json.loads(found.value())
    if "window_start" in value:
        at = datetime.fromisoformat(value["window_start"].replace("Z", "+00:00"))
        return int(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1_000), value["word"], value["n"]
    return value["start"], found.key().decode(), value["value"]


def compared(found: Iterable[Result], expected: Iterable[Result]) -> dict[str, int]:
    """How many results there are, and how many of them are missing, wrong or there twice."""
    here, there = Counter(found), Counter(expected)
    return {"results": here.total(), "missing": (there - here).total(), "wrong or twice": (here - there).total()}
