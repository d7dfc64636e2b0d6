"""What a file was when it was read, so that one that has changed since is found, and named.

Rules:
- A stamp is of the first bytes of a file, those that were read: a file that has grown is still the same.
- A file whose size and times are those of its stamp is not opened. Else its bytes decide: all of them up to a mebibyte,
  of more a sample of 32 pieces from the first to the last. Where the sample is the same but a file that was read
  whole was written again in its size, it counts as changed: a change between the pieces must not pass. Of a file that
  was read in part the rest may be mended, so there the sample decides.
- A file that was only touched, or put back from a copy, is the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from millrace.errors import RunError

_WHOLE = 1 << 20
_TICK = 100_000_000
"""Nanoseconds within which a file system may give two changes one time."""
_PIECES, _PIECE = 32, 1 << 13


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The bytes read and their digest; the size and the times of the whole file."""

    read: int
    digest: str
    size: int
    modified: int
    changed: int

    def data(self) -> list[int | str]:
        """As JSON has it."""
        return [self.read, self.digest, self.size, self.modified, self.changed]

    @staticmethod
    def of(data: Sequence[int | str]) -> FileStamp:
        """The stamp that `data` gave."""
        read, digest, size, modified, changed = data
        return FileStamp(int(read), str(digest), int(size), int(modified), int(changed))


def stamp(path: str, read: int | None = None) -> FileStamp:
    """The stamp of a file of which so many bytes were read, or all."""
    found = Path(path).stat()
    read = found.st_size if read is None else min(read, found.st_size)
    return FileStamp(read, _digest(path, read), found.st_size, found.st_mtime_ns, _settled(found.st_ctime_ns))


def check_stamp(path: str, known: FileStamp, stream: str) -> FileStamp:
    """The stamp of a file that is as it was when it was read; raises if it is not."""
    try:
        found = Path(path).stat()
        if (found.st_size, found.st_mtime_ns, found.st_ctime_ns) == (known.size, known.modified, known.changed):
            return known
        if found.st_size < known.read:
            raise _changed(path, stream, f"{known.read} bytes of it were read, and it has {found.st_size}")
        if _digest(path, known.read) != known.digest:
            raise _changed(path, stream, f"the first {known.read} bytes, which were read, are others")
    except FileNotFoundError:
        raise _changed(path, stream, "it is gone") from None
    if known.size == known.read > _WHOLE and found.st_size == known.size and found.st_mtime_ns != known.modified:
        raise _changed(path, stream, "it was written again")
    return replace(known, size=found.st_size, modified=found.st_mtime_ns, changed=_settled(found.st_ctime_ns))


def _settled(changed: int) -> int:
    """The time of a file's last change; none if it is so new that the next change might have the same."""
    return changed if time.time_ns() - changed > _TICK else 0


def _digest(path: str, size: int) -> str:
    starts, length = [0], size
    if size > _WHOLE:
        starts, length = [(size - _PIECE) * piece // (_PIECES - 1) for piece in range(_PIECES)], _PIECE
    digest = sha256()
    with Path(path).open("rb", buffering=0) as file:
        for start in starts:
            digest.update(os.pread(file.fileno(), length, start))
    return digest.hexdigest()[:24]


def _changed(path: str, stream: str, how: str) -> RunError:
    return RunError(
        f'file "{path}" of stream "{stream}" has changed since it was read: {how}',
        hint="Put the file back as it was, and give new or corrected rows in a new file; or start anew with another "
        "checkpoint and sink.",
    )
