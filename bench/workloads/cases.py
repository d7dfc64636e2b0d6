"""The workloads of the table beside stock Spark: their input, and the systems that run them.

Sizes are for 6,400,000 rows and shrink with what is asked for. A system has five minutes for a workload: joins have few
micro-batches, because one takes stock Spark with RocksDB 10 seconds and more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from bench.queries.chained import write_chained
from bench.queries.links import write_links
from bench.queries.lookups import Shape, write_lookups
from bench.queries.pairs import write_pairs
from bench.queries.silent_source import SECONDS, silent_source, spark_live, stock_live
from bench.queries.workload import Work
from bench.systems.engines import Engine, Measured, Task, duck, spark_host, stock_spark
from bench.systems.stock_settings import COUNTS, JOINS, LIVE, Variant

OURS, FRAMES, BATCH = "Spark host", "Spark host, DataFrames", "DuckDB, in batch"


class StockEngine(Protocol):
    """Stock Spark, which runs a task with settings."""

    def __call__(self, task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
        """The measured rounds."""


@dataclass(frozen=True)
class Case:
    """A workload of the table; `make` writes its input, for so many rows, to a folder."""

    title: str
    make: Callable[[Path, int], Work]
    ours: Mapping[str, Engine] = field(default_factory=lambda: {OURS: spark_host})
    stock: StockEngine = stock_spark
    variants: Sequence[Variant] = ()
    """What stock Spark is tried with; the fastest of each store is measured."""
    warm: int = 4
    """Files of each stream in the round that warms up: half of them."""
    trial: float = 1.0
    """The share of all rows that the input of a trial is made for."""
    live: bool = False
    """True if it is fed while it runs: then each system has input of its own."""
    remark: str = ""

    @property
    def joins(self) -> bool:
        """True if the format of a join's state matters."""
        return self.variants is JOINS

    @property
    def stores(self) -> list[str]:
        """The state stores of stock Spark that are measured."""
        return list(dict.fromkeys(each.store for each in self.variants))


def _tumbling(folder: Path, rows: int, side: int) -> Work:
    return write_links(folder, rows, side)


def _sliding(folder: Path, rows: int) -> Work:
    return replace(write_links(folder, rows), keys=("srcIP",), window=60, slide=1)


def _band(folder: Path, rows: int) -> Work:
    return write_pairs(folder, [rows // 25] * 4, 1)


def _as_of(folder: Path, rows: int) -> Work:
    asked = rows // 16
    return write_lookups(folder, Shape(4_096, asked, 4 * asked, seconds=600.0, grain=1).made())


def _chain(folder: Path, rows: int) -> Work:
    return write_chained(folder, 4, rows // 64)


def _live(folder: Path, rows: int, *, silent: bool) -> Work:
    return silent_source(folder, SECONDS, busy=max(100.0, rows / 320), silent=silent)


_FROM_FILES_AND_FRAMES = {OURS: spark_host, FRAMES: partial(spark_host, frames=True)}
_LIVE: dict[str, Engine] = {OURS: spark_live}
CASES = {
    "tumbling_65k": Case(
        "tumbling count, 65,536 groups", partial(_tumbling, side=256), _FROM_FILES_AND_FRAMES, variants=COUNTS
    ),
    "tumbling_1m": Case("tumbling count, 1,000,000 groups", partial(_tumbling, side=1_000), variants=COUNTS),
    "sliding": Case("sliding count, 60 s by 1 s", _sliding, variants=COUNTS),
    "band_join": Case("band join, +-1 s, 65,536 keys", _band, variants=JOINS, warm=2, trial=0.25),
    "chained": Case("band join, then count", _chain, variants=JOINS, warm=2, trial=0.5),
    "asof": Case(
        "as-of join",
        _as_of,
        {OURS: spark_host, BATCH: duck},
        remark="none for streams; for batches the pandas API has merge_asof",
    ),
    "live": Case("union of three, live", partial(_live, silent=False), _LIVE, stock_live, LIVE, live=True),
    "silent_source": Case(
        "union of three, live, one silent", partial(_live, silent=True), _LIVE, stock_live, LIVE, live=True
    ),
}
