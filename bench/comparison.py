"""One workload on all systems in one run: speeds, checked answers, a table of ratios, and lines of data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench import record
from bench.answers import check
from bench.engines import HDFS, ROCKSDB, Measured, PeerFailed, Task, local, spark_host, stock_spark
from bench.workload import Workload

PEER = "stock Spark, RocksDB"
ENGINES: dict[str, Callable[[Task, str], Measured]] = {
    "local host": local,
    "Spark host": spark_host,
    PEER: lambda task, engine: stock_spark(task, engine, ROCKSDB),
    "stock Spark, HDFS-backed": lambda task, engine: stock_spark(task, engine, HDFS),
}


def compare(name: str, workload: Workload, folder: Path, rounds: int, **told: Any) -> None:
    """Measure all systems, check their answers, print a table and append the results, with what else is told."""
    around = record.circumstances()
    task = Task(workload, folder, rounds)
    speeds: dict[str, list[float]] = {}
    results = 0
    for engine, measure in ENGINES.items():
        try:
            measured = measure(task, engine)
        except PeerFailed as error:
            print(f"  {engine}: {error}", flush=True)
            continue
        results = check(workload, task.output(engine, rounds), engine)
        speeds[engine] = [workload.rows / seconds for seconds in measured.seconds]
        print(f"  {engine}: {_millions(speeds[engine])} rows/s; {results:,} results, all true", flush=True)
    print("\n".join(table(speeds)))
    shared = {"rows": workload.rows, "files_per_batch": task.files_per_batch, "results": results, **told}
    lines = [
        {**shared, "engine": engine, "rows_per_second": [round(each) for each in found]}
        for engine, found in speeds.items()
    ]
    print(f"appended to {record.append(name, around, lines)}", flush=True)


def table(speeds: dict[str, list[float]]) -> list[str]:
    """A line a system: its median speed, and how many times the peer's that is.

    >>> for line in table({PEER: [500_000.0], "local host": [2_000_000.0]}):
    ...     print(line)
    system                         rows/s  x stock Spark, RocksDB
    stock Spark, RocksDB          500,000                    1.00
    local host                  2,000,000                    4.00
    """
    peer = median(speeds[PEER])
    lines = [f"{'system':<26} {'rows/s':>10}  x {PEER}"]
    for engine, found in speeds.items():
        lines.append(f"{engine:<26} {median(found):>10,.0f}  {median(found) / peer:>{len(PEER) + 2}.2f}")
    return lines


def _millions(speeds: list[float]) -> str:
    return ", ".join(f"{speed / 1e6:.2f} M" for speed in speeds)
