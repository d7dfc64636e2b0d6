"""The bytes of a file, uncompressed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from millrace.errors import RequestError, RunError

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2"}


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """An Arrow input stream over a file, uncompressed by its extension: .gz, .bz2, or .zip with one member."""
    if path.suffix == ".zip":
        with ZipFile(path) as archive, archive.open(_only_member(archive, path)) as member:
            yield pa.PythonFile(member, mode="r")
    else:
        with pa.input_stream(str(path), compression=_COMPRESSIONS.get(path.suffix)) as stream:
            yield stream


@contextmanager
def readable(path: Path, format: str) -> Iterator[None]:
    """Tell a damaged file from a malformed row."""
    try:
        yield
    except (OSError, EOFError, BadZipFile, csv.Error, pa.ArrowInvalid) as error:
        raise RunError(
            f'file "{path}" cannot be read as {format}: {error}',
            hint="Check that the file is whole and that its format and extension are what it holds.",
        ) from error


def _only_member(archive: ZipFile, path: Path) -> str:
    members = [member.filename for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        raise RequestError(
            f'the archive "{path}" holds {len(members)} files instead of one',
            hint="Unpack it into a folder, and give the folder as the path.",
        )
    return members[0]
