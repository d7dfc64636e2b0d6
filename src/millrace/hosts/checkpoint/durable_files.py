"""Folders, locks, and files that survive a power cut whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from millrace.errors import CheckpointError, RequestError

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
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise RequestError(f'{what} "{path}" is no folder', hint="Name another path: a file is in the way.") from None
    except OSError as error:
        raise RequestError(f'{what} "{path}" cannot be made: {error.strerror}', hint="Name another path.") from error
    return path


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a power cut, sees the old content or the new one."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    draft.write_bytes(content.encode() if isinstance(content, str) else content)
    sync(draft)
    draft.replace(path)
    sync(path.parent)


def read_json(path: Path) -> Any:
    """The content of a JSON file of a checkpoint; refuses one that is damaged."""
    try:
        return json.loads(path.read_text())
    except ValueError:
        raise CheckpointError(
            f'the file "{path}" of the checkpoint cannot be read',
            hint="Put it back from a copy, or start anew with another --checkpoint folder.",
        ) from None


def write_arrow(path: Path, rows: pa.Table, note: str = "") -> None:
    """Write rows as an Arrow file, with a note in its schema; it is on disk when this returns."""
    if note:
        rows = rows.replace_schema_metadata({_NOTE: note})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write(rows)
    sync(path)


def read_arrow(path: Path, *, mapped: bool = False) -> pa.Table:
    """The rows of an Arrow file; those of a mapped one are read where they are used, and the file must stay."""
    with (pa.memory_map if mapped else pa.OSFile)(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def note_of(rows: pa.Table) -> str:
    """The note that rows were written with."""
    return str(rows.schema.metadata[_NOTE].decode())


def sync(path: Path) -> None:
    """Return when what a file, or the list of a folder, holds is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
