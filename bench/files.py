"""The files that all systems read, in the same order."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_file(folder: Path, number: int, table: pa.Table) -> None:
    """Write the file of a number; files are read in order of their numbers."""
    path = folder / f"{number:06d}.parquet"
    pq.write_table(table, path)
    # Stock Spark reads by modification time: without this, files written in one second come in any order.
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
