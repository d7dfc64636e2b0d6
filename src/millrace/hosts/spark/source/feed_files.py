"""The files that the driver writes for rows from Python, in one folder per stream, for the source to read.

Rules:
- A file's name is its number. It gets the name when it is written whole: a kill leaves no file that is cut off.
- Files are removed from the front. Their number is written first: a reader that lists the folder and then reads that
  number knows that every missing file was removed, also if a kill came between.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millrace.connectors.files.file_writer import write_file
from millrace.hosts.checkpoint.durable_files import read_record, write_record
from millrace.hosts.checkpoint.file_system import files

_REMOVED = ".millrace-removed"


def file_name(number: int) -> str:
    """The name of a stream's file; it sorts after those of all earlier ones.

    >>> file_name(7)
    '00000007.parquet'
    """
    return f"{number:08d}.parquet"


def put_rows(folder: Path, number: int, rows: pa.Table) -> None:
    """Put a file with these rows in its place; its name is safe when the folder is synced."""
    draft = folder / f".{file_name(number)}"
    write_file(draft, "parquet", rows, create=files().create)
    files().sync_file(draft)
    files().rename(draft, folder / file_name(number))


def count_files(folder: Path) -> int:
    """How many files a folder has had."""
    return max([count_removed(folder), *(int(name.removesuffix(".parquet")) + 1 for name in _names(folder))])


def count_removed(folder: Path) -> int:
    """How many of a folder's files have been removed; none if it is not one of ours, or no folder."""
    record = folder / _REMOVED
    return int(read_record(record)["removed"]) if record.exists() else 0


def remove_files(folder: Path, until: int) -> None:
    """Remove the files below a number, for good."""
    write_record(folder / _REMOVED, {"removed": until})
    for name in _names(folder):
        if name < file_name(until):
            files().remove(folder / name)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("[0-9]*.parquet")]
