"""How long a consumer of committed messages waits for the results of a window after its end, by the clock."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.measures.memory import end
from bench.queries.topics import PARTITIONS, message, result

RATE, WARM, LIVE = 1_000, 20.0, 20.0
"""Messages a second; the seconds that warm a system up after its first result, and those that count."""
_WORDS = 100
_START = 90.0
"""Seconds until the first result."""


def latencies(program: Sequence[str], servers: str, topic: str, output: str, window: int) -> list[float]:
    """Milliseconds of every result, of messages that come at a steady rate with the time of their sending."""
    with running(program), feeding(servers, topic), consumer_of(servers, output) as consumer:
        found, counts = [], time.monotonic() + _START
        began: float | None = None
        while time.monotonic() < counts:
            for each in consumer.consume(1_000, 0.001):
                if each.error() is not None:
                    continue
                now = time.time() * 1_000
                if began is None:
                    began = now + WARM * 1_000
                    counts = time.monotonic() + WARM + LIVE
                if result(each)[0] > began:
                    found.append(now - result(each)[0] - window * 1_000)
    return found


@contextmanager
def running(program: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program, with all that it starts, for the time of a block."""
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=sys.stderr, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        yield process
    finally:
        end(process.pid)
        process.wait()


@contextmanager
def feeding(servers: str, topic: str) -> Iterator[None]:
    """Messages at a steady rate, in turn to each partition."""
    done = Event()

    def feed() -> None:
        producer, began, sent = Producer({"bootstrap.servers": servers, "linger.ms": 0}), time.time(), 0
        while not done.is_set():
            own = message(f"w{sent % _WORDS}", 1, int(time.time() * 1_000))
            producer.produce(topic, **own)
            producer.poll(0)
            sent += 1
            time.sleep(max(0.0, began + sent / RATE - time.time()))
        producer.flush()

    thread = Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def consumer_of(servers: str, topic: str) -> Iterator[Any]:
    """A consumer of committed messages, from the first."""
    own = {
        "group.id": "bench",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 5,
    }
    consumer = Consumer({"bootstrap.servers": servers, **own})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    try:
        yield consumer
    finally:
        consumer.close()


def killed_in_the_midst(program: Sequence[str], servers: str, output: str) -> None:
    """Kill a program as soon as there are messages of its results, committed or not; then let it end."""
    own = {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(own)
    with running(program):
        while not any(consumer.get_watermark_offsets(TopicPartition(output, each))[1] for each in range(PARTITIONS)):
            time.sleep(0.005)
    consumer.close()
    with running(program) as process:
        assert process.wait() == 0, "the program failed when it was started again"
