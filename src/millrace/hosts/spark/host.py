"""The Spark host: one streaming query a network, durable and distributed.

A checkpoint folder holds Spark's own checkpoint, the commit log, results of queries without a file sink, and a record
of what Spark will not let change later: the queries, the number of buckets and that of the stateful stages.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millrace.connectors import write_file
from millrace.connectors.inputs import as_rows, read_schema
from millrace.errors import CheckpointError
from millrace.hosts.checkpoint import fingerprint
from millrace.hosts.durable import make_folder
from millrace.hosts.outputs import file_sinks, kept_in_memory, prepare_folder
from millrace.hosts.report import Ending, Listeners, Report
from millrace.hosts.spark.buckets import bucket_ids
from millrace.hosts.spark.commits import CommitLog, Record
from millrace.hosts.spark.control import ControlSource
from millrace.hosts.spark.failures import unwrap
from millrace.hosts.spark.files import FilesSource, encode
from millrace.hosts.spark.low import StreamLowLevel
from millrace.hosts.spark.session import open_session, running_session
from millrace.hosts.spark.stage import Stage
from millrace.hosts.spark.writer import NetworkSink, clean
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.metrics import SourceMetrics
from millrace.plan.nodes import Connector, Network
from millrace.plan.stages import physical

_POLL = 0.1
_LAYOUT = 2


class SparkRun:
    """A network at work on Spark."""

    def __init__(
        self,
        network: Network,
        *,
        ending: Ending = "stopped",
        checkpoint: Path | None = None,
        feeds: Mapping[str, Iterable[Any]] | None = None,
        listeners: Listeners | None = None,
        master: str = "local[*]",
        trigger: str = "500 milliseconds",
        settings: Mapping[str, str] | None = None,
        verbose: bool = False,
        session: SparkSession | None = None,
    ) -> None:
        self.ending = ending
        self.trigger = trigger
        self._temporary = checkpoint is None
        self.folder = (checkpoint or Path(tempfile.mkdtemp(prefix="millrace-run-"))).resolve()
        make_folder(self.folder, "the checkpoint")
        self.log_file = self.folder / "spark.log"
        self.network = _with_feeds(network, feeds or {}, self.folder / "feeds")
        self.memory: dict[str, list[pa.Table]] = kept_in_memory(network.queries)
        plan = physical(network)
        self._fingerprint, self._levels = fingerprint(plan), plan.depth
        self._listeners = listeners or Listeners()
        self._stop = Event()
        self._commits = CommitLog(self.folder / "commits")
        self._seen = -1
        self._earlier = 0
        self._newest: Record = {}
        self._started = time.monotonic()
        fresh = not self._resumes()
        self._sinks = self._prepare_sinks(fresh=fresh)
        for stream in self.network.streams():
            StreamLowLevel(self.network, stream.name, (0,)).files()
        session = session or running_session()
        self._owns_session = session is None
        self.session = session or open_session(master, log_file=self.log_file, verbose=verbose, settings=settings or {})
        self.buckets = bucket_ids(self._fixed_buckets())

    # The parts that a checkpoint fixes

    def _resumes(self) -> bool:
        """Whether the folder holds this network's checkpoint; refuses another's."""
        record = self.folder / "network.json"
        if not record.exists():
            if (self.folder / "current.json").exists():
                raise CheckpointError(
                    f'"{self.folder}" is a checkpoint of the local host',
                    hint="Run with --on local, or name another folder.",
                )
            return False
        known = json.loads(record.read_text())
        fixed = {"layout": _LAYOUT, "network": self._fingerprint, "levels": self._levels}
        if {name: known.get(name) for name in fixed} != fixed:
            raise CheckpointError(
                f'the checkpoint "{self.folder}" belongs to other queries',
                hint="Run the queries it was made with, or start anew with another --checkpoint folder.",
            )
        newest = self._commits.newest() or {"batch": -1, "sources": {}}
        self._seen = int(newest["batch"])
        self._earlier = sum(known["received"] for known in newest["sources"].values())
        return True

    def _fixed_buckets(self) -> int:
        record = self.folder / "network.json"
        if not record.exists():
            chosen = {
                "layout": _LAYOUT,
                "network": self._fingerprint,
                "buckets": self.session.sparkContext.defaultParallelism,
                "levels": self._levels,
            }
            record.write_text(json.dumps(chosen))
        return int(json.loads(record.read_text())["buckets"])

    def _prepare_sinks(self, *, fresh: bool) -> dict[str, dict[str, Any]]:
        files = file_sinks(self.network.queries)
        sinks: dict[str, dict[str, Any]] = {}
        for query in self.network.queries:
            if query.name in files:
                connector = files[query.name].connector
                folder = prepare_folder(files[query.name], fresh=fresh).resolve()
                options = {key: value for key, value in connector.options.items() if key not in ("path", "mode")}
                sinks[query.name] = {"format": connector.format, "path": str(folder), "options": options}
            else:
                folder = self.folder / "results" / query.name
                sinks[query.name] = {"format": "parquet", "path": str(folder)}
            clean(folder)
        return sinks

    # The run

    def run(self) -> Report:
        """Work until the run ends in its way, or is stopped."""
        try:
            self._drive()
            self._look()
            return self.report()
        finally:
            if self._temporary:
                shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self) -> None:
        """Let the run end after its present micro-batch."""
        self._stop.set()

    def close(self) -> None:
        """End the Spark session, if this run opened it."""
        if self._owns_session:
            with suppress(PySparkException, OSError):
                self.session.stop()

    def _drive(self) -> None:
        # A run that was killed after marking the end left the marker behind, and files may have come since.
        self._commits.clear_end()
        self._pass()
        if self.ending == "end" and not self._stop.is_set():
            # An end marker that is there from the start would overtake the data.
            self._commits.mark_end()
            self._pass()

    def _pass(self) -> None:
        try:
            query = self._query()
            while query.isActive and not self._stop.wait(_POLL):
                self._look()
            query.stop() if self._stop.is_set() else query.awaitTermination()
        except (PySparkException, Py4JError) as error:
            self._look()
            raise unwrap(error, self.log_file) from None

    def _query(self) -> StreamingQuery:
        # Spark looks sources up in the session of the calling thread, which need not be the one that opened it.
        _make_active(self.session)
        self.session.conf.set("spark.sql.shuffle.partitions", str(len(self.buckets)))
        for source in (FilesSource, ControlSource, NetworkSink):
            self.session.dataSource.register(source)
        live = self.ending == "stopped"
        rows = self._exchanged(live)
        for level in range(1, self._levels + 1):
            stage = self._stage(level, live=live)
            rows = rows.groupBy("bucket").transformWithStateInPandas(
                stage, outputStructType=stage.shape, outputMode="append", timeMode="none"
            )
        writer = rows.writeStream.format("millrace_sink").outputMode("append")
        writer = writer.option("commits", str(self._commits.folder)).option("sinks", json.dumps(self._sinks))
        writer = writer.option("checkpointLocation", str(self.folder / "spark"))
        trigger = writer.trigger(processingTime=self.trigger) if live else writer.trigger(availableNow=True)
        return trigger.start()

    def _stage(self, level: int, *, live: bool) -> Stage:
        last = level == self._levels
        return Stage(self.network, self._fingerprint, self.buckets, level=level, last=last, live=live)

    def _exchanged(self, live: bool) -> DataFrame:
        """The exchange rows of all streams and of the control source, each source under its name."""
        commits = str(self._commits.folder)
        frames = []
        for stream in self.network.streams():
            low = StreamLowLevel(self.network, stream.name, tuple(self.buckets), live)
            reader = self.session.readStream.format("millrace_files").option("low_level", encode(low))
            reader = reader.option("stream", stream.name).option("commits", commits)
            limit = stream.connector.options.get("max_files_per_trigger")
            reader = reader.option("max_files", limit) if limit else reader
            frames.append(reader.name(f"stream_{stream.name}").load())
        control = self.session.readStream.format("millrace_control").option("commits", commits)
        control = control.option("buckets", json.dumps(self.buckets)).option("clock", "on" if live else "off")
        return reduce(DataFrame.union, [*frames, control.name("control").load()])

    # What it says of itself

    def _look(self) -> None:
        """Hand on what has been committed since the last look."""
        for batch, record in self._commits.records(after=self._seen):
            self._seen, self._newest = batch, record
            for name, rows in self._read_results(record):
                if name in self.memory:
                    self.memory[name].append(rows)
                self._listeners.results(name, rows)
            self._listeners.progress(self.report())

    def _read_results(self, record: Record) -> Iterator[tuple[str, pa.Table]]:
        """New rows of the queries whose results are wanted here rather than in files of the user's."""
        for query in self.network.queries:
            folder = Path(self._sinks[query.name]["path"])
            if query.sink.connector.format in ("memory", "console"):
                for name in record["outputs"].get(query.name, {}).get("files", []):
                    yield query.name, pq.read_table(folder / name, partitioning=None)

    def report(self) -> Report:
        """The run as of its last committed micro-batch."""
        metrics = self._newest.get("metrics", {})
        return Report(
            sources={name: _source_metrics(known) for name, known in self._newest.get("sources", {}).items()},
            results={query.name: metrics.get("results", {}).get(query.name, 0) for query in self.network.queries},
            held=metrics.get("held", 0),
            turned_away=metrics.get("turned_away", 0),
            state_bytes=metrics.get("state_bytes", 0),
            elapsed=time.monotonic() - self._started,
            steps=self._seen + 1,
            earlier=self._earlier,
        )


def _make_active(session: SparkSession) -> None:
    """Let this thread's calls find the session."""
    java_class = SparkSession._get_j_spark_session_class(session._jvm)
    java_class.setActiveSession(session._jsparkSession)


def _source_metrics(known: Mapping[str, int]) -> SourceMetrics:
    return SourceMetrics(
        received=known["received"],
        late=known["late"],
        quarantined=known["quarantined"],
        buffered=0,
        bound=known.get("bound", NO_BOUND),
        greatest=known.get("greatest", NO_BOUND),
        enabled=known.get("enabled", 0),
    )


def _with_feeds(network: Network, feeds: Mapping[str, Iterable[Any]], folder: Path) -> Network:
    """The network with each fed stream read from files that its feed, read to its end, was written to."""
    if not feeds:
        return network
    streams = {}
    for stream in network.streams():
        if stream.name in feeds:
            own = folder / stream.name
            own.mkdir(parents=True, exist_ok=True)
            schema = read_schema(stream, list(stream.schema.names))
            for number, item in enumerate(feeds[stream.name]):
                rows = pa.Table.from_batches([as_rows(item, schema, stream.name)])
                write_file(own / f"{number:08d}.parquet", "parquet", rows)
            streams[stream.name] = replace(stream, connector=Connector("parquet", {"path": str(own)}))
    return network.with_streams(streams)
