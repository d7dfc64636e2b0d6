"""A fast stream beside one with a row every ten seconds, united in order on Spark in real time.

Two such pairs are queries of one network: external time by the clock of the sender with SKEW, and internal time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.language import parse_network
from tests.background import running
from tests.e2e.commands import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROMISES = {
    "external": "TIMESTAMP BY sent ORDERED ETS ON DEMAND SKEW INTERVAL 2 SECONDS",
    "internal": "INTERNAL TIMESTAMP AS ts ETS ON DEMAND",
}
TIMES = {"external": "sent", "internal": "ts"}
TRIGGER = 2.5
"""Seconds between two micro-batches, which begin when the clock is a multiple of it; one must take well under that."""
PAUSE = 0.3
"""Seconds between two files of a busy stream."""
MARKS = {"fast": 0, "slow": 1}
"""The streams of a pair, and how their rows can be told apart."""
WARM_UP = 3
BUSY = 5.0
SILENCE = 3
"""ETS made for a slow stream until it has a row."""


def script(folder: Path) -> str:
    statements = []
    for kind, promise in PROMISES.items():
        for pace in ("fast", "slow"):
            name = f"{pace}_{kind}"
            columns = "v INT, sent TIMESTAMP" + ("" if kind == "external" else ", ts TIMESTAMP")
            statements.append(
                f"CREATE STREAM {name} ({columns}) {promise} FROM parquet OPTIONS (path '{folder / name}')"
            )
        statements.append(f"CREATE SINK {kind}_rows TO parquet OPTIONS (path '{folder / kind}')")
        branches = f"SELECT v, sent FROM fast_{kind} UNION ALL SELECT v, sent FROM slow_{kind}"
        statements.append(f"CREATE QUERY {kind} INTO {kind}_rows AS {branches} ORDER BY {TIMES[kind]}")
    return ";\n".join(statements)


class Sender:
    """Sends rows as files of one row, to both pairs alike, and knows which."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: dict[str, list[int]] = {f"{pace}_{kind}": [] for kind in PROMISES for pace in MARKS}
        for name in self.sent:
            (folder / name).mkdir()

    def send(self, *paces: str) -> None:
        """A row to each stream of these paces, all at one time."""
        now = time.time_ns() // 1_000
        for name in (f"{pace}_{kind}" for kind in PROMISES for pace in paces):
            rows = {"v": pa.array([MARKS[name[:4]]], pa.int32()), "sent": pa.array([now], pa.timestamp("us", tz="UTC"))}
            pq.write_table(pa.table(rows), self.folder / f".{name}")
            (self.folder / f".{name}").replace(self.folder / name / f"{len(self.sent[name]):06d}.parquet")
            self.sent[name].append(now)

    def busy(self, until: float) -> None:
        """The streams of a pair take turns until that time."""
        while time.time() < until:
            for pace in MARKS:
                self.send(pace)
                time.sleep(PAUSE / 2)

    def silent(self, log: CommitLog, phase: float) -> None:
        """The fast streams alone while ETS are made for the slow ones, and until some seconds after a time to begin a
        micro-batch; then a row on the slow ones."""
        enough, until = made(log) + SILENCE, math.inf
        while time.time() < until:
            self.send("fast")
            time.sleep(PAUSE)
            if until == math.inf and made(log) >= enough:
                until = time.time() + (phase - time.time()) % TRIGGER
        self.send("slow")


@contextmanager
def live_run(folder: Path, session: Any) -> Iterator[None]:
    from millrace.hosts.spark.host import SparkRun

    trigger = f"{round(TRIGGER * 1000)} milliseconds"
    run = SparkRun(
        parse_network(script(folder)),
        RunOptions("spark", checkpoint=folder / "state", trigger=trigger),
        session=session,
    )
    with running(run):
        yield


def left(folder: Path, kind: str) -> dict[int, int]:
    """The micro-batch with which each fast row left, by when it was sent."""
    found = {}
    for batch, record in CommitLog(folder / "state" / "commits").records():
        for name in record["outputs"][kind]["files"]:
            rows = pq.read_table(folder / kind / name, partitioning=None)
            fast = rows.filter(pc.equal(rows["v"], MARKS["fast"]))["sent"].cast(pa.int64()).to_pylist()
            assert not found.keys() & fast, "a row leaves once"
            found |= dict.fromkeys(fast, batch)
    return found


def warm_up(sender: Sender, log: CommitLog) -> None:
    """Let Spark run a few micro-batches, with a row on every stream."""
    for number in range(1, WARM_UP + 1):
        sender.send("slow", "fast")
        wait_for(
            lambda number=number: all(known["files"] == number for known in sources(log).values()) and sources(log), 300
        )


def sources(log: CommitLog) -> dict[str, Record]:
    return dict((log.newest() or {}).get("sources", {}))


def longest(folder: Path, kind: str, sent: list[int]) -> int:
    """How many micro-batches that began after it was sent the slowest row took to leave: on a machine that is busy they
    begin later than the trigger says. Rows that Spark warmed up with do not count."""
    clocks = {batch: record["now"] for batch, record in CommitLog(folder / "state" / "commits").records()}
    batches = left(folder, kind)
    return max(sum(each < now and batch <= batches[each] for batch, now in clocks.items()) for each in sent[WARM_UP:])


def enabled(record: Record, kind: str) -> list[int]:
    """How many ETS were made for the streams of a pair."""
    return [record["sources"][f"{pace}_{kind}"]["enabled"] for pace in MARKS]


def made(log: CommitLog) -> int:
    """How many ETS were made for each slow stream, at least."""
    return min(enabled(log.newest() or {}, kind)[1] for kind in PROMISES)


def unheard(log: CommitLog, until: Record, kind: str) -> list[int]:
    """How many micro-batches up to one found no new row on the streams of a pair: few, where the machine keeps up."""
    records = [record["sources"] for batch, record in log.records() if batch <= until["batch"]]
    return [
        sum(one[name]["files"] == other[name]["files"] for one, other in pairwise(records))
        for name in (f"{pace}_{kind}" for pace in MARKS)
    ]


def test_a_slow_stream_holds_no_row_back_for_more_than_two_triggers(tmp_path: Path, spark_session: Any) -> None:
    sender, log = Sender(tmp_path), CommitLog(tmp_path / "state" / "commits")
    with live_run(tmp_path, spark_session):
        warm_up(sender, log)
        sender.busy(time.time() + BUSY)
        while_busy = log.newest() or {}
        # The slow rows come just after a trigger, when they are read last, and in the middle between two.
        sender.silent(log, 0.1)
        sender.silent(log, TRIGGER / 2)
        wait_for(lambda: all(left(tmp_path, kind).keys() >= set(sender.sent[f"fast_{kind}"]) for kind in PROMISES))
    at_last = log.newest() or {}
    for kind in PROMISES:
        assert longest(tmp_path, kind, sender.sent[f"fast_{kind}"]) <= 2
        found = zip(enabled(while_busy, kind), unheard(log, while_busy, kind), strict=True)
        assert all(made <= silent for made, silent in found), "no ETS is made for a busy stream"
    for name, known in at_last["sources"].items():
        assert (known["received"], known["late"], known["quarantined"]) == (len(sender.sent[name]), 0, 0)
