"""The systems that count from topic to topic of Kafka: as engines that read what there is, and as programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from venv import EnvBuilder

from bench.queries.topics import DELAY, PARTITIONS, WINDOW
from bench.systems.engines import Measured, PeerFailed, Task
from bench.systems.stock_topics import TopicCount
from bench.systems.topic_loop import count as counted_in_a_loop
from millrace.experiments.stock_spark import Job
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork

SPARK_JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Spark's source and sink for Kafka: the newest that could be fetched; they run on Spark 4.3."""
_SCRIPT = """
CREATE STREAM events (word STRING, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL {delay} SECONDS
  FROM kafka OPTIONS (bootstrap_servers '{servers}', topic '{topic}'{limit});
CREATE SINK counts TO kafka OPTIONS (bootstrap_servers '{servers}', topic '{output}', key 'word'{delivery});
CREATE QUERY counts INTO counts AS
  SELECT window_start, word, count(*) AS n
  FROM events [RANGE {window} SECONDS SLIDE {window} SECONDS WA ts] GROUP BY word;
"""


@dataclass(frozen=True)
class TopicWork:
    """A count from one topic into another, in folder `folder`; times are seconds, `limit` is rows per micro-batch.

    Ours writes at least once if it is not `exact`.
    """

    servers: str
    topic: str
    output: str
    folder: Path
    limit: int | None = None
    window: int = WINDOW
    delay: int = DELAY
    exact: bool = True

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"checkpoint-{self.output}"

    def ours(self) -> str:
        """As a user of Millrace writes it."""
        limit = "" if self.limit is None else f", max_rows_per_trigger '{self.limit}'"
        own = asdict(self) | {"limit": limit, "delivery": "" if self.exact else ", delivery 'at_least_once'"}
        return _SCRIPT.format(**own)

    def stock(self) -> TopicCount:
        """As a user of Spark writes it."""
        times = f"{self.window} seconds", f"{self.delay} seconds"
        return TopicCount(self.servers, self.topic, self.output, str(self.checkpoint), *times, self.limit)


@dataclass(frozen=True)
class TopicTask(Task):
    """The count of a topic, as rounds of an engine: round 0 reads a smaller one, to warm up."""

    works: tuple[TopicWork, ...] = ()

    def network(self, engine: str, number: int) -> QueryNetwork:
        return parse_network(self.works[number].ours())

    def stock(self, engine: str, number: int) -> TopicCount:
        return self.works[number].stock()

    def checkpoint(self, engine: str, number: int) -> Path:
        return self.works[number].checkpoint

    @property
    def batches(self) -> int:
        return BATCHES


BATCHES = 8
"""Micro-batches of the measured round."""


def locally(task: TopicTask, engine: str) -> Measured:
    """The local host, with a checkpoint."""
    run = LocalRun(task.network(engine, 1), RunOptions("local", "available", checkpoint=task.checkpoint(engine, 1)))
    return _timed(run.run)


def in_a_loop(task: TopicTask, engine: str) -> Measured:
    """A loop in Python."""
    work = task.works[1]
    times = work.window * 1_000, work.delay * 1_000
    topics = work.servers, work.topic, work.output
    return _timed(lambda: counted_in_a_loop(*topics, *times, PARTITIONS, bounded=True))


def _timed(does: Callable[[], object]) -> Measured:
    began, used = time.perf_counter(), time.process_time()
    does()
    return Measured([time.perf_counter() - began], processor=time.process_time() - used)


def with_quix(task: TopicTask, engine: str, python: Path, rows: int) -> Measured:
    """Quixstreams; it ends when it has read as many rows."""
    ran = subprocess.run(quix_program(task.works[1], python, rows), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise PeerFailed(ran.stderr[-500:])
    seconds, processor = map(float, ran.stdout.split()[-2:])
    return Measured([seconds], processor=processor)


# Programs


def our_program(work: TopicWork, on: str, *more: str) -> list[str]:
    """The command line, with a checkpoint."""
    work.folder.mkdir(parents=True, exist_ok=True)
    script = work.folder / f"{work.output}.sql"
    script.write_text(work.ours())
    return [
        sys.executable,
        "-m",
        "millrace",
        "run",
        str(script),
        "--on",
        on,
        "--checkpoint",
        str(work.checkpoint),
        *more,
    ]


def stock_program(work: TopicWork, settings: Mapping[str, str], *, bounded: bool) -> list[str]:
    """Stock Spark; it ends when its standard input is closed, or when it has read what there is."""
    job = Job([work.stock()], bounded=bounded, settings=dict(settings))
    return [sys.executable, "-m", TopicCount.__module__, json.dumps(asdict(job))]


def loop_program(work: TopicWork) -> list[str]:
    """A loop in Python, for ever."""
    times = str(work.window * 1_000), str(work.delay * 1_000)
    return [
        sys.executable,
        "-m",
        counted_in_a_loop.__module__,
        work.servers,
        work.topic,
        work.output,
        *times,
        str(PARTITIONS),
    ]


def quix_program(work: TopicWork, python: Path, rows: int = 0) -> list[str]:
    """Quixstreams, for as many rows or for ever."""
    program, times = Path(__file__).with_name("quix_topics.py"), (str(work.window * 1_000), str(work.delay * 1_000))
    return [
        str(python),
        str(program),
        work.servers,
        work.topic,
        work.output,
        str(work.folder / "quix"),
        *times,
        str(rows),
    ]


def python_with_quix() -> Path | None:
    """A Python of its own that has quixstreams, made once in the user's cache folder; None where it cannot be had."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace-tests" / "quixstreams"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        EnvBuilder(with_pip=True, clear=True).create(folder)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", "quixstreams"], check=False).returncode:
            return None
        (folder / "done").touch()
    return python
