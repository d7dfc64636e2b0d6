"""A tumbling count from topic to topic of Kafka: local, Spark host, stock Spark, a loop in Python, quixstreams.

Rules:
- All systems read the same topic of the same broker (`tests/kafka_broker.py`), and write to topics of their own.
- Ours write exactly once, with a checkpoint. Stock Spark and quixstreams write at least once; the loop keeps nothing.
- Stock Spark has its own source and sink, the store that was faster in a trial, and micro-batches as large as
  ours. The Spark host is measured before it and after it.
- quixstreams is fetched into an environment of its own, and gets a twentieth of the rows.
- Latency is from the end of a window of a second, by the clock, until a consumer of committed messages has its results.
- Killed: each Spark is killed once while it writes its first results, and started again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import count as counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.measures import result_log
from bench.measures.topic_latency import RATE, killed_in_the_midst, latencies
from bench.queries import topics
from bench.queries.topics import PARTITIONS, compared, result, send, truth
from bench.systems.engines import Engine, PeerFailed, spark_host, stock_reports, stock_spark
from bench.systems.isolated_process import measured_alone
from bench.systems.stock_settings import ALWAYS, Variant
from bench.systems.stock_settings import LIVE as TRIED
from bench.systems.stock_topics import TopicCount
from bench.systems.topic_systems import (
    BATCHES,
    SPARK_JARS,
    TopicTask,
    TopicWork,
    in_a_loop,
    locally,
    loop_program,
    our_program,
    python_with_quix,
    quix_program,
    stock_program,
    with_quix,
)
from millrace.experiments.stock_spark import Job, StockSpark
from tests.kafka_broker import Broker, jars, running

FEW = 20
"""quixstreams gets that part of the rows."""
OURS, LOCAL, LOOP, QUIX = "Spark host", "local host", "loop in Python", "quixstreams"
REPEATS = "local host, at least once"


PARTS = ("speeds", "loops", "latencies", "loop_latencies", "kills")


def run(rows: int, rounds: int, only: Sequence[str] = ()) -> None:
    """Measure all systems, in so many rounds, and append the results; `only` these parts."""
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder, running(Path(folder) / "broker") as broker:
        measurement = _Measurement(broker, rows, rounds, Path(folder))
        for part in only or PARTS:
            getattr(measurement, part)()


class _Measurement:
    """All parts, on one broker."""

    def __init__(self, broker: Broker, rows: int, rounds: int, folder: Path) -> None:
        self._rounds = rounds
        self._broker, self._folder, self._around = broker, folder, result_log.circumstances()
        self._servers, self._numbers = broker.bootstrap_servers, counter()
        self._rows = {"all": rows, "warm": rows // 2, "few": rows // FEW}
        self._jars = ",".join(map(str, jars("spark-kafka", *SPARK_JARS, alone=True)))
        self._quix = python_with_quix()
        for topic, number in self._rows.items():
            broker.create(topic, PARTITIONS)
            send(self._servers, topic, topics.rows(number))

    def speeds(self) -> None:
        """Rows per second of both Sparks, ours before each round of the other and after the last."""
        peer: Engine = partial(stock_spark, settings=self._settings)
        found = [(OURS, self._speed(OURS, spark_host, "all"))]
        for _ in range(self._rounds):
            found += [
                (self._stock, self._speed(self._stock, peer, "all")),
                (OURS, self._speed(OURS, spark_host, "all")),
            ]
        _compare(found, OURS, self._stock)

    def loops(self) -> None:
        """Rows per second of what is one process of Python."""
        found = []
        for _ in range(self._rounds):
            found += [(LOCAL, self._speed(LOCAL, locally, "all")), (LOOP, self._speed(LOOP, in_a_loop, "all"))]
        if self._quix is not None:
            engine = partial(with_quix, python=self._quix, rows=self._rows["few"] + PARTITIONS)
            found += [(QUIX, self._speed(QUIX, engine, "few"))]
        _compare(found, LOCAL, LOOP)
        _compare(found, LOCAL, QUIX)

    def _speed(self, system: str, engine: Engine, topic: str) -> Mapping[str, Any]:
        rows, line = self._rows[topic], {"part": "throughput", "system": system, "rows": self._rows[topic]}
        works = (self._work("warm"), self._work(topic))
        task = TopicTask(None, works[0].folder, 1, works=works)  # type: ignore[arg-type]
        try:
            found = measured_alone(engine, task, system, itself="stock" not in system)
        except PeerFailed as error:
            return self._write({**line, "failed": str(error)})
        line |= {"seconds": round(found.measured.seconds[0], 3), "peak_bytes": found.peak, **self._answers(works[1])}
        if line["missing"] or line["wrong or twice"]:
            return self._write({**line, "failed": "wrong answers"})
        line["rows/s"] = round(rows / found.measured.seconds[0])
        if found.measured.processor is not None:
            line["rows per processor second"] = round(rows / found.measured.processor)
        if found.measured.batch_seconds:
            line["rows/s under way"] = round(rows / BATCHES / median(found.measured.batch_seconds))
        return self._write(line)

    def _answers(self, work: TopicWork) -> dict[str, int]:
        expected = truth(topics.rows(self._rows[work.topic]))
        return compared(map(result, self._broker.messages(work.output)), expected)

    def _work(self, topic: str, **more: Any) -> TopicWork:
        """A work of its own into a new topic."""
        number = next(self._numbers)
        output, folder = self._broker.create(f"results-{number}", PARTITIONS), self._folder / str(number)
        return TopicWork(self._servers, topic, output, folder, **{"limit": -(-self._rows["all"] // BATCHES), **more})

    @cached_property
    def _best(self) -> Variant:
        return self._fastest()

    @property
    def _stock(self) -> str:
        return f"stock Spark, {self._best.store}"

    @property
    def _settings(self) -> dict[str, str]:
        return self._with_jars(self._best)

    def _with_jars(self, variant: Variant) -> dict[str, str]:
        return {**ALWAYS, **variant.settings(), "spark.jars": self._jars}

    def _fastest(self) -> Variant:
        """The settings with which stock Spark is fastest for the smaller topic, after a round with each."""
        tried = [*TRIED, *TRIED]
        works = [self._work("warm") for _ in tried]
        each = [variant.settings() for variant in tried]
        job = Job([work.stock() for work in works], bounded=True, settings=self._with_jars(tried[0]), each=each)
        process = StockSpark(job, self._folder / "spark.log", TopicCount.__module__)
        seconds = [report["seconds"] for report in stock_reports(process) if "seconds" in report]
        if len(seconds) < len(tried):
            raise PeerFailed((self._folder / "spark.log").read_text()[-2000:])
        measured = list(zip(seconds, tried, strict=True))[len(TRIED) :]
        for found, variant in measured:
            self._write({"part": "trial", "variant": variant.data(), "seconds": round(found, 2)})
        return min(measured, key=lambda pair: pair[0])[1]

    def latencies(self) -> None:
        """Milliseconds from the end of a window to its results, of both Sparks."""
        for system in (OURS, self._stock):
            self._latency(system)

    def loop_latencies(self) -> None:
        """The same of what is one process of Python."""
        for system in (LOCAL, REPEATS, LOOP, *([QUIX] if self._quix else [])):
            self._latency(system)

    def _latency(self, system: str) -> None:
        topic = self._broker.create(f"live-{next(self._numbers)}", PARTITIONS)
        work = self._work(topic, limit=None, window=1, delay=0, exact=system != REPEATS)
        found = latencies(self._program(system, work), self._servers, work.topic, work.output, work.window)
        p50, p99 = np.quantile(found, [0.5, 0.99]).round(1).tolist() if found else (None, None)
        line = {"part": "latency", "system": system, "messages/s": RATE, "results": len(found)}
        self._write({**line, "p50_ms": p50, "p99_ms": p99})

    def _program(self, system: str, work: TopicWork) -> Sequence[str]:
        if system in (LOCAL, REPEATS):
            return our_program(work, "local", "--commit-interval", "20 milliseconds")
        if system == OURS:
            return our_program(work, "spark", "--trigger", "0 seconds")
        if system == LOOP:
            return loop_program(work)
        if system == QUIX:
            assert self._quix is not None
            return quix_program(work, self._quix)
        return stock_program(work, self._settings, bounded=False)

    def kills(self) -> None:
        """Results that are there twice, or not at all, after a kill."""
        work = self._work("all")
        killed_in_the_midst(stock_program(work, self._settings, bounded=True), self._servers, work.output)
        self._write({"part": "killed", "system": self._stock, **self._answers(work)})
        work = self._work("all")
        killed_in_the_midst(our_program(work, "spark", "--available-now"), self._servers, work.output)
        self._write({"part": "killed", "system": OURS, **self._answers(work)})

    def _write(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        result_log.append("kafka", self._around, [dict(line)])
        print(", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
        return line


def _compare(found: Sequence[tuple[str, Mapping[str, Any]]], own: str, peer: str) -> None:
    """Print how much faster one system is than another."""
    for figure in ("rows/s", "rows/s under way", "rows per processor second"):
        both = [[line[figure] for name, line in found if name == each and figure in line] for each in (own, peer)]
        if all(both):
            print(f"{own}: {median(both[0]) / median(both[1]):.1f} x {peer}, {figure}", flush=True)
