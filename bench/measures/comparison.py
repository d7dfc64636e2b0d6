"""One workload on several systems in one run: speeds, checked answers, a table of ratios, and lines of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.measures import result_log
from bench.measures.answers import check
from bench.queries.workload import Work
from bench.systems.engines import HDFS, ROCKSDB, Engine, PeerFailed, Task, local, spark_host, stock_spark

OURS: dict[str, Engine] = {"local host": local, "Spark host": spark_host}
PEERS: dict[str, Engine] = {
    "stock Spark, RocksDB": partial(stock_spark, settings=ROCKSDB),
    "stock Spark, HDFS-backed": partial(stock_spark, settings=HDFS),
}
_PEER = "stock Spark, "
"""What the names of peers begin with."""
_WIDE = 13
"""Letters of the longest heading of a ratio."""


@dataclass(frozen=True)
class Speed:
    """Rows per second of each round, and on Spark the seconds of each micro-batch that had none of the start in it."""

    rounds: list[float]
    batches: list[float]

    @property
    def rate(self) -> float:
        return median(self.rounds)

    @property
    def batch(self) -> float | None:
        return median(self.batches) if self.batches else None


def compare(
    name: str,
    workload: Work,
    folder: Path,
    rounds: int,
    *,
    engines: Mapping[str, Engine] | None = None,
    files_per_batch: int | None = 2,
    check: Callable[[Work, Path, str], int] = check,
    **details: Any,
) -> dict[str, Speed]:
    """Measure all systems, check their answers, print a table and append the results, with the details.

    `check` gives the number of results in a folder that a system wrote, and refuses those that are not true.
    """
    around = result_log.circumstances()
    task = Task(workload, folder, rounds, files_per_batch)
    speeds: dict[str, Speed] = {}
    results = 0
    for engine, measure in (engines or {**OURS, **PEERS}).items():
        try:
            measured = measure(task, engine)
        except PeerFailed as error:
            print(f"  {engine}: {error}", flush=True)
            continue
        results = check(workload, task.output(engine, rounds), engine)
        speeds[engine] = Speed([workload.rows / seconds for seconds in measured.seconds], measured.batch_seconds)
        print(f"  {engine}: {_millions(speeds[engine].rounds)} rows/s; {results:,} results, all true", flush=True)
    print("\n".join(table(speeds)))
    shared = {"rows": workload.rows, "files_per_batch": task.files_per_batch, "results": results, **details}
    lines = [{**shared, "engine": engine, **_data(found)} for engine, found in speeds.items()]
    print(f"appended to {result_log.append(name, around, lines)}", flush=True)
    return speeds


def table(speeds: Mapping[str, Speed]) -> list[str]:
    """One line per system: median speed and seconds of the median micro-batch, each with its ratio to the peers'.

    >>> peer, ours = Speed([500_000.0], [4.0]), Speed([2_000_000.0], [0.5])
    >>> for line in table({"stock Spark, RocksDB": peer, "Spark host": ours}):
    ...     print(line)
    system                         rows/s      x RocksDB  s a micro-batch      x RocksDB
    stock Spark, RocksDB          500,000           1.00             4.00           1.00
    Spark host                  2,000,000           4.00             0.50           8.00
    """
    peers = {name.split(", ")[1]: found for name, found in speeds.items() if name.startswith(_PEER)}
    ratios = "".join(f"  {'x ' + name:>{_WIDE}}" for name in peers)
    lines = [f"{'system':<26} {'rows/s':>10}{ratios}  s a micro-batch{ratios}"]
    for engine, found in speeds.items():
        faster = _cells([found.rate / peer.rate for peer in peers.values()])
        shorter = _cells([_times(peer.batch, found.batch) for peer in peers.values()])
        lines.append(f"{engine:<26} {found.rate:>10,.0f}{faster}  {_number(found.batch):>15}{shorter}")
    return lines


def _times(peer: float | None, own: float | None) -> float | None:
    return None if peer is None or own is None else peer / own


def _cells(ratios: Sequence[float | None]) -> str:
    return "".join(f"  {_number(ratio):>{_WIDE}}" for ratio in ratios)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _data(speed: Speed) -> dict[str, Any]:
    entry: dict[str, Any] = {"rows_per_second": [round(each) for each in speed.rounds]}
    return {**entry, "batch_seconds": [round(each, 3) for each in speed.batches]} if speed.batches else entry


def _millions(speeds: list[float]) -> str:
    return ", ".join(f"{speed / 1e6:.2f} M" for speed in speeds)
