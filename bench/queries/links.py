"""Input for the workloads: three links as parquet files, sorted by time, with many pairs of addresses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.queries.workload import Workload, write_file

SIDE = 256
MINUTES = 10
ORIGIN = 1_704_067_200_000_000
"""2024-01-01 00:00:00 UTC, in microseconds."""
_MINUTE = 60_000_000
_FILES = 8
_SPARSE = 1_000

NAMES = ("control", "main1", "main2")
COLUMNS = "srcIP STRING, destIP STRING, len INT, ts TIMESTAMP"
KEYS = ("srcIP", "destIP")


def write_links(folder: Path, rows: int, side: int = SIDE, seed: int = 4) -> Workload:
    """A count over two busy links in eight files each, and a control link with a thousandth of a busy one's rows."""
    random = np.random.default_rng(seed)
    busy = rows // 2
    counts = {"control": busy // _SPARSE, "main1": busy, "main2": busy}
    addresses = pa.array([f"10.0.{number // 16}.{number % 16}" for number in range(side)])
    for link, count in counts.items():
        _write_link(folder / link, count, 1 if link == "control" else _FILES, addresses, random)
    return Workload({name: folder / name for name in NAMES}, COLUMNS, "ts", KEYS, sum(counts.values()))


def _write_link(folder: Path, count: int, files: int, addresses: pa.Array, random: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    edges = np.linspace(0, MINUTES * _MINUTE, files + 1).astype(np.int64)
    for number, size in enumerate(np.diff(np.linspace(0, count, files + 1).astype(int))):
        times = ORIGIN + np.sort(random.integers(edges[number], edges[number + 1], size))
        table = pa.table(
            {
                "srcIP": addresses.take(pa.array(random.integers(0, len(addresses), size))),
                "destIP": addresses.take(pa.array(random.integers(0, len(addresses), size))),
                "len": pa.array(random.integers(40, 1_500, size).astype(np.int32)),
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            }
        )
        write_file(folder, number, table)
