"""Rows per second of a run on the local host with its live page followed, not read, and without a server.

Rows are counted per key and minute. The followers are processes of their own, as a browser is: one reads all events,
the other asks for them and reads nothing. The three cases take turns in every round, and the best round of each counts,
by the clock and by processor time. Aim: with a page at least 0.97 of the rows per second without.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

import millrace as mr
from bench.measures import result_log

_BLOCK = 65_536
_LEAST_ROUNDS = 5
_READER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"GET /page/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
print("asked", flush=True)
if sys.argv[2] == "read":
    while connection.recv(65_536):
        pass
sys.stdin.read()
"""
CASES = {"no server": None, "page followed": "read", "page stalled": "stall"}


def run(rows: int, rounds: int) -> None:
    """Measure all cases in turn, print a line each and append the results."""
    around, batches = result_log.circumstances(), _batches(rows)
    best = {case: (float("inf"), float("inf")) for case in CASES}
    for _ in range(max(rounds, _LEAST_ROUNDS)):
        for case, how in CASES.items():
            measured = _measured(batches, how)
            best[case] = (min(best[case][0], measured[0]), min(best[case][1], measured[1]))
    entries, (wall, worked) = [], best["no server"]
    for case, (seconds, processor) in best.items():
        ratios = wall / seconds, worked / processor
        print(f"{case:<14} {rows / seconds:12,.0f} rows/s  {ratios[0]:.3f} by clock  {ratios[1]:.3f} by processor time")
        entries.append({"case": case, "rows_per_second": rows / seconds, "ratio": ratios[0], "by_processor": ratios[1]})
    print(f"appended to {result_log.append('page', around, entries)}")


def _batches(rows: int) -> list[pa.RecordBatch]:
    random = np.random.default_rng(1)
    times = np.arange(rows, dtype=np.int64) * 1_000
    return [
        pa.record_batch(
            {
                "k": pa.array(random.integers(0, 1_000, len(part)).astype(np.int32)),
                "ts": pa.array(part - random.integers(0, 1_000_000, len(part)), pa.timestamp("us", tz="UTC")),
            }
        )
        for part in np.array_split(times, max(1, rows // _BLOCK))
    ]


def _measured(batches: list[pa.RecordBatch], how: str | None) -> tuple[float, float]:
    """Seconds by the clock and of the processor that a run takes from its first row on."""
    source, net = mr.Pushed(), mr.Network()
    net.stream("s", "k INT, ts TIMESTAMP", time="ts", disorder="1 second", source=source)
    net.sql("CREATE QUERY q AS SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k")
    handle = net.run(on="local", until="end", background=True)
    with _followed(handle, how):
        began, worked = time.perf_counter(), time.process_time()
        for batch in batches:
            source.push(batch)
        source.close()
        handle.wait()
        return time.perf_counter() - began, time.process_time() - worked


@contextmanager
def _followed(handle: mr.Handle, how: str | None) -> Iterator[None]:
    if how is None:
        yield
        return
    command = [sys.executable, "-c", _READER, str(handle.serve().port), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        yield
        follower.kill()
