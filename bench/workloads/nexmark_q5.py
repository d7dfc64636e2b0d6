"""Rows per second of Nexmark's q5: the auctions with the most bids of the last 10 seconds, every 2 seconds.

The bids are those of the source `nexmark`, at 10,000 events per second, written to files that all systems read.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measures.comparison import compare
from bench.queries.workload import Workload, write_file
from millrace.connectors.generators.generated_input import make_slice, slices_of
from millrace.kernel.elements import ARRIVED, TIMESTAMP
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.endpoints import Connector, Stream

COLUMNS = "auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP"
_SCHEMA = pa.schema([*((name, pa.int64()) for name in ("auction", "bidder", "price")), ("date_time", TIMESTAMP)])
_FILES = 16


def run(rows: int, rounds: int) -> None:
    """Measure all systems; `rows` counts events of all three kinds."""
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        print(f"writing the bids of {rows:,} events ...", flush=True)
        folder = Path(name) / "bid"
        bids = write_bids(folder, rows)
        workload = Workload({"bid": folder}, COLUMNS, "date_time", ("auction",), bids, window=10, slide=2, most=True)
        compare("nexmark_q5", workload, Path(name), rounds, events=rows)


def write_bids(folder: Path, events: int) -> int:
    """Write the bids among so many events to files, and tell how many there are."""
    folder.mkdir(parents=True)
    options = {"table": "bid", "events": str(events)}
    stream = Stream("bid", _SCHEMA, TimeContract("external", "date_time"), Connector("nexmark", options))
    slices = np.array_split(np.arange(slices_of(stream)), min(_FILES, slices_of(stream)))
    written = 0
    for number, mine in enumerate(slices):
        made = pa.Table.from_batches([make_slice(stream, _SCHEMA, int(each)) for each in mine])
        write_file(folder, number, made.drop_columns([ARRIVED]))
        written += made.num_rows
    return written
