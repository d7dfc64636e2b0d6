"""Rows per second of a count over the last 60 seconds, every second, by 256 addresses, as ratios.

Stock Spark makes 60 rows of each, one a window it lies in; panes make one partial of many. Aim: at least ten times
stock Spark with RocksDB state, on both hosts.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from bench.measures.comparison import compare
from bench.queries.links import write_links


def run(rows: int, rounds: int) -> None:
    """Measure all systems; a quarter of the rows, for the peer's sake."""
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        print(f"writing {rows // 4:,} rows ...", flush=True)
        links = write_links(Path(name) / "links", rows // 4)
        workload = replace(links, keys=("srcIP",), window=60, slide=1)
        compare("sliding_count", workload, Path(name), rounds, window=60, slide=1)
