"""Rows per second of a band join, +-1 s, 65,536 keys, 500,000 rows per micro-batch, on both hosts and stock Spark.

Starting a query costs seconds, so the seconds of a micro-batch under way stand beside the speed of whole runs. Aims:
the Spark host at least 6 times stock Spark with its HDFS-backed store, and 20 times that with RocksDB. A band ten times
as wide with as many partners per row keeps ten times as many rows: it may cost at most twice as much per row.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from bench.measures.comparison import OURS, PEERS, Speed, compare
from bench.queries.pairs import KEYS, write_pairs
from bench.systems.engines import HDFS, ROCKSDB, Engine, stock_spark

BATCH = 500_000
"""Rows of both streams together in a micro-batch, which is a file of each."""
BAND, WIDER = 1, 10
"""Seconds."""
_MEMORY = {"spark.driver.memory": "4g"}
"""Stock Spark keeps every row of the band in Java, some of it several times: its gigabyte is not to be what counts."""
_STORES = {"stock Spark, RocksDB": ROCKSDB, "stock Spark, HDFS-backed": HDFS}
ENGINES: dict[str, Engine] = {
    **OURS,
    **{name: partial(stock_spark, settings={**_STORES[name], **_MEMORY}) for name in PEERS},
}


def run(rows: int, rounds: int) -> None:
    """Measure all systems, then both hosts with the wider band too; half of the rows, for the peers' sake."""
    files = max(4, rows // 2 // BATCH)
    size = min(BATCH, rows // 2 // files) // 2
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        folder = Path(name)
        print(f"writing {files} x {2 * size:,} rows for each band ...", flush=True)
        joins = {band: write_pairs(folder / f"{band}s", [size] * files, band) for band in (BAND, WIDER)}
        compare("band_join", joins[BAND], folder, rounds, engines=ENGINES, files_per_batch=1, band=BAND, keys=KEYS)
        # The wider band first: if the later one gains from what the earlier has warmed up, it is the baseline.
        speeds = {
            band: compare(
                "band_join",
                joins[band],
                folder / f"{band}s",
                rounds,
                engines=OURS,
                files_per_batch=1,
                band=band,
                keys=KEYS * band,
            )
            for band in (WIDER, BAND)
        }
        for engine in OURS:
            cost = costs(speeds[WIDER][engine], speeds[BAND][engine])
            print(
                f"{engine}: a band {WIDER // BAND} times as wide costs x {cost:.2f} per row (aim: at most 2)",
                flush=True,
            )


def costs(wide: Speed, narrow: Speed) -> float:
    """How many times as much a row costs: by micro-batches under way where there are any, else by whole runs.

    >>> costs(Speed([50.0], [1.5]), Speed([100.0], [1.0])), costs(Speed([50.0], []), Speed([100.0], []))
    (1.5, 2.0)
    """
    if wide.batch is not None and narrow.batch is not None:
        return wide.batch / narrow.batch
    return narrow.rate / wide.rate
