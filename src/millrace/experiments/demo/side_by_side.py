"""Both systems at once: started, warmed up, fed, watched and stopped together."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from millrace.api.runs import open_run
from millrace.api.terminal.status_line import StatusLine, copied
from millrace.errors import RunError
from millrace.experiments.demo.links import SECOND, Feed, Feeder, Link, link_files, true_counts
from millrace.experiments.demo.sink_watcher import POLL, FileSinkWatcher, committed_batches
from millrace.experiments.demo.timeline import SeenWindow, SystemOutput, Timeline, seen_text
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork

if TYPE_CHECKING:
    from millrace.experiments.stock_spark import StockSpark

TRIGGER = "500 milliseconds"
SKEW = 1
"""Seconds: the delta of the external formula, by which an ETS keeps behind the clock."""
ON_DEMAND = f"ETS ON DEMAND SKEW INTERVAL {SKEW} SECOND"
_WARM_ROUNDS = 2
_GRACE = 8.0
"""Seconds after the last row in which windows may still come out."""
_PATIENCE = 600.0
"""So long they may take while Millrace has not finished, on a machine that is very busy."""
_HEARTBEAT = 5.0


def q1(feed: Feed, folder: Path) -> QueryNetwork:
    """The query over the links' folders."""
    return parse_network("\n".join([*(_stream(link, folder) for link in feed.links), select(feed)]))


def select(feed: Feed) -> str:
    """The query's text."""
    links = " UNION ".join(link.name for link in feed.links)
    length = f"{feed.window} SECONDS"
    return f"SELECT window_start, count(*) AS n FROM {links} [RANGE {length} SLIDE {length} WA ts]"


def _stream(link: Link, folder: Path) -> str:
    path = str(folder / link.name).replace("'", "''")
    return f"""CREATE STREAM {link.name} (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
      TIMESTAMP BY ts ORDERED {ON_DEMAND} FROM parquet OPTIONS (path '{path}');"""


class SideBySide:
    """One demonstration: `run` gives the timeline, `close` ends whatever still runs."""

    def __init__(self, feed: Feed, folder: Path, out: TextIO) -> None:
        self.feed = feed
        self.folder = folder
        self.out = out
        self.files = link_files(feed)
        self.feeder = Feeder(feed, self.files, folder / "links")
        self.ours, self.theirs = SystemOutput("Millrace"), SystemOutput("stock Spark")
        self._lock = Lock()
        self._batches = 0
        self._failure: Exception | None = None
        self._run: HostRun | None = None
        self._thread = Thread(target=self._drive, name="millrace", daemon=True)
        # While Spark starts, standard error is its log.
        self._status = StatusLine(copied(sys.stderr) or sys.stderr)
        self._stock, self._watcher = self._prepare_stock()

    def run(self) -> Timeline:
        """Start both, feed them, and watch until the last window has had time to come out."""
        self._say(f"Q1: {select(self.feed)}")
        self._say("starting two Sparks in local mode, one for Millrace and one for the stock query")
        began = time.monotonic()
        self._thread.start()
        self._warm_up()
        self._say(f"both are warm after {time.monotonic() - began:.0f} s; the links begin")
        self.feeder.begin()
        self._watch()
        truth = true_counts(self.files, self.feed.window)
        return Timeline(self.feed.window, truth, self.feed.silence, self.ours, self.theirs)

    def close(self) -> None:
        """Stop feeding and end both systems; a Spark that still starts ends with this process."""
        self._status.clear()
        self.feeder.stop()
        if self._run is not None:
            self._run.stop()
        self._stock.stop()
        self._watcher.stop()
        if self._run is not None:
            self._thread.join()
            self._run.close()

    def remarks(self) -> list[str]:
        """What a reader must know to judge the delays."""
        lag = max(link.lag + link.span for link in self.feed.links)
        remarks = [f"(a row is up to {lag:.1f} s old when it arrives, so no window can be complete sooner)"]
        if self.feeder.lateness > SKEW / 2:
            remarks.append(
                f"(this machine was too busy: a file came {self.feeder.lateness:.1f} s later than it was due, "
                f"so the promised skew of {SKEW} s may not have held)"
            )
        return remarks

    # The two systems

    def _prepare_stock(self) -> tuple[StockSpark, FileSinkWatcher]:
        from millrace.experiments.stock_spark import Job, StockCount, StockSpark

        output, checkpoint = self.folder / "stock" / "counts", self.folder / "stock" / "checkpoint"
        links = [str(self.feeder.folder(link.name)) for link in self.feed.links]
        count = StockCount(links, str(output), str(checkpoint), f"{self.feed.window} seconds")
        stock = StockSpark(Job([count], bounded=False), self.folder / "stock" / "spark.log")
        watcher = FileSinkWatcher(output, lambda rows: self._deliver(self.theirs, rows))
        watcher.begin()
        return stock, watcher

    def _drive(self) -> None:
        """Start Millrace and let it work, in a thread of its own: a start of Spark does not see Ctrl-C."""
        listeners = Listeners(progress=self._progress, results=lambda query, rows: self._deliver(self.ours, rows))
        network = q1(self.feed, self.folder / "links")
        try:
            self._run = open_run(network, RunOptions(on="spark", trigger=TRIGGER), listeners)
            self._run.run()
        except Exception as error:  # raised again by the thread that waits
            self._failure = error

    def _warm_up(self) -> None:
        """Feed rows that no counted window holds, each after both systems have processed the one before."""
        for warmed in range(_WARM_ROUNDS):
            ours, theirs, began = self._batches, self._stock_batches(), time.monotonic()
            self.feeder.warm_up()
            while not (self._batches > ours and self._stock_batches() > theirs):
                self._check()
                if self._status.due:
                    self._status.show(self._wait_text(warmed, ours, theirs, time.monotonic() - began))
                time.sleep(POLL)
        self._status.clear()

    def _wait_text(self, warmed: int, ours: int, theirs: int, waited: float) -> str:
        """What each system is doing before the links begin, and for how long."""
        done = {"Millrace": self._batches > ours, "stock Spark": self._stock_batches() > theirs}
        begun = {"Millrace": self._run is not None, "stock Spark": self._stock_begun()}
        words = [f"{name} {'ready' if done[name] else 'first rows' if begun[name] else 'starting'}" for name in done]
        what = "starting Spark" if not warmed else f"warming up, {warmed + 1} of {_WARM_ROUNDS}"
        return f"{what}: {waited:.0f} s ({', '.join(words)})"

    def _stock_begun(self) -> bool:
        return (self.folder / "stock" / "checkpoint").is_dir()

    def _stock_batches(self) -> int:
        return committed_batches(self.folder / "stock" / "checkpoint")

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._stock.alive:
            log = (self.folder / "stock" / "spark.log").read_text(errors="replace").splitlines()
            raise RunError(
                "stock Spark has ended by itself; the end of its log:\n" + "\n".join(log[-20:]),
                hint="Run millrace doctor --deep to see whether Spark starts on this machine.",
            )

    # What is seen

    def _progress(self, report: Report) -> None:
        self._batches = report.steps

    def _deliver(self, side: SystemOutput, rows: pa.Table) -> None:
        at = self.feeder.elapsed()
        if not self.feeder.start:
            return
        starts = rows.column("window_start").cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        for start, count in sorted(zip(starts, rows.column("n").to_pylist(), strict=True)):
            number = (start // SECOND - int(self.feeder.start)) // self.feed.window
            if number >= 0:
                seen = SeenWindow(count, at)
                side.add(number, seen)
                self._say(seen_text(side, number, seen, self.feed.window))

    def _watch(self) -> None:
        """Report the state, until the feed is over and the last windows have had their time."""
        over = max(file.due for file in self.files)
        shown = 0.0
        while self.feeder.elapsed() < over + (_GRACE if len(self.ours.windows) >= self.feed.windows else _PATIENCE):
            self._check()
            time.sleep(0.2)
            if self.feeder.elapsed() - shown >= _HEARTBEAT:
                shown = self.feeder.elapsed() // _HEARTBEAT * _HEARTBEAT
                self._say(f"{self.feeder.elapsed():5.1f} s  {self._state()}")

    def _state(self) -> str:
        begin, until = self.feed.silence
        elapsed = self.feeder.elapsed()
        control = f"control silent for {elapsed - begin:.0f} s" if begin <= elapsed < until else "all links send"
        if elapsed > self.feed.seconds:
            control = "the feed is over"
        out = f"{len(self.ours.windows)} and {len(self.theirs.windows)} windows out"
        return f"-- {self.feeder.fed:,} rows fed; {control}; {out}"

    def _say(self, text: str) -> None:
        with self._lock, suppress(BrokenPipeError):
            self.out.write(text + "\n")
            self.out.flush()
