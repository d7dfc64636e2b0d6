"""The systems that are measured, each as a function: it gets rounds of the same query, and returns the seconds of each.

Each round reads all input there is, writes the results that are certain to parquet files, and ends. The clock runs
from the start of the query to its end; starting Spark and one round to warm up are left out, for all alike. On Spark a
second clock runs from commit to commit: how long a micro-batch takes once the query is under way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.measures.answers import opened
from bench.queries.workload import PeerWork, Work
from millrace.connectors.native import DATAFRAME
from millrace.experiments.stock_spark import Job, StockQuery, StockSpark
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session.session import open_session
from millrace.hosts.spark.source.native_streams import spark_schema
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.query_network import QueryNetwork

_STATE = "spark.sql.streaming.stateStore.providerClass"
_STATE_CLASSES = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB = {_STATE: _STATE_CLASSES + "RocksDBStateStoreProvider"}
HDFS = {_STATE: _STATE_CLASSES + "HDFSBackedStateStoreProvider"}


@dataclass(frozen=True)
class Task:
    """The same query, into a folder a round. Round 0, on the first `warm` files or all, warms up."""

    workload: Work
    folder: Path
    rounds: int
    files_per_batch: int | None = 2
    warm: int | None = None

    def output(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"results-{number}"

    def checkpoint(self, engine: str, number: int) -> Path:
        return self.folder / engine / f"checkpoint-{number}"

    def network(self, engine: str, number: int) -> QueryNetwork:
        return self._work(number).ours(self.output(engine, number), self.files_per_batch)

    def stock(self, engine: str, number: int) -> StockQuery:
        peer: PeerWork = self._work(number)  # type: ignore[assignment]
        return peer.stock(self.output(engine, number), self.checkpoint(engine, number), self.files_per_batch)

    def _work(self, number: int) -> Work:
        if number or self.warm is None:
            return self.workload
        return shortened(self.workload, self.folder / "warm-up", self.warm)

    @property
    def batches(self) -> int:
        """Micro-batches that bring rows."""
        most = max(len(list(folder.glob("*.parquet"))) for folder in self.workload.folders.values())
        return 1 if self.files_per_batch is None else -(-most // self.files_per_batch)


@dataclass(frozen=True)
class Measured:
    """The seconds of each round, and on Spark those from commit to commit of micro-batches that brought rows.

    Of a system that is one process, the processor time of the last round may be there too.
    """

    seconds: list[float]
    batch_seconds: list[float] = field(default_factory=list)
    processor: float | None = None


Engine = Callable[[Task, str], Measured]


def shortened(workload: Work, folder: Path, files: int) -> Work:
    """The same query over the first files of each stream."""
    folders = {name: folder / name for name in workload.folders}
    for name, own in folders.items():
        own.mkdir(parents=True, exist_ok=True)
        for path in sorted(workload.folders[name].glob("*.parquet"))[:files]:
            if not (own / path.name).exists():
                os.link(path, own / path.name)
    return replace(workload, folders=folders)  # type: ignore[type-var]


def local(task: Task, engine: str) -> Measured:
    """The local host, without a checkpoint."""
    seconds = []
    for number in range(task.rounds + 1):
        run = LocalRun(task.network(engine, number), RunOptions("local", "available"))
        seconds.append(_timed(run))
    return Measured(seconds[1:])


def spark_host(task: Task, engine: str, settings: Mapping[str, str] | None = None, *, frames: bool = False) -> Measured:
    """The Spark host, in a session with its own settings; with `frames` Spark reads the files."""
    log = task.folder / engine / "spark.log"
    session = open_session("local[*]", log_file=log, settings=settings, reads_rows=frames)
    try:
        return spark_rounds(task, engine, session, frames=frames)
    finally:
        session.stop()


def spark_rounds(task: Task, engine: str, session: SparkSession, *, frames: bool = False) -> Measured:
    """The Spark host, in a session that is there."""
    seconds: list[float] = []
    for number in range(task.rounds + 1):
        folder, network = task.checkpoint(engine, number), task.network(engine, number)
        feeds = {each.name: _frame(each, session) for each in network.streams()} if frames else {}
        fed = [each for each in network.streams() if each.name in feeds]
        network = network.with_streams({each.name: replace(each, connector=Connector(DATAFRAME)) for each in fed})
        run = SparkRun(network, RunOptions("spark", "available", checkpoint=folder), session=session, feeds=feeds)
        seconds.append(_timed(run))
    return Measured(seconds[1:], _between_commits(task, engine, "spark/commits"))


def _frame(stream: Stream, session: SparkSession) -> DataFrame:
    """The files of a stream as Spark itself reads them."""
    options = stream.connector.options
    reader = session.readStream.name(stream.name).schema(spark_schema(stream.schema))
    if limit := options.get("max_files_per_trigger"):
        reader = reader.option("maxFilesPerTrigger", limit)
    return reader.parquet(options["path"])


class PeerFailed(Exception):
    """A peer did not get through the workload."""


def stock_spark(task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
    """Stock Spark in a process of its own, with default settings but for those that are given."""
    queries = [task.stock(engine, number) for number in range(task.rounds + 1)]
    job = Job(queries, bounded=True, settings=dict(settings))
    process = StockSpark(job, task.folder / engine / "spark.log", type(queries[0]).__module__)
    rounds = [report for report in stock_reports(process) if "seconds" in report]
    if len(rounds) <= task.rounds:
        raise PeerFailed(f"ended after {len(rounds)} of {task.rounds + 1} rounds")
    return Measured([report["seconds"] for report in rounds[1:]], _between_commits(task, engine, "commits"))


def duck(task: Task, engine: str) -> Measured:
    """DuckDB over the finished input, from file to file: a batch engine is no peer, but gives an orientation."""
    seconds = []
    for number in range(task.rounds + 1):
        output = task.output(engine, number)
        output.mkdir(parents=True)
        with opened(task.workload) as database:
            began = time.perf_counter()
            database.execute(f"COPY ({task.workload.truth()}) TO '{output / 'part-0.parquet'}' (FORMAT parquet)")
            seconds.append(time.perf_counter() - began)
    return Measured(seconds[1:])


def _between_commits(task: Task, engine: str, folder: str) -> list[float]:
    """Seconds from commit to commit, in all measured rounds: the first micro-batch of a round has the start in it."""
    seconds: list[float] = []
    for number in range(1, task.rounds + 1):
        commits = [task.checkpoint(engine, number) / folder / str(batch) for batch in range(task.batches)]
        moments = [commit.stat().st_mtime_ns for commit in commits if commit.exists()]
        seconds += [(after - before) / 1e9 for before, after in pairwise(moments)]
    return seconds


def _timed(run: LocalRun | SparkRun) -> float:
    began = time.perf_counter()
    run.run()
    return time.perf_counter() - began


def stock_reports(stock: StockSpark) -> Iterator[dict[str, Any]]:
    """What a process says until it ends; it is ended with the reading."""
    try:
        while (report := stock.next_report()) is not None:
            yield report
    finally:
        stock.stop()
