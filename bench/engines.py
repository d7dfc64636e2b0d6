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

from bench.workload import Workload
from millrace.hosts.local import LocalRun
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session import open_session
from millrace.hosts.spark.stock import Count, Job, StockSpark
from millrace.plan.nodes import Network

_STATE = "spark.sql.streaming.stateStore.providerClass"
_STATE_CLASSES = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB = {_STATE: _STATE_CLASSES + "RocksDBStateStoreProvider"}
HDFS = {_STATE: _STATE_CLASSES + "HDFSBackedStateStoreProvider"}


@dataclass(frozen=True)
class Task:
    """What all systems do: the same count, into a folder a round."""

    workload: Workload
    folder: Path
    rounds: int
    files_per_batch: int | None = 2

    def output(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"counts-{number}"

    def checkpoint(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"checkpoint-{number}"

    def network(self, engine: str, number: int) -> Network:
        return self.workload.ours(self.output(engine, number), self.files_per_batch)

    def stock(self, engine: str, number: int) -> Count:
        output, checkpoint = self.output(engine, number), self.checkpoint(engine, number)
        return self.workload.stock(output, checkpoint, self.files_per_batch)


@dataclass(frozen=True)
class Measured:
    """The seconds of each round, and what else a system tells of itself."""

    seconds: list[float]
    notes: dict[str, Any] = field(default_factory=dict)


def local(task: Task, engine: str) -> Measured:
    """The local host, without a checkpoint."""
    seconds = []
    for number in range(task.rounds + 1):
        run = LocalRun(task.network(engine, number), ending="available")
        seconds.append(_timed(run))
    return Measured(seconds[1:])


def spark_host(task: Task, engine: str, settings: Mapping[str, str] | None = None) -> Measured:
    """The Spark host, in a session with its own settings."""
    session = open_session("local[*]", log_file=task.folder / engine / "spark.log", settings=settings)
    seconds = []
    try:
        for number in range(task.rounds + 1):
            folder = task.checkpoint(engine, number)
            run = SparkRun(task.network(engine, number), ending="available", checkpoint=folder, session=session)
            seconds.append(_timed(run))
    finally:
        session.stop()
    return Measured(seconds[1:])


class PeerFailed(Exception):
    """A peer did not get through the workload."""


def stock_spark(task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
    """Stock Spark in a process of its own, with default settings but for the state store."""
    counts = [task.stock(engine, number) for number in range(task.rounds + 1)]
    job = Job(counts, bounded=True, settings=dict(settings))
    rounds = [told for told in _told(StockSpark(job, task.folder / engine / "spark.log")) if "seconds" in told]
    if len(rounds) <= task.rounds:
        raise PeerFailed(f"ended after {len(rounds)} of {task.rounds + 1} rounds")
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
