"""Folders, locks, and files that survive a power cut whole or not at all; all of it by the calls of file_system.py."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from millrace.errors import CheckpointError, RequestError
from millrace.hosts.checkpoint.file_system import files

_PATIENCE = 0.5
"""Seconds for which a lock is tried: a process that only tests it holds it for a moment."""
_LOOK = 0.01
_NOTE = b"millrace"


def lock(path: Path, refusal: RequestError) -> IO[str]:
    """A lock that lasts as long as the file is open, however its process ends; raises the refusal if another has it."""
    file = path.open("w")
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > until:
                file.close()
                raise refusal from None
            time.sleep(_LOOK)


def lock_checkpoint(folder: Path) -> IO[str]:
    """The lock of a checkpoint folder, to be held while a run goes on from it."""
    make_folder(folder, "the checkpoint")
    return lock(
        folder / "lock",
        RequestError(
            f'another run goes on from the checkpoint "{folder}"',
            hint="Stop it first, or give this run another --checkpoint.",
        ),
    )


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


def read_json(path: Path) -> Any:
    """The content of a JSON file of a checkpoint; refuses one that is damaged."""
    try:
        return json.loads(files().read(path))
    except ValueError:
        raise CheckpointError(
            f'the file "{path}" of the checkpoint cannot be read',
            hint="Put it back from a copy, or start anew with another --checkpoint folder.",
        ) from None


def write_arrow(path: Path, rows: pa.Table, note: str = "") -> None:
    """Write rows as an Arrow file, with a note in its schema; `sync_all` makes it safe."""
    if note:
        rows = rows.replace_schema_metadata({_NOTE: note})
    with files().create(path) as stream, pa.ipc.new_file(stream, rows.schema) as writer:
        writer.write(rows)


def read_arrow(path: Path, *, mapped: bool = False) -> pa.Table:
    """The rows of an Arrow file; those of a mapped one are read where they are used, and the file must stay."""
    source = files().map(path) if mapped else pa.BufferReader(files().read(path))
    with source as file, pa.ipc.open_file(file) as reader:
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
