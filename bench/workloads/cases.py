"""The workloads of the table beside stock Spark: their input, and the systems that run them.

Sizes are for 6,400,000 rows and shrink with what is asked for. A system has four minutes for a workload: joins have few
micro-batches, because one takes stock Spark with RocksDB up to 40 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.measures.comparison import PEERS
from bench.queries.chained import write_chained
from bench.queries.links import write_links
from bench.queries.lookups import Shape, write_lookups
from bench.queries.pairs import write_pairs
from bench.queries.silent_source import SECONDS, silent_source, spark_live, stock_live
from bench.queries.workload import Work
from bench.systems.engines import HDFS, ROCKSDB, Engine, duck, spark_host, stock_spark

ALL_ROWS = 6_400_000
OURS, BATCH = "Spark host", "DuckDB, in batch"
_STORES = dict(zip(PEERS, (ROCKSDB, HDFS), strict=True))
_FOUR_GIGABYTES = {"spark.driver.memory": "4g"}
"""Stock Spark keeps every row of a band in Java, some of it several times: its gigabyte is not to be what counts."""


@dataclass(frozen=True)
class Case:
    """A workload of the table; `make` writes its input, for so many rows, to a folder."""

    title: str
    make: Callable[[Path, int], Work]
    engines: Mapping[str, Engine]
    warm: int = 2
    """Files of each stream in the round that warms up."""
    live: bool = False
    """True if it is fed while it runs: then each system has input of its own."""
    remark: str = ""


def _beside_stock(settings: Mapping[str, str] | None = None, ours: Engine = spark_host) -> dict[str, Engine]:
    peers = {name: partial(stock_spark, settings={**store, **(settings or {})}) for name, store in _STORES.items()}
    return {OURS: ours, **peers}


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


def _silent(folder: Path, rows: int) -> Work:
    return silent_source(folder, SECONDS, busy=max(100.0, rows / 320))


CASES = {
    "tumbling_65k": Case("tumbling count, 65,536 groups", partial(_tumbling, side=256), _beside_stock()),
    "tumbling_frames": Case(
        "tumbling count, 65,536 groups, read by Spark",
        partial(_tumbling, side=256),
        _beside_stock(ours=partial(spark_host, frames=True)),
    ),
    "tumbling_1m": Case("tumbling count, 1,000,000 groups", partial(_tumbling, side=1_000), _beside_stock()),
    "sliding": Case("sliding count, 60 s by 1 s", _sliding, _beside_stock()),
    "band_join": Case("band join, +-1 s, 65,536 keys", _band, _beside_stock(_FOUR_GIGABYTES), warm=1),
    "asof": Case("as-of join", _as_of, {OURS: spark_host, BATCH: duck}, remark="stock Spark has none"),
    "chained": Case("band join, then count", _chain, _beside_stock(_FOUR_GIGABYTES), warm=1),
    "silent_source": Case(
        "union, one of three silent",
        _silent,
        {OURS: spark_live, **{name: partial(stock_live, settings=store) for name, store in _STORES.items()}},
        live=True,
    ),
}
