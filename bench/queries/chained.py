"""A band join and, behind it, a count by another key: two operators with state that need different partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.queries.pairs import COLUMNS, write_pairs
from bench.queries.workload import network
from bench.systems.stock_join import Join
from millrace.plan.nodes.query_network import QueryNetwork

BAND, WINDOW, LANES = 1, 2, 1_000
"""Seconds, seconds, and the keys of the count."""
SPAN = 13.5
"""Seconds: the last window is complete half a second before the last row, whatever a system rounds times to."""


@dataclass(frozen=True)
class Chained:
    """Rows with equal keys, a band apart at most, counted by the lane of `b`, in windows by the time of `a`."""

    folders: Mapping[str, Path]
    rows: int
    results: str = "window_start, lane, n"

    @property
    def needs(self) -> Mapping[str, str]:
        """No row of either stream may still make a pair in the window."""
        ends = f"window_start + INTERVAL {WINDOW} SECOND"
        return {"a": ends, "b": f"{ends} + INTERVAL {BAND} SECOND"}

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""
        window = f"[RANGE {WINDOW} SECONDS SLIDE {WINDOW} SECONDS WA ts]"
        select = f"SELECT window, lane, count(*) AS n FROM ({self._pairs()}) AS pairs {window} GROUP BY lane"
        return network(self.folders, COLUMNS, "TIMESTAMP BY ts ORDERED", select, output, files_per_batch)

    def stock(self, output: Path, checkpoint: Path, files_per_batch: int | None) -> Join:
        """The query as a user of Spark writes it."""
        a, b = (str(folder) for folder in self.folders.values())
        return Join(a, b, str(output), str(checkpoint), COLUMNS, BAND, files_per_batch, WINDOW, LANES)

    def truth(self) -> str:
        """The query in DuckDB's words, for the windows in which no pair can be added."""
        return f"""SELECT window_start, lane, count(*) AS n
            FROM (SELECT time_bucket(INTERVAL {WINDOW} SECOND, ts) AS window_start, lane FROM ({self._pairs()}))
            WHERE window_start + INTERVAL {WINDOW} SECOND
              <= least((SELECT max(ts) FROM a), (SELECT max(ts) FROM b) - INTERVAL {BAND} SECOND)
            GROUP BY ALL"""

    def _pairs(self) -> str:
        return f"""SELECT b.n % {LANES} AS lane, a.ts AS ts FROM a JOIN b ON a.key = b.key
            AND a.ts BETWEEN b.ts - INTERVAL {BAND} SECOND AND b.ts + INTERVAL {BAND} SECOND"""


def write_chained(folder: Path, files: int, rows: int) -> Chained:
    """Write so many files per stream, each with so many rows, all together of six windows and what completes them."""
    pairs = write_pairs(folder, [rows] * files, BAND, apart=int(SPAN * 1e6) // (files * rows))
    return Chained(pairs.folders, pairs.rows)
