"""How stale the valuation of recorded quotes and trades is when they come faster than it can be computed, by queue.

Those of six exchange feeds are replayed faster than they came; a function of `examples/slow_quotes.py` values each and
takes a known time. On the local host the stream is paced (`REPLAY BY`); on Spark files are written as their quotes fall
due, and a micro-batch has a budget of time. Every kind of queue has a run of its own. Staleness of a symbol is how long
ago the first quote came that is newer than the one last valued, averaged over the run: by the queue's own account, and
as one sees it who is given the results.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measures import result_log
from bench.measures.observed_staleness import Seen, Valued
from bench.queries.recorded_streams import DATA
from millrace.hosts.local.host import LocalRun
from millrace.hosts.local.pace import PacedInput
from millrace.hosts.report import Listeners
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session.session import open_session
from millrace.hosts.system_clock import SystemClock
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork

MICROS, SECONDS = 1_000, 30.0
"""Of the rows of a second a core can value less than 1,000."""
QUEUES = {
    "local host": ("append", "append_shed", "update_fifo", "inplace", "linecutting"),
    "Spark host": ("append", "append_shed", "update_fifo", "inplace", "linecutting"),
}
TRIGGER, BUDGET = "1 second", "600 milliseconds"
"""How often Spark looks, and how long the function may be at work in a micro-batch."""
EXAMPLES = Path(__file__).parents[2] / "examples"
_SPAN = 0.25
"""Seconds of a file."""
_PATIENCE = 120.0
_SCRIPT = """
CREATE FUNCTION middle(DOUBLE, DOUBLE, INT) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow_quotes:middle';
CREATE STREAM quotes (venue STRING, symbol STRING, bid DOUBLE, ask DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (venue, symbol) FROM parquet OPTIONS (path '{folder}') {replay};
CREATE QUERY worth WITH (queue = '{queue}'{budget}) AS
  SELECT venue, symbol, ts, middle(bid, ask, {micros}) AS worth FROM quotes;
"""


@dataclass(frozen=True)
class Overload:
    """Quotes at a speed, in front of a function that takes so many microseconds."""

    quotes: pa.Table
    folder: Path
    speed: float
    micros: int = MICROS
    seconds: float = SECONDS
    clock: SystemClock = field(default_factory=SystemClock)
    """The local host's."""

    def network(self, source: Path, queue: str, replay: str = "", budget: str = "") -> QueryNetwork:
        """The query with a kind of queue."""
        return parse_network(
            _SCRIPT.format(folder=source, queue=queue, replay=replay, budget=budget, micros=self.micros)
        )


@dataclass(frozen=True)
class Recording:
    """A recorded stream: its file, what counts as bid and ask, and how much faster than it came it is replayed."""

    file: str
    bid: str
    ask: str
    speed: float

    def rows(self, data: Path) -> pa.Table:
        """Its rows in order of their receipt, which is their time."""
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            return database.sql(f"""
                SELECT venue, symbol, {self.bid} AS bid, {self.ask} AS ask, make_timestamptz(recv_ns // 1000) AS ts
                FROM read_csv('{data / self.file}') ORDER BY recv_ns""").to_arrow_table()


RECORDINGS = {
    "quotes": Recording("crypto_quotes.csv.gz", "bid", "ask", speed=5.0),
    "trades": Recording("crypto_trades.csv.gz", "price", "price", speed=10.0),
}
"""About 3,000 and 1,600 rows per second."""
Measure = Callable[[Overload, str], Valued]


def run(rows: int, rounds: int, data: Path = DATA, only: Sequence[str] = ()) -> None:
    """Measure every queue on both hosts, or the recordings, hosts and queues that are named; append the results."""
    around = result_log.circumstances()
    sys.path.append(str(EXAMPLES))
    for name, recording in RECORDINGS.items():
        if not (data / recording.file).exists():
            print(f"stale_quotes: no recorded {name} in {data}; name their folder with --data", flush=True)
            continue
        for host in HOSTS if _chosen(name, RECORDINGS, only) else ():
            if _chosen(host, HOSTS, only):
                result_log.append("stale_quotes", around, _measured(name, host, data, only))


def _chosen(name: str, among: Mapping[str, object] | Sequence[str], only: Sequence[str]) -> bool:
    """Whether one of several is wanted: it is named, or none of them is."""
    return name in only or not any(each in only for each in among)


def _measured(recording: str, host: str, data: Path, only: Sequence[str]) -> list[dict[str, Any]]:
    """Measure queues on a host, and print a table; lines of data."""
    speed, found = RECORDINGS[recording].speed, dict[str, Valued]()
    for queue in QUEUES[host]:
        if _chosen(queue, QUEUES[host], only):
            with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
                found[queue] = HOSTS[host](Overload(RECORDINGS[recording].rows(data), Path(folder), speed), queue)
            print(f"  {recording}, {host}, {queue}: {found[queue].text()}", flush=True)
    title = f"{recording}, {host}: staleness in milliseconds, as seen from outside"
    print("\n".join([title, *table(found)]), flush=True)
    shared = {"rows": recording, "host": host, "speed": speed, "micros": MICROS, "seconds": SECONDS}
    return [{**shared, "queue": queue, **each.data()} for queue, each in found.items()]


def local(overload: Overload, queue: str) -> Valued:
    """The local host, which paces the stream itself."""
    source = overload.folder / "quotes.parquet"
    pq.write_table(overload.quotes, source)
    seen = Seen(overload.quotes, overload.speed, overload.clock)
    network = overload.network(source, queue, replay=f"REPLAY BY ts SPEED {overload.speed:g}")
    run = LocalRun(network, listeners=Listeners(results=seen.results), clock=overload.clock)
    with _working(run):
        overload.clock.wait(Event(), overload.seconds)
    paced = run.intake.inputs["quotes"]
    assert isinstance(paced, PacedInput)
    seen.paced(paced)
    return seen.valued(run, overload.seconds)


def spark(overload: Overload, queue: str) -> Valued:
    """The Spark host, in a session of its own, fed by files."""
    source = overload.folder / "quotes"
    source.mkdir()
    session = open_session("local[*]", log_file=overload.folder / "spark.log")
    seen = Seen(overload.quotes, overload.speed)
    network = overload.network(source, queue, budget=f", budget = '{BUDGET}'")
    try:
        run = SparkRun(
            network,
            RunOptions("spark", checkpoint=overload.folder / "state", trigger=TRIGGER),
            session=session,
            listeners=Listeners(results=seen.results),
        )
        with _working(run) as alive:
            _warm_up(source, seen, alive)
            seen.begin()
            began = time.time()
            _feed(source, overload, alive)
        return replace(seen.valued(run, overload.seconds), batches=_between_commits(overload.folder / "state", began))
    finally:
        session.stop()


def _between_commits(checkpoint: Path, began: float) -> tuple[float, ...]:
    """The seconds from one commit to the next, of those since a moment."""
    moments = sorted(path.stat().st_mtime for path in (checkpoint / "spark" / "commits").glob("[0-9]*"))
    return tuple(after - before for before, after in pairwise(moments) if before >= began)


HOSTS: Mapping[str, Measure] = {"local host": local, "Spark host": spark}


@contextmanager
def _working(run: LocalRun | SparkRun) -> Iterator[Callable[[], bool]]:
    thread = Thread(target=run.run, daemon=True)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        run.stop()
        thread.join()


def _warm_up(source: Path, seen: Seen, alive: Callable[[], bool]) -> None:
    """Two quotes of a feed that does not count, earlier than all others, one after the other: then all is loaded."""
    first = seen.first.as_py()
    for number in range(2):
        columns = {"venue": ["warm-up"], "symbol": [str(number)], "bid": [1.0], "ask": [1.0], "ts": [first]}
        rows = pa.table(columns).cast(seen.quotes.schema)
        _write(source, f"{number:06d}", rows)
        until = time.monotonic() + _PATIENCE
        while seen.results_so_far <= number:
            if not alive() or time.monotonic() > until:
                raise SystemExit("bench: stale_quotes: the run on Spark was not ready in time")
            time.sleep(0.05)


def _feed(source: Path, overload: Overload, alive: Callable[[], bool]) -> None:
    """Write the quotes of a quarter of a second when the last of them has come."""
    began, number, start = time.monotonic(), 2, 0
    times = overload.quotes.column("ts").to_numpy().astype("datetime64[us]").astype("int64")
    while (elapsed := number * _SPAN - 2 * _SPAN) < overload.seconds:
        stop = int(times.searchsorted(times[0] + (elapsed + _SPAN) * overload.speed * 1e6))
        time.sleep(max(0.0, began + elapsed + _SPAN - time.monotonic()))
        if not alive():
            raise SystemExit("bench: stale_quotes: the run on Spark has ended")
        _write(source, f"{number:06d}", overload.quotes.slice(start, stop - start))
        number, start = number + 1, stop


def _write(folder: Path, name: str, rows: pa.Table) -> None:
    pq.write_table(rows, folder / f".{name}.parquet")
    (folder / f".{name}.parquet").replace(folder / f"{name}.parquet")


def table(found: Mapping[str, Valued]) -> list[str]:
    """One line per symbol and one column per queue; then the mean, and the rows that the queues released.

    >>> one = Valued({("spot", "A"): 12.0, ("spot", "B"): 2.0}, {}, {("spot", "A"): 7.5, ("spot", "B"): 30}, 100, 25)
    >>> for line in table({"append": one}):
    ...     print(line)
    feed                    quotes/s         append
    spot A                         8           12.0
    spot B                        30            2.0
    mean of all                                 7.0
    rows valued                               25.0%
    """
    some = next(iter(found.values()))
    lines = [f"{'feed':<22} {'quotes/s':>9}{_cells(found)}"]
    for key, rate in some.per_second.items():
        lines.append(
            f"{' '.join(key):<22} {rate:>9,.0f}{_cells([f'{each.seen.get(key, 0):,.1f}' for each in found.values()])}"
        )
    lines.append(f"{'mean of all':<32}{_cells([f'{each.mean:,.1f}' for each in found.values()])}")
    lines.append(f"{'rows valued':<32}{_cells([f'{each.let_go / each.entered:.1%}' for each in found.values()])}")
    return lines


def _cells(texts: Sequence[str] | Mapping[str, Any]) -> str:
    return "".join(f"{text:>15}" for text in texts)
