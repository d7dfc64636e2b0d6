"""Digests: by them damage to what a checkpoint holds is noticed before it is used.

Rules:
- A digest is the CRC-32 and the size of a content. It finds every flipped bit and every cut; that other damage passes
  has a chance of one in four thousand million. It protects from accidents, not from people.
- A record begins with the digest of its own name and of all that follows: an exchanged file is noticed too. It is
  still JSON.
- Every other file has its digest in the record, or the name, by which it is found: an earlier version of it does not
  fit, and a missing one is missed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from millrace.errors import DamagedCheckpoint, MissingFile

_BEGIN, _END = b'{"digest": "', b'", '
_HINT = "Put the whole checkpoint back from a copy, with the results of its sinks, or start anew with another folder."


def digest(content: Any, name: str = "") -> str:
    """The digest of some bytes, and of the name that they go by.

    >>> digest(b"some rows"), digest(b"some rowt")
    ('7ebaeedc-9', 'e0de7b7f-9')
    """
    return f"{crc32(content, crc32(name.encode())):08x}-{len(memoryview(content).cast('B')):x}"


def sealed(record: Mapping[str, Any], name: str) -> bytes:
    """A record as JSON that begins with its digest.

    >>> sealed({"epoch": 7}, "current.json")
    b'{"digest": "56383920-b", "epoch": 7}'
    >>> unsealed(_, "current.json")
    {'epoch': 7}
    """
    rest = json.dumps(record).encode()[1:]
    return _BEGIN + digest(rest, name).encode() + _END + rest


def unsealed(content: bytes, name: str) -> dict[str, Any] | None:
    """The record of a JSON text that begins with its digest; None if it has none, or another one."""
    told, _, rest = content.removeprefix(_BEGIN).partition(_END)
    if not content.startswith(_BEGIN) or told != digest(rest, name).encode():
        return None
    record: dict[str, Any] = json.loads(b"{" + rest)
    return record


def is_of_other_layout(content: bytes, layout: int) -> bool:
    """True if a record without a digest says that it has another layout, so that an earlier version wrote it."""
    try:
        found = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) and "digest" not in found and found.get("layout", layout) != layout


def damaged(what: str) -> DamagedCheckpoint:
    """The error of a part of a checkpoint that is not what was written."""
    return DamagedCheckpoint(f"{what} of the checkpoint is damaged: it is not what was written", hint=_HINT)


def damaged_file(path: Path) -> DamagedCheckpoint:
    """The error of a file that is not what was written."""
    return damaged(f'the file "{path}"')


def missing(path: Path) -> MissingFile:
    """The error of a file that is gone."""
    return MissingFile(f'the file "{path}" of the checkpoint is missing', hint=_HINT)
