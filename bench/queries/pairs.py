"""Two streams whose rows find about one partner each, and the band join that pairs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.queries.links import ORIGIN
from bench.queries.workload import network, write_file
from bench.systems.stock_join import Join
from millrace.plan.nodes.query_network import QueryNetwork

COLUMNS = "key BIGINT, n BIGINT, ts TIMESTAMP"
APART = 32
"""Microseconds between two rows of a stream: 31,250 rows per second, so that some pairs are exactly a band apart."""
KEYS = 65_536
"""For a band of a second: 62,500 rows of the other stream lie in it, 0.95 of them with the same key."""


@dataclass(frozen=True)
class BandJoin:
    """Pairs of rows with equal keys, at most `band` seconds apart; no pair waits for anything but its rows."""

    folders: Mapping[str, Path]
    rows: int
    band: int
    results: str = "key, a_n, b_n, a_ts, b_ts"

    @property
    def needs(self) -> Mapping[str, str]:
        """Both rows must have come."""
        return {"a": "a_ts", "b": "b_ts"}

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""
        return network(self.folders, COLUMNS, "TIMESTAMP BY ts ORDERED", self.truth(), output, files_per_batch)

    def stock(self, output: Path, checkpoint: Path, files_per_batch: int | None) -> Join:
        """The query as a user of Spark writes it."""
        a, b = (str(folder) for folder in self.folders.values())
        return Join(a, b, str(output), str(checkpoint), COLUMNS, self.band, files_per_batch)

    def truth(self) -> str:
        """The query in DuckDB's words, which are ours as well."""
        return f"""SELECT a.key, a.n AS a_n, b.n AS b_n, a.ts AS a_ts, b.ts AS b_ts FROM a JOIN b
            ON a.key = b.key
            AND a.ts BETWEEN b.ts - INTERVAL {self.band} SECOND AND b.ts + INTERVAL {self.band} SECOND"""


def write_pairs(folder: Path, sizes: Sequence[int], band: int, apart: int = APART) -> BandJoin:
    """Write one file per stream and size; a row has as many partners whatever the band and rate."""
    random = np.random.default_rng(5)
    keys = max(1, KEYS * band * APART // apart)
    folders = {name: folder / name for name in ("a", "b")}
    for own in folders.values():
        own.mkdir(parents=True)
        for number, (first, size) in enumerate(zip(accumulate(sizes, initial=0), sizes, strict=False)):
            write_file(own, number, _rows(random, first, size, keys, apart))
    return BandJoin(folders, 2 * sum(sizes), band)


def _rows(random: np.random.Generator, first: int, count: int, keys: int, apart: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    times = pa.array(ORIGIN + numbers * apart).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"key": random.integers(0, keys, count), "n": numbers, "ts": times})
