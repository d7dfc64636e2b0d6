"""A window count, or another query, in stock Spark Structured Streaming: the system that we are compared with.

It runs in a process and a Spark of its own, with Spark's default settings except the number of shuffle partitions and
what the caller asks for. It reports lines of JSON on standard output, and ends when its standard input is closed, so
that it never outlives its caller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "srcIP string, destIP string, len int, ts timestamp"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}


@dataclass(frozen=True)
class StockCount:
    """One `SELECT keys, count(*)` per window over the union of the links' folders, into a folder of parquet files.

    Windows are tumbling, or begin every `slide`. With `most`, only the keys with the greatest count of a window count.
    """

    links: Sequence[str]
    output: str
    checkpoint: str
    window: str
    keys: Sequence[str] = ()
    files_per_batch: int | None = None
    slide: str | None = None
    schema: str = SCHEMA
    time: str = "ts"
    most: bool = False


class StockQuery(Protocol):
    """What every query of a job has: the folders of its results and its checkpoint."""

    @property
    def output(self) -> str:
        """A folder of parquet files."""

    @property
    def checkpoint(self) -> str:
        """A folder."""


@dataclass(frozen=True)
class Job:
    """Queries to run one after the other: each to the end of its input, or a single one until the caller stops it.

    `settings` are those of the session; `each` has further ones for every query, of the kind that a session can change.
    """

    queries: Sequence[StockQuery]
    bounded: bool
    master: str = "local[*]"
    settings: Mapping[str, str] = field(default_factory=dict)
    each: Sequence[Mapping[str, str]] = ()


class StockSpark:
    """A process that runs a job on stock Spark; `module` is run in it, and defines the type of its queries."""

    def __init__(self, job: Job, log_file: Path, module: str = __name__) -> None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(asdict(job))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": _python_path()},
            )

    def next_report(self) -> dict[str, Any] | None:
        """The next report, waited for; None when the process has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                report: dict[str, Any] = json.loads(line)
                return report
        return None

    @property
    def alive(self) -> bool:
        """True if the process still runs."""
        return self._process.poll() is None

    def stop(self, patience: float = 15.0) -> None:
        """Ask the process to end, and kill it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _python_path() -> str:
    """Where the process finds this package, installed or not."""
    own = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])


def windows_counted(session: SparkSession, count: StockCount) -> DataFrame:
    """The query as a user of Spark would write it. The links are ordered, hence watermarks without a delay."""
    links = []
    for folder in count.links:
        reader = session.readStream.schema(count.schema)
        if count.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", count.files_per_batch)
        links.append(reader.parquet(folder).withWatermark(count.time, "0 seconds"))
    window = f.window(count.time, count.window, count.slide)
    counted = reduce(DataFrame.union, links).groupBy(window, *count.keys).agg(f.count("*").alias("n"))
    if count.most:
        counted = _with_most(counted, count.keys)
    return counted.select(
        f.col("window.start").alias("window_start"), f.col("window.end").alias("window_end"), *count.keys, "n"
    )


def _with_most(counted: DataFrame, keys: Sequence[str]) -> DataFrame:
    """All rows with the greatest count of their window: streams have no rank(), but a second aggregate."""
    row = f.struct(*keys, "n")
    windows = counted.groupBy("window").agg(f.max("n").alias("most"), f.collect_list(row).alias("rows"))
    return windows.select("window", f.inline(f.expr("filter(rows, row -> row.n = most)")))


def _started(frame: DataFrame, query: StockQuery, bounded: bool) -> StreamingQuery:
    writer = frame.writeStream.outputMode("append").format("parquet")
    writer = writer.option("path", query.output).option("checkpointLocation", query.checkpoint)
    return (writer.trigger(availableNow=True) if bounded else writer).start()


def _session(job: Job) -> SparkSession:
    builder = SparkSession.Builder().appName("stock").master(job.master)
    for name, value in {**_QUIET, **job.settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if "spark.sql.shuffle.partitions" not in job.settings:
        session.conf.set("spark.sql.shuffle.partitions", str(session.sparkContext.defaultParallelism))
    return session


def _report(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def carry_out(
    text: str,
    kind: Callable[..., StockQuery],
    frame: Callable[[SparkSession, Any], DataFrame],
    started: Callable[[DataFrame, Any, bool], StreamingQuery] = _started,
) -> None:
    """Run a job that is given as JSON; its queries are of type `kind`, which `frame` and `started` can write."""
    values = json.loads(text)
    queries = [kind(**each) for each in values.pop("queries")]
    job = Job(queries=queries, **values)
    session = _session(job)
    _report(started=True)
    for place, asked in enumerate(job.queries):
        for name, value in (job.each[place] if job.each else {}).items():
            session.conf.set(name, value)
        began = time.perf_counter()
        query = started(frame(session, asked), asked, job.bounded)
        if not job.bounded:
            threading.Thread(target=lambda query=query: (sys.stdin.read(), query.stop()), daemon=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        batches = [each["durationMs"] for each in query.recentProgress]
        _report(seconds=seconds, batches=batches, rows=sum(each["numInputRows"] for each in query.recentProgress))
    session.stop()


if __name__ == "__main__":
    carry_out(sys.argv[1], StockCount, windows_counted)
