"""The few calls by which checkpoints, commit logs and sinks touch the disk; tests put others in their place.

Rules:
- Whatever must survive is written, renamed and removed by `files()`, never by a path's own methods.
- A call changes what other processes see at once, and what survives a power cut not at all. The content of a file is
  safe after `sync_file`; that it is there, is gone, or has a new name, after `sync_folder` of the folder that it is in.
- Trouble names its path: Arrow, and calls by descriptor, do not say it.
- `using` puts others in the place of the real ones, for this process: `millrace.testing.SimulatedFiles` loses what was
  not synced, and fails where it is told to.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.errors import of_path

_syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
"""Linux has it; elsewhere all disks are synced."""

Content = bytes | memoryview


class Files:
    """The file system of this machine.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> files().write(folder / "draft", b"some")
    >>> files().append(folder / "draft", b" more")
    >>> files().sync_file(folder / "draft")
    >>> files().rename(folder / "draft", folder / "record")
    >>> files().sync_folder(folder)
    >>> files().list(folder), files().read(folder / "record")
    (['record'], b'some more')
    """

    @contextmanager
    def create(self, path: Path) -> Iterator[Any]:
        """A new file, or an emptied one, to be written as an Arrow stream."""
        with of_path(path), pa.OSFile(str(path), "wb") as stream:
            yield stream

    def write(self, path: Path, content: Content) -> None:
        """Write a whole file."""
        with self.create(path) as stream:
            stream.write(content)

    def append(self, path: Path, content: Content) -> None:
        """Write at the end of a file, which is made if need be."""
        with of_path(path), path.open("ab", buffering=0) as stream:
            stream.write(content)

    def rename(self, path: Path, to: Path) -> None:
        """Give a file another name, in the place of the file that has it."""
        path.replace(to)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Remove a folder with all that is in it, as far as that can be done."""
        shutil.rmtree(path, ignore_errors=True)

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it, if they are not there; they are on disk when this returns."""
        if not path.is_dir():
            self.make_folder(path.parent)
            self._make_one(path)
            # A folder above may be one that this process may not read.
            with suppress(PermissionError):
                self.sync_folder(path.parent)

    def _make_one(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def sync_file(self, path: Path) -> None:
        """Return when the content of a file is on disk."""
        _sync(path)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in a folder are on disk."""
        _sync(path)

    def sync_disk(self, path: Path) -> None:
        """Return when all that the disk of a folder holds is safe, whichever process wrote it."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if _syncfs is None or _syncfs(descriptor) != 0:
                os.sync()
        finally:
            os.close(descriptor)

    def read(self, path: Path) -> bytes:
        """The content of a file."""
        with of_path(path):
            return path.read_bytes()

    def map(self, path: Path) -> Any:
        """A file as an Arrow stream over mapped memory."""
        with of_path(path):
            return pa.memory_map(str(path))

    def list(self, path: Path) -> list[str]:
        """The names in a folder; none if it is not there."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with of_path(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


_files = Files()


def files() -> Files:
    """The file system that this process uses."""
    return _files


@contextmanager
def using(other: Files) -> Iterator[Files]:
    """Use another file system in this process, until the end of the block."""
    global _files
    before, _files = _files, other
    try:
        yield other
    finally:
        _files = before
