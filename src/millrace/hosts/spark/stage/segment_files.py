"""Segments as files of this machine, which its worker processes share.

A worker process that has not cached a bucket reads all its segments. Spark gives tasks to whichever process has waited
longest, so this is the rule, and Spark's state store reads no more than tens of megabytes per second. A file is mapped
into memory, without a copy and only where it is read.

Rules:
- Spark's state is the valid one. A file that is missing or damaged costs time, never an answer: it ends with its
  digest, which a process checks once, before it maps the file.
- A file is written under a name of its own, renamed, and never changed. Names of segments are never used twice.
- The folder is in one of Spark's own, which goes with the executor. Its size is bounded: where there is no room, files
  that have not been read for long are removed, or the new one is not kept.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pyarrow as pa

_MOST_BYTES = 2**31
_SHARE = 4
"""The files may take one part in this many of the free space on disk."""
_IDLE_SECONDS = 600.0
_DIGEST = 4
_MOST_CHECKED = 10_000
_CHECKED: set[Path] = set()
"""Files that this process has found to be whole."""


class SegmentFiles:
    """The segments of one checkpoint, as far as this machine has them; without a folder it has none."""

    def __init__(self, checkpoint: str, folder: Path | None) -> None:
        self._checkpoint = checkpoint
        self._folder = folder

    def read(self, node: str, place: int) -> pa.Table | None:
        """A segment of an operator; None if it is not there."""
        if self._folder is None:
            return None
        path = self._path(self._folder, node, place)
        try:
            os.utime(path)
            with pa.memory_map(str(path)) as file:
                content = file.read_buffer()
            rows, told = content.slice(0, content.size - _DIGEST), content.slice(max(content.size - _DIGEST, 0))
            if path not in _CHECKED and bytes(told) != _digest(rows):
                return None
            if len(_CHECKED) > _MOST_CHECKED:
                _CHECKED.clear()
            _CHECKED.add(path)
            with pa.ipc.open_file(pa.BufferReader(rows)) as blocks:
                return blocks.read_all()
        except (OSError, ValueError, IndexError):
            return None

    def write(self, node: str, place: int, table: pa.Table) -> None:
        """Keep a segment, if there is room for it."""
        if self._folder is None:
            return
        written = self._folder / secrets.token_hex(8)
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            if not _make_room(self._folder, table.nbytes):
                return
            try:
                rows = pa.BufferOutputStream()
                with pa.ipc.new_file(rows, table.schema) as blocks:
                    blocks.write_table(table)
                with pa.OSFile(str(written), "wb") as file:
                    file.write(content := rows.getvalue())
                    file.write(_digest(content))
                written.replace(self._path(self._folder, node, place))
            finally:
                written.unlink(missing_ok=True)

    def remove(self, node: str, place: int) -> None:
        """Remove a segment; a process that has it mapped keeps it."""
        if self._folder is not None:
            path = self._path(self._folder, node, place)
            _CHECKED.discard(path)
            with suppress(OSError):
                path.unlink()

    def _path(self, folder: Path, node: str, place: int) -> Path:
        owner = hashlib.sha256(f"{self._checkpoint}\n{node}".encode()).hexdigest()[:16]
        return folder / f"{owner}-{place:016x}.arrow"


def _digest(content: pa.Buffer) -> bytes:
    return crc32(content).to_bytes(_DIGEST, "big")


def shared_folder() -> Path | None:
    """Where the worker processes of an executor keep segments; None elsewhere."""
    folders = [Path(each) for each in os.environ.get("SPARK_LOCAL_DIRS", "").split(",")]
    # The name is that of folders which Spark makes for an executor and removes with it. A user may set the variable to
    # folders that stay.
    return next((each / "millrace-segments" for each in folders if each.name.startswith("blockmgr-")), None)


def _make_room(folder: Path, size: int) -> bool:
    """True if a file of that size may be written; files that have not been read for long are removed for it."""
    files = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
    taken, idle = sum(each for _, each, _ in files), time.time() - _IDLE_SECONDS
    most = min(_MOST_BYTES, (shutil.disk_usage(folder).free + taken) // _SHARE)
    for read_at, each, path in sorted(files):
        if taken + size <= most or read_at > idle:
            break
        Path(path).unlink(missing_ok=True)
        taken -= each
    return taken + size <= most
