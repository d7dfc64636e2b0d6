"""Up to where a file can be read now, though it may still be written.

Rules:
- A file rests if it has not been modified for some seconds. In a run with an end a file that rests is read to its end,
  and so is any file where the input ends; piece_finder.py says what a run takes that goes on.
- Of a csv or json file that may still be written whole lines are read: a quoted field of csv may hold a line end.
- A parquet file can be read when its last bytes say that it is whole. A compressed file is read when it rests.
"""

from __future__ import annotations

import time
from pathlib import Path

from millrace.connectors.files import csv_reader
from millrace.connectors.files.file_options import read_options
from millrace.connectors.files.input_files import is_plain
from millrace.plan.nodes.endpoints import Connector

REST = 2_000_000_000
"""Nanoseconds without a change after which a file rests."""
_BLOCK = 1 << 20
_PARQUET_END = b"PAR1"


def rests(modified: int) -> bool:
    """True if a file that was modified at this time is not being written; a time far ahead says nothing."""
    return abs(time.time_ns() - modified) >= REST


def can_grow(path: str, connector: Connector) -> bool:
    """True if rows can be added at the end of a file."""
    return connector.format != "parquet" and is_plain(Path(path))


def end_of_rows(path: str, start: int, connector: Connector, *, whole: bool) -> int:
    """Up to where a file can be read now, from `start` on; all of it if it is taken as `whole`."""
    size = Path(path).stat().st_size
    if whole:
        return size
    if connector.format == "parquet":
        with Path(path).open("rb") as file:
            file.seek(max(size - len(_PARQUET_END), 0))
            return size if file.read() == _PARQUET_END and size > len(_PARQUET_END) else start
    if not is_plain(Path(path)):
        return start
    if connector.format == "csv":
        options = read_options(connector.format, connector.options)
        return csv_reader.end_of_records(Path(path), options, start, size)
    return _last_line_end(path, start, size)


def _last_line_end(path: str, start: int, size: int) -> int:
    """Where the last whole line ends; `start` if there is none."""
    with Path(path).open("rb") as file:
        while size > start:
            begin = max(start, size - _BLOCK)
            file.seek(begin)
            found = file.read(size - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            size = begin
    return start
