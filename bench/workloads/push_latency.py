"""Milliseconds from the end of a window until its result can be read, on the local host, for rows that are pushed.

A thread pushes single rows at a steady rate, each with the time of its push. Windows of a tenth of a second are
counted, into the memory sink and into files with a checkpoint. Another thread looks for results with a clock of its
own. Aims at 1,000 rows per second: 5 ms into memory at the median, 50 ms into files with a commit interval of 20 ms.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import millrace as mr
from bench.measures import result_log

RATE, SECONDS = 1_000, 10
COMMIT_INTERVAL = "20 milliseconds"
COUNT = "SELECT window_end, count(*) AS n FROM s [RANGE 100 MILLISECONDS SLIDE 100 MILLISECONDS WA ts]"
_LOOK = 0.0005

Look = Callable[[], Iterator[pa.Table]]
"""The results that have come since the last look."""


def run(rows: int, rounds: int) -> None:
    """Measure both sinks, print a line each and append the results."""
    around, entries = result_log.circumstances(), []
    for sink, measure in {"memory": _memory, "files": _files}.items():
        p50, p90, p99 = np.quantile(measure(), [0.5, 0.9, 0.99]) / 1_000
        print(f"{sink:<7} p50 {p50:6.2f} ms  p90 {p90:6.2f}  p99 {p99:6.2f}  at {RATE:,} rows/s", flush=True)
        entries.append({"sink": sink, "rate": RATE, "p50_ms": p50, "p90_ms": p90, "p99_ms": p99})
    print(f"appended to {result_log.append('push_latency', around, entries)}")


def _memory() -> list[int]:
    source, net = mr.Pushed(), mr.Network()
    net.stream("s", "k INT, ts TIMESTAMP", time="ts", source=source)
    net.sql(f"CREATE QUERY q AS {COUNT}")
    handle = net.run(on="local")
    results, seen = handle._run.memory["q"], 0

    def look() -> Iterator[pa.Table]:
        nonlocal seen
        fresh = list(results)[seen:]
        seen += len(fresh)
        yield from fresh

    return _measured(source, handle, look)


def _files() -> list[int]:
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        source, net, folder = mr.Pushed(), mr.Network(), Path(name)
        net.stream("s", "k INT, ts TIMESTAMP", time="ts", source=source)
        net.sql(f"CREATE SINK out TO parquet OPTIONS (path '{folder / 'out'}'); CREATE QUERY q INTO out AS {COUNT}")
        handle = net.run(on="local", checkpoint=folder / "state", commit_interval=COMMIT_INTERVAL)
        seen: set[Path] = set()

        def look() -> Iterator[pa.Table]:
            for path in set((folder / "out").glob("part-*")) - seen:
                seen.add(path)
                yield pq.read_table(path)

        return _measured(source, handle, look)


def _measured(source: mr.Pushed, handle: mr.Handle, look: Look) -> list[int]:
    """Microseconds from the end of each window until its result was seen, without the first two."""
    found: list[int] = []
    with _watching(look, found):
        began, count = time.time(), 0
        while count < RATE * SECONDS:
            source.push({"k": count % 4, "ts": time.time_ns() // 1_000})
            count += 1
            time.sleep(max(0.0, began + count / RATE - time.time()))
        time.sleep(0.2)
    handle.stop()
    return found[2:]


@contextmanager
def _watching(look: Look, found: list[int]) -> Iterator[None]:
    watching = True

    def watch() -> None:
        while watching:
            for results in look():
                now = time.time_ns() // 1_000
                found.extend(now - end for end in results.column("window_end").cast(pa.int64()).to_pylist())
            time.sleep(_LOOK)

    thread = Thread(target=watch)
    thread.start()
    yield
    watching = False
    thread.join()
