"""Rows per second of Q1 grouped by 65,536 and by 1,000,000 pairs, on both hosts and on stock Spark, as ratios.

Aims: the Spark host at least as fast as stock Spark with RocksDB state, the local host five times as fast.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.measures.comparison import compare
from bench.queries.links import write_links

SIDES = (256, 1_000)


def run(rows: int, rounds: int) -> None:
    """Measure all systems for every number of groups."""
    for side in SIDES:
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
            print(f"{side * side:,} groups; writing {rows:,} rows ...", flush=True)
            workload = write_links(Path(name) / "links", rows, side)
            compare("grouped_count", workload, Path(name), rounds, groups=side * side)
