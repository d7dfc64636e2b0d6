"""A count over three live streams of which one may stop: when windows come out, and those that never do.

Times are those of the clock, and files come as they happen, so rows arrive as fast as they are made and no faster: it
is not speed that is compared here. The streams that go on are read to their end, and then a while is waited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.queries.links import COLUMNS
from bench.queries.workload import Workload
from bench.systems.engines import Measured, PeerFailed, Task
from millrace.experiments.demo.links import FIRST_FILE, Feed, Feeder, Link, LinkFile, link_files
from millrace.experiments.demo.sink_watcher import committed_batches, wait_until
from millrace.experiments.stock_spark import Job, StockSpark
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session.session import open_session

SECONDS = 30.0
WINDOW = 2
SILENCE = "ETS ON DEMAND SKEW INTERVAL 1 SECOND"
_GRACE = 8.0
_PATIENCE = 180.0
_WARM_ROUNDS = 2
_KEPT = {"spark.sql.streaming.minBatchesToRetain": "1000"}
"""When micro-batches were committed is read when all is over."""
_SILENT, _STEADY = "control", "sparse"
"""The names of the stream with few rows, if it stops and if it does not."""


@dataclass(frozen=True)
class SilentSource(Workload):
    """Counts of all windows: a stream that has stopped completes them like one that has passed them."""

    seconds: float = SECONDS
    busy: float = 20_000.0
    """Rows per second of each of two streams."""
    sparse: str = _SILENT
    """The stream with few rows."""

    @property
    def needs(self) -> Mapping[str, str]:
        """The streams that go on must have passed the end of the window."""
        ends = f"window_start + INTERVAL {self.window} SECOND"
        return {name: f"least({ends}, (SELECT max(ts) FROM {name}))" for name in ("main1", "main2", self.sparse)}

    def truth(self) -> str:
        """The query in DuckDB's words, over all that was fed."""
        everything = " UNION ALL ".join(f"FROM {name}" for name in self.folders)
        return f"""SELECT time_bucket(INTERVAL {self.window} SECOND, ts) AS window_start, srcIP, count(*) AS n
            FROM ({everything}) GROUP BY ALL"""

    def live_since(self) -> int:
        """When the feed began, in microseconds: what came before it was to warm up."""
        first = min(path for path in self.folders["main1"].glob("*.parquet") if int(path.stem) >= FIRST_FILE)
        begun: int = pc.min(pq.read_table(first, columns=["ts"]).column("ts").cast(pa.int64())).as_py()
        return begun

    def feeder(self) -> Feeder:
        """What moves the files of all streams into their folders, as they are due."""
        links = (
            Link(self.sparse, rate=20.0, span=0.5, lag=0.0),
            Link("main1", rate=self.busy, span=0.5, lag=0.0),
            Link("main2", rate=self.busy, span=0.5, lag=0.0),
        )
        feed = Feed(self.seconds, self.window, links)
        files = [each for each in link_files(feed) if _goes_on(each, feed)]
        return Feeder(feed, files, self.folders["main1"].parent)


def silent_source(
    folder: Path, seconds: float = SECONDS, busy: float = 20_000.0, *, silent: bool = True
) -> SilentSource:
    """The workload over folders that are still empty; with `silent`, one stream stops after a quarter of the time."""
    sparse = _SILENT if silent else _STEADY
    folders = {name: folder / name for name in (sparse, "main1", "main2")}
    for each in folders.values():
        each.mkdir(parents=True)
    return SilentSource(
        folders,
        COLUMNS,
        "ts",
        ("srcIP",),
        0,
        window=WINDOW,
        slide=WINDOW,
        silence=SILENCE,
        seconds=seconds,
        busy=busy,
        sparse=sparse,
    )


def spark_live(task: Task, engine: str) -> Measured:
    """The Spark host, in a live run."""
    session = open_session("local[*]", log_file=task.folder / engine / "spark.log", settings=_KEPT)
    try:
        return live(task, engine, session)
    finally:
        session.stop()


def live(task: Task, engine: str, session: SparkSession) -> Measured:
    """The Spark host, in a session that is there."""
    checkpoint = task.checkpoint(engine, task.rounds)
    run = SparkRun(task.network(engine, task.rounds), RunOptions("spark", checkpoint=checkpoint), session=session)
    thread = Thread(target=run.run, daemon=True)
    thread.start()
    try:
        _fed(task, lambda: committed_batches(checkpoint / "spark"), thread.is_alive)
    finally:
        run.stop()
        thread.join()
    return Measured([])


def stock_live(task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
    """Stock Spark, in a live run."""
    query = task.stock(engine, task.rounds)
    stock = StockSpark(Job([query], bounded=False, settings={**settings, **_KEPT}), task.folder / engine / "spark.log")
    try:
        _fed(task, partial(committed_batches, Path(query.checkpoint)), lambda: stock.alive)
    finally:
        stock.stop()
    return Measured([])


def _fed(task: Task, batches: Callable[[], int], alive: Callable[[], bool]) -> None:
    """Feed the streams to a system that has been warmed up by rows of earlier windows."""
    workload = task.workload
    assert isinstance(workload, SilentSource)
    feeder = workload.feeder()
    for _ in range(_WARM_ROUNDS):
        before = batches()
        feeder.warm_up()
        if not wait_until(partial(_went_on, batches, before, alive), _PATIENCE) or not alive():
            raise PeerFailed("was not ready in time")
    feeder.begin()
    try:
        while feeder.elapsed() < workload.seconds + _GRACE:
            if not alive():
                raise PeerFailed("ended by itself")
            time.sleep(0.2)
    finally:
        feeder.stop()


def _went_on(batches: Callable[[], int], before: int, alive: Callable[[], bool]) -> bool:
    """True if there are more than before, or nothing more to wait for."""
    return batches() > before or not alive()


def _goes_on(file: LinkFile, feed: Feed) -> bool:
    """True if a file comes: those of the control link only until it falls silent."""
    return file.link.name != "control" or file.due <= feed.silence[0] + file.link.span
