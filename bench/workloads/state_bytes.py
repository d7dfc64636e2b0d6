"""Bytes of state written per checkpoint and per micro-batch while the state that is held grows.

Every batch brings the same number of rows, all of new groups, and no window ends: the held state grows by a batch each
time, and what changes stays the same. Rows are kept in runs that are merged as they grow alike, so a batch writes its
own rows most of the time, and a row is written again a logarithmic number of times. Aim: the median batch writes as
much at the end as at the beginning, and all of them together at most log2(batches) + 1 times what changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measures import result_log
from bench.queries.links import ORIGIN
from bench.queries.workload import write_file
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.session.session import open_session
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork

BATCHES = 64
_SECOND = 1_000_000


def run(rows: int, rounds: int) -> None:
    """Measure both hosts, print a line each and append the results; a tenth of the rows, and one round will do."""
    around, entries = result_log.circumstances(), []
    size = max(1, rows // 10 // BATCHES)
    for engine, measure in (("local host", _local), ("Spark host", _spark)):
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
            written = measure(Path(name), size)
        print(f"{engine}: {summary(written)}", flush=True)
        entries.append({"engine": engine, "rows_per_batch": size, "bytes": written})
    print(f"appended to {result_log.append('state_bytes', around, entries)}")


def summary(written: list[int]) -> str:
    """What batches have written: at first and at last, all together, and beside writing all state each time.

    >>> summary([100, 100, 200, 100])
    'median of the first quarter 100, of the last 100 bytes; 1.2 x what changed (at most 3.0); whole states: 2.5 x'
    """
    quarter = max(1, len(written) // 4)
    changed = min(written) * len(written)
    whole = (len(written) + 1) / 2
    return (
        f"median of the first quarter {median(written[:quarter]):,.0f}, of the last {median(written[-quarter:]):,.0f} "
        f"bytes; {sum(written) / changed:.1f} x what changed (at most {log2(len(written)) + 1:.1f}); "
        f"whole states: {whole:.1f} x"
    )


def _network(source: str) -> QueryNetwork:
    return parse_network(f"""CREATE STREAM s (key BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {source};
        CREATE SINK counts TO memory;
        CREATE QUERY counted INTO counts AS
          SELECT key, count(*) AS n FROM s [RANGE 1 DAY SLIDE 1 DAY WA ts] GROUP BY key;""")


def _batches(size: int) -> Iterator[pa.Table]:
    """Batches a second apart, with keys in no order that a file could be shrunk by."""
    keys = np.random.default_rng(4).permutation(BATCHES * size).reshape(BATCHES, size)
    for number in range(BATCHES):
        times = np.full(size, ORIGIN + number * _SECOND)
        yield pa.table({"key": keys[number], "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC"))})


def _local(folder: Path, size: int) -> list[int]:
    """A checkpoint per batch."""
    watched = _Watched(folder / "checkpoint")
    feeds: dict[str, Any] = {"s": _batches(size)}
    LocalRun(
        _network("iterable"),
        RunOptions("local", "available", checkpoint=watched.folder, commit_interval=0),
        feeds=feeds,
        listeners=Listeners(progress=watched.look),
    ).run()
    return watched.written


@dataclass
class _Watched:
    """A checkpoint's folder, and how much each step that brought rows has written to it."""

    folder: Path
    written: list[int] = field(default_factory=list)
    received: int = 0
    seen: set[str] = field(default_factory=set)

    def look(self, report: Report) -> None:
        """Called after each step."""
        sizes = {path.name: path.stat().st_size for path in self.folder.glob("*.arrow")}
        new = sum(size for name, size in sizes.items() if name not in self.seen)
        self.seen = set(sizes)
        if report.received > self.received:
            self.received = report.received
            self.written.append(new + (self.folder / "current.json").stat().st_size)


def _spark(folder: Path, size: int) -> list[int]:
    """A micro-batch per file; its state is what Spark has put in the changelogs of that version."""
    (folder / "files").mkdir()
    for number, table in enumerate(_batches(size)):
        write_file(folder / "files", number, table)
    session = open_session("local[*]", log_file=folder / "spark.log", settings=None)
    source = f"parquet OPTIONS (path '{folder / 'files'}', max_files_per_trigger '1')"
    try:
        SparkRun(
            _network(source), RunOptions("spark", "available", checkpoint=folder / "checkpoint"), session=session
        ).run()
    finally:
        session.stop()
    sizes: dict[int, int] = {}
    for path in (folder / "checkpoint").rglob("*.changelog"):
        version = int(path.name.split(".")[0].split("_")[0])
        sizes[version] = sizes.get(version, 0) + path.stat().st_size
    return [size for _, size in sorted(sizes.items())][:BATCHES]
