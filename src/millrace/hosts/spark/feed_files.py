"""The files that the driver makes of rows from Python, in a folder a stream, for the source to read.

Rules:
- A file's name is its number. It is written whole before it has its name: a kill leaves none that is cut off.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millrace.connectors import write_file


def file_name(number: int) -> str:
    """The name of a stream's file; it sorts after those of all earlier ones.

    >>> file_name(7)
    '00000007.parquet'
    """
    return f"{number:08d}.parquet"


def put_rows(folder: Path, number: int, rows: pa.Table) -> None:
    """Put a file with these rows in its place."""
    draft = folder / f".{file_name(number)}"
    write_file(draft, "parquet", rows)
    draft.replace(folder / file_name(number))
