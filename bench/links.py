"""Input for the workloads: three links as parquet files, sorted by time, with 256 x 256 pairs of addresses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SIDE = 256
MINUTES = 10
ORIGIN = 1_704_067_200_000_000
"""2024-01-01 00:00:00 UTC, in microseconds."""
_MINUTE = 60_000_000
_FILES = 8
_SPARSE = 1_000


@dataclass(frozen=True)
class Links:
    """The folders of the links, and how many rows they hold together."""

    folder: Path
    rows: int

    NAMES = ("control", "main1", "main2")

    def path(self, link: str) -> Path:
        return self.folder / link


def write_links(folder: Path, rows: int, seed: int = 4) -> Links:
    """Two busy links in eight files each, and a control link with a thousandth of a busy one's rows in one file."""
    random = np.random.default_rng(seed)
    busy = rows // 2
    counts = {"control": busy // _SPARSE, "main1": busy, "main2": busy}
    for link, count in counts.items():
        _write_link(folder / link, count, 1 if link == "control" else _FILES, random)
    return Links(folder, sum(counts.values()))


def _write_link(folder: Path, count: int, files: int, random: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    addresses = pa.array([f"10.0.{number // 16}.{number % 16}" for number in range(SIDE)])
    edges = np.linspace(0, MINUTES * _MINUTE, files + 1).astype(np.int64)
    for number, size in enumerate(np.diff(np.linspace(0, count, files + 1).astype(int))):
        times = ORIGIN + np.sort(random.integers(edges[number], edges[number + 1], size))
        table = pa.table(
            {
                "srcIP": addresses.take(pa.array(random.integers(0, SIDE, size))),
                "destIP": addresses.take(pa.array(random.integers(0, SIDE, size))),
                "len": pa.array(random.integers(40, 1_500, size).astype(np.int32)),
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            }
        )
        path = folder / f"{number:06d}.parquet"
        pq.write_table(table, path)
        # Stock Spark reads by modification time: without this, files written in one second come in any order.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
