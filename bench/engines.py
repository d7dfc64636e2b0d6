"""The systems that are measured, each as a function: rounds of the same count, in; seconds a round, out.

Each round reads all input there is, writes the windows that are complete to parquet files, and ends. The clock runs
from the start of the query to its end; starting Spark and one round to warm up are left out, for all alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.links import Links
from millrace.hosts.local import LocalRun
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session import open_session
from millrace.hosts.spark.stock import Count, Job, StockSpark
from millrace.language import parse_network
from millrace.plan.nodes import Network

KEYS = ("srcIP", "destIP")
_STATE = "spark.sql.streaming.stateStore.providerClass"
_STATE_CLASSES = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB = {_STATE: _STATE_CLASSES + "RocksDBStateStoreProvider"}
HDFS = {_STATE: _STATE_CLASSES + "HDFSBackedStateStoreProvider"}


@dataclass(frozen=True)
class Task:
    """What all systems do: count over these links, into a folder a round."""

    links: Links
    folder: Path
    rounds: int
    files_per_batch: int | None = 2

    def output(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"counts-{number}"

    def checkpoint(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"checkpoint-{number}"


@dataclass(frozen=True)
class Measured:
    """The seconds of each round, and what else a system tells of itself."""

    seconds: list[float]
    notes: dict[str, Any] = field(default_factory=dict)


def q1(task: Task, engine: str, number: int) -> Network:
    """Grouped Q1 over the links."""
    limit = "" if task.files_per_batch is None else f", max_files_per_trigger '{task.files_per_batch}'"
    streams = [
        f"""CREATE STREAM {link} (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
        FROM parquet OPTIONS (path '{task.links.path(link)}'{limit});"""
        for link in Links.NAMES
    ]
    query = f"""CREATE SINK counts TO parquet OPTIONS (path '{task.output(engine, number)}');
    CREATE QUERY per_minute INTO counts AS SELECT srcIP, destIP, count(*) AS n
    FROM {" UNION ".join(Links.NAMES)} [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY srcIP, destIP;"""
    return parse_network("\n".join([*streams, query]))


def local(task: Task, engine: str) -> Measured:
    """The local host, without a checkpoint."""
    seconds = []
    for number in range(task.rounds + 1):
        run = LocalRun(q1(task, engine, number), ending="available")
        seconds.append(_timed(run))
    return Measured(seconds[1:])


def spark_host(task: Task, engine: str, settings: Mapping[str, str] | None = None) -> Measured:
    """The Spark host, in a session with its own settings."""
    session = open_session("local[*]", log_file=task.folder / engine / "spark.log", settings=settings)
    seconds = []
    try:
        for number in range(task.rounds + 1):
            folder = task.checkpoint(engine, number)
            run = SparkRun(q1(task, engine, number), ending="available", checkpoint=folder, session=session)
            seconds.append(_timed(run))
    finally:
        session.stop()
    return Measured(seconds[1:])


def stock_spark(task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
    """Stock Spark in a process of its own, with default settings but for the state store."""
    links = [str(task.links.path(link)) for link in Links.NAMES]
    counts = [
        Count(
            links,
            str(task.output(engine, number)),
            str(task.checkpoint(engine, number)),
            "1 minute",
            KEYS,
            task.files_per_batch,
        )
        for number in range(task.rounds + 1)
    ]
    job = Job(counts, bounded=True, settings=dict(settings))
    rounds = [told for told in _told(StockSpark(job, task.folder / engine / "spark.log")) if "seconds" in told]
    return Measured([told["seconds"] for told in rounds[1:]], {"batches": rounds[-1]["batches"]})


def _timed(run: LocalRun | SparkRun) -> float:
    began = time.perf_counter()
    run.run()
    return time.perf_counter() - began


def _told(stock: StockSpark) -> Iterator[dict[str, Any]]:
    try:
        while (told := stock.said()) is not None:
            yield told
    finally:
        stock.stop()
