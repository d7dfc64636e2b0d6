"""Folders, locks, and files that survive a power cut whole or not at all; all of it by the calls of file_system.py."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millrace.errors import RequestError, RunError
from millrace.hosts.checkpoint.digests import damaged_file, digest, is_of_other_layout, missing, sealed, unsealed
from millrace.hosts.checkpoint.file_system import files

_PATIENCE = 0.5
"""Seconds for which a lock is tried: a process that only tests it holds it for a moment."""
_LOOK = 0.01
_NOTE = b"millrace"


class Lock:
    """A lock on a file or a folder that lasts until it is closed, however its process ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_WRONLY | os.O_CREAT)

    def taken(self) -> bool:
        """True if this call has taken the lock; False if another has it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let it go; it may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lock(path: Path, refusal: RequestError) -> Lock:
    """A lock; raises the refusal if another has it."""
    found, until = Lock(path), time.monotonic() + _PATIENCE
    try:
        while not found.taken():
            if time.monotonic() > until:
                raise refusal
            time.sleep(_LOOK)
    except BaseException:
        found.close()
        raise
    return found


def lock_checkpoint(folder: Path) -> Lock:
    """The lock of a checkpoint, to be held while a run goes on from it: of the folder itself, so that nothing that is
    removed from it opens the lock; of a file in it where folders cannot be locked."""
    make_checkpoint_folder(folder)
    refusal = RequestError(
        f'another run goes on from the checkpoint "{folder}"',
        hint="Stop it first, or give this run another --checkpoint.",
    )
    try:
        return lock(folder, refusal)
    except OSError:
        return lock(folder / "lock", refusal)


def taken_over(folder: Path, what: str) -> RunError:
    """The error of a run whose checkpoint another run has taken over, in spite of the lock."""
    return RunError(
        f'another run has taken over the checkpoint "{folder}": {what}',
        hint="This run has stopped, and written nothing since. Only one run may use a checkpoint: give each its own.",
    )


def make_checkpoint_folder(folder: Path) -> None:
    """The folder of a checkpoint; a new one is for its owner alone, as it holds rows and texts of queries."""
    make_folder(folder.parent, "the folder of the checkpoint")
    is_new = not folder.exists()
    make_folder(folder, "the checkpoint")
    if is_new:
        folder.chmod(0o700)


def make_folder(path: Path, what: str) -> Path:
    """The folder, made if need be; `what` names it where that cannot be."""
    try:
        files().make_folder(path)
    except (FileExistsError, NotADirectoryError):
        raise RequestError(f'{what} "{path}" is no folder', hint="Name another path: a file is in the way.") from None
    except OSError as error:
        raise RequestError(f'{what} "{path}" cannot be made: {error.strerror}', hint="Name another path.") from error
    return path


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a power cut, sees the old content or the new one."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    files().write(draft, content.encode() if isinstance(content, str) else content)
    files().sync_file(draft)
    files().rename(draft, path)
    files().sync_folder(path.parent)


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Put a record in its place, whole and on disk, with its digest."""
    replace_file(path, sealed(record, path.name))


def read_record(path: Path, layout: int | None = None) -> dict[str, Any]:
    """A record; refuses one that is damaged or gone. Of one with another `layout` only that is read."""
    try:
        content = files().read(path)
    except FileNotFoundError:
        raise missing(path) from None
    record = unsealed(content, path.name)
    if record is None and layout is not None and is_of_other_layout(content, layout):
        return {"layout": None}
    if record is None:
        raise damaged_file(path)
    return record


def write_arrow(path: Path, rows: pa.Table, note: str = "") -> str:
    """Write rows as an Arrow file, with a note in its schema; its digest. `sync_all` makes it safe."""
    if note:
        rows = rows.replace_schema_metadata({_NOTE: note})
    with files().create(path) as stream, pa.ipc.new_file(stream, rows.schema) as writer:
        writer.write(rows)
    # Read back from the system's memory: a copy of large rows in ours would cost four times as much.
    with files().map(path) as written:
        return digest(written.read_buffer())


def read_arrow(path: Path, expected: str | None = None, *, mapped: bool = False) -> pa.Table:
    """The rows of an Arrow file; those of a mapped one are read where they are used, and the file must stay.

    Refuses one that is gone, or whose digest is not the expected one, before anything is made of it.
    """
    try:
        with files().map(path) if mapped else pa.BufferReader(files().read(path)) as source:
            content = source.read_buffer()
    except FileNotFoundError:
        raise missing(path) from None
    if expected is not None and digest(content) != expected:
        raise damaged_file(path)
    with pa.ipc.open_file(pa.BufferReader(content)) as reader:
        return reader.read_all()


def note_of(rows: pa.Table) -> str:
    """The note that rows were written with."""
    return str(rows.schema.metadata[_NOTE].decode())


def sync_all(written: Iterable[Path], folders: Iterable[Path] = ()) -> None:
    """Return when files, and the names in their folders and in others, are on disk; each is synced once."""
    paths = sorted(set(written))
    for path in paths:
        files().sync_file(path)
    for folder in sorted({*folders, *(path.parent for path in paths)}):
        files().sync_folder(folder)
