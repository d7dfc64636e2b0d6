"""Spark's streaming query of a network, which can be held between two micro-batches and started again.

Rules:
- Where Spark itself reads streams, the source cannot be held: there the query is ended and started again.
- A micro-batch that was begun and not ended is run again first, by its own plan: its results may have been written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from threading import Event, Lock

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millrace.connectors.native import is_native
from millrace.errors import RunError
from millrace.hosts.report import Ending
from millrace.hosts.spark.commit_log.checkpoint_manifest import CheckpointManifest
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.exchange.buckets import bucket_ids
from millrace.hosts.spark.exchange.rows import EXCHANGE, OUTPUT
from millrace.hosts.spark.failures import unwrap
from millrace.hosts.spark.sink.network_sink import NetworkSink
from millrace.hosts.spark.source.native_streams import native_rows
from millrace.hosts.spark.source.network_source import NetworkSource
from millrace.hosts.spark.source.python_streams import PythonStreams
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.hosts.spark.stage.shipped_stage import ShippedStage
from millrace.hosts.system_clock import SetBack
from millrace.kernel.elements import Microseconds
from millrace.plan.nodes.query_network import QueryNetwork

PATIENCE = 0.01
"""Seconds between two tests whether a micro-batch has ended."""
_PARTITIONS = "spark.sql.shuffle.partitions"
_STARTING = Lock()
"""Held while the session is changed for a query: runs of one process share it."""


class RestartableQuery:
    """The streaming query of the checkpoint in a folder; `owner` is the run, which sets what the query computes.

    It is over when `stopping` is set.
    """

    def __init__(
        self, session: SparkSession, folder: Path, owner: str, ending: Ending, streams: PythonStreams, stopping: Event
    ) -> None:
        self.session, self.folder = session, folder
        self._owner, self._live, self._streams, self._stopping = owner, ending == "stopped", streams, stopping
        self._commits = CommitLog(folder / "commits")
        self.query: StreamingQuery | None = None
        self.interval: Microseconds | None = None
        """From one trigger to the next; None if the query reads what is there, and ends."""
        self.again = self.ends = self._held = False
        self.set_back = SetBack()

    def use(self, network: QueryNetwork, manifest: CheckpointManifest) -> None:
        """Take what the query computes from its next start on."""
        self.network, self.manifest = network, manifest

    @property
    def at_work(self) -> bool:
        """True if the query runs, and is not to end."""
        return self.query is not None and self.query.isActive and not self._stopping.is_set()

    @property
    def found_nothing(self) -> bool:
        """True if its last trigger found no row and no wake-up, so that no micro-batch is under way."""
        query = self.query
        try:
            # Until its first progress a query has asked no source.
            return (
                self.at_work and query is not None and bool(query.lastProgress) and not query.status["isDataAvailable"]
            )
        except (PySparkException, Py4JError, ConnectionError):
            return False

    @property
    def reads_natively(self) -> bool:
        """True if Spark itself reads streams: then the source that can be held is not the only one."""
        return reads_natively(self.network)

    def run(self, trigger: str | None, turn: Callable[[], None]) -> None:
        """Take turns until the query ends, has to be started again, or is stopped, which the micro-batch outlasts."""
        self.query = query = self._start(trigger)
        try:
            while self.at_work and not self.again:
                turn()
            if self._stopping.is_set():
                self._await_rest(query)
            elif not self.again:
                query.awaitTermination()
        finally:
            with suppress(Py4JError, ConnectionError):
                # Java may be gone.
                query.stop()
            self._commits.release()

    def _start(self, trigger: str | None) -> StreamingQuery:
        buckets, levels = tuple(bucket_ids(self.manifest.buckets)), self.manifest.levels
        rows = self._sources(buckets)
        self.interval = _micros(self.session, trigger) if trigger else None
        pace = TriggerPace.of(self.interval, self.session.sparkContext.defaultParallelism, len(buckets))
        return _start_query(self.session, rows, self.folder, levels, buckets, trigger, pace, self._owner)

    def _sources(self, buckets: tuple[int, ...]) -> DataFrame:
        """The exchange rows of all streams and of the control, each source under its name."""
        live, version = self._live, self.manifest.plan
        natives = [
            native_rows(
                self.session,
                self.folder,
                version,
                stream,
                buckets,
                live=live,
                frame=self._streams.frame(stream.name),
            )
            for stream in self.network.streams()
            if is_native(stream.connector)
        ]
        own = _network_rows(self.session, self.folder, version, buckets, live=live, ends=self.ends)
        return reduce(DataFrame.union, [own, *natives])

    def _await_rest(self, query: StreamingQuery) -> None:
        """Let the micro-batch under way end, and none begin."""
        if not self.reads_natively:
            self._commits.hold()
            while query.isActive and query.status["isTriggerActive"] and not self._commits.is_held():
                time.sleep(PATIENCE)

    # Between two micro-batches

    def hold(self) -> None:
        """Let the micro-batch under way end, and none begin; or end the query, to be started again."""
        if self.query is None or self._held or self.again:
            return
        if self.reads_natively:
            self._start_again(self.query)
            return
        self._held = True
        self._commits.hold()
        while self.at_work and not self._commits.is_held():
            if self.set_back.noticed():
                self._start_again(self.query)
                return
            time.sleep(PATIENCE)
        if not self._live:
            # A source that does not advance has ended such a run.
            self.again = True
            self.query.awaitTermination()
        elif not self.at_work:
            raise RunError("the run has ended", hint="Start it again; with a checkpoint it goes on where it was.")

    def release(self) -> None:
        """Release the source, if it is held."""
        if self._held:
            self._commits.release()
            self._held = False

    def _start_again(self, query: StreamingQuery) -> None:
        """End the query, to be started again; a micro-batch that this breaks off is run first."""
        self.again = True
        query.stop()
        if self.is_pending():
            self.finish()

    def is_pending(self) -> bool:
        """True if a micro-batch was begun and not ended: Spark will run it again."""
        begun, ended = (
            max((int(path.name) for path in (self.folder / "spark" / log).glob("[0-9]*")), default=-1)
            for log in ("offsets", "commits")
        )
        return begun > ended

    def finish(self) -> None:
        """Run the micro-batch that was begun by the plan of the manifest."""
        self.network = PlanLog(self.folder / "plans").read(self.manifest.plan).network
        self._commits.claim(self._owner)
        self._commits.hold()
        try:
            make_active(self.session)
            self._start(None).awaitTermination()
        except (PySparkException, Py4JError) as error:
            raise unwrap(error, self.folder / "spark.log") from None
        finally:
            self._commits.release()


def reads_natively(network: QueryNetwork) -> bool:
    """True if Spark itself reads streams of a network."""
    return any(is_native(stream.connector) for stream in network.streams())


def make_active(session: SparkSession) -> None:
    """Let this thread's calls find the session."""
    java_class = SparkSession._get_j_spark_session_class(session._jvm)
    java_class.setActiveSession(session._jsparkSession)


def _network_rows(
    session: SparkSession, folder: Path, plan: int, buckets: Sequence[int], *, live: bool, ends: bool
) -> DataFrame:
    """The exchange rows of all streams that Millrace reads itself, and of its wake-ups; see `NetworkSource`."""
    with _STARTING:
        session.dataSource.register(NetworkSource)
    reader = session.readStream.format(NetworkSource.name()).option("folder", str(folder)).option("plan", plan)
    reader = reader.option("buckets", json.dumps(list(buckets))).option("live", live).option("ends", ends)
    return reader.name("network").load()


def _start_query(
    session: SparkSession,
    rows: DataFrame,
    folder: Path,
    levels: int,
    buckets: Sequence[int],
    trigger: str | None,
    pace: TriggerPace,
    owner: str,
) -> StreamingQuery:
    """Start the query over exchange rows: every `trigger`, or, without one, until all that is there has been read.

    `owner` is the run, as it has claimed the commit log.
    """
    for level in range(1, levels + 1):
        last = level == levels
        rows = rows.groupBy("bucket").transformWithStateInPandas(
            ShippedStage(str(folder), buckets, level=level, last=last, pace=pace),
            outputStructType=OUTPUT if last else EXCHANGE,
            outputMode="append",
            timeMode="none",
        )
    writer = rows.writeStream.format(NetworkSink.name()).outputMode("append").option("folder", str(folder))
    writer = writer.option("owner", owner)
    writer = writer.option("checkpointLocation", str(folder / "spark"))
    writer = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
    with _STARTING:
        session.dataSource.register(NetworkSink)
        # A streaming query keeps the settings that it was started with; the session may be the user's.
        partitions = str(session.conf.get(_PARTITIONS))
        session.conf.set(_PARTITIONS, str(len(buckets)))
        try:
            return writer.start()
        finally:
            session.conf.set(_PARTITIONS, partitions)


def _micros(session: SparkSession, trigger: str) -> int:
    """How long a trigger's interval is, as Spark reads it."""
    assert session._jvm is not None
    java_trigger = session._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger)
    return int(java_trigger.intervalMs()) * 1000
