"""The files of a stream: which are read, in which order, and their bytes, uncompressed."""

from __future__ import annotations

import csv
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EINVAL
from glob import glob, has_magic
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from millrace.connectors.files.file_options import read_options
from millrace.errors import RequestError, RunError, machine_fault
from millrace.plan.nodes.endpoints import Connector

Span = tuple[int, int]
"""Where a piece of a file begins and ends, in bytes."""

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2"}


def list_files(connector: Connector, stream: str) -> list[str]:
    """The paths of a stream's files in the order they are read: by name.

    `path` is a file, a folder or a pattern. In a folder, names that begin with "." or "_" are not data.
    """
    read_options(connector.format, connector.options)
    if not connector.options.get("path"):
        raise RequestError(
            f'stream "{stream}" does not say where its files are',
            hint=f"Write FROM {connector.format} OPTIONS (path 'a file, a folder or a pattern').",
        )
    path = Path(connector.options["path"]).expanduser()
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return [str(path)]
    return _matching(path, stream)


def base_of(connector: Connector) -> str:
    """What the paths of a stream's files begin with, wherever its folder stands."""
    folder = Path(connector.options["path"]).expanduser()
    if not folder.is_dir():
        folder = folder.parent
    while has_magic(str(folder)):
        folder = folder.parent
    return str(folder / "_")[:-1]


def sort_key(path: str) -> str:
    """The sort key of a path: by folders, then by name.

    The separator becomes a character that no name holds: otherwise "a.b/c" would sort before "a/c".
    """
    return path.replace(os.sep, "\0")


def _in_folder(folder: Path) -> list[str]:
    # Long folders are listed again and again: this makes no Path, and no call to the system, per name.
    with os.scandir(folder) as entries:
        names = sorted(_data(entry.name for entry in entries if entry.is_file()))
    before = str(folder / "_")[:-1]
    return [before + name for name in names]


def _matching(path: Path, stream: str) -> list[str]:
    matches = glob(str(path), recursive=True) if has_magic(str(path)) else []
    found = sorted(filter(os.path.isfile, _data(matches)), key=sort_key)
    if not found:
        kind = "a pattern without a match" if has_magic(str(path)) else "not there"
        raise RequestError(f'the path "{path}" of stream "{stream}" is {kind}', hint=_hint(path))
    return found


def _data(paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if not path.rpartition(os.sep)[2].startswith((".", "_")))


def _hint(path: Path) -> str:
    missing = path
    while not missing.parent.is_dir():
        missing = missing.parent
    siblings = [sibling.name for sibling in missing.parent.iterdir()]
    close = get_close_matches(missing.name, siblings, n=1)
    if close:
        return f'There is "{missing.with_name(close[0])}"; did you mean that?'
    return f'Look into "{missing.parent}": a relative path starts from "{Path.cwd()}".'


def is_plain(path: Path) -> bool:
    """True if a file is not compressed, so that its bytes are those of its rows."""
    return path.suffix != ".zip" and path.suffix not in _COMPRESSIONS


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """An Arrow input stream over a file, uncompressed by its extension: .gz, .bz2, or .zip with one member."""
    if path.suffix == ".zip":
        with ZipFile(path) as archive, archive.open(_only_member(archive, path)) as member:
            yield pa.PythonFile(member, mode="r")
    else:
        with pa.input_stream(str(path), compression=_COMPRESSIONS.get(path.suffix)) as stream:
            yield stream


class _SpanBytes:
    """A piece of a file as a stream of bytes."""

    def __init__(self, stream: Any, span: Span) -> None:
        self._stream, self._left = stream, span[1] - span[0]
        stream.seek(span[0])

    def read(self, size: int) -> bytes:
        data: bytes = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data


@contextmanager
def open_piece(path: Path, span: Span | None) -> Iterator[Any]:
    """The bytes of a piece of a file that is not compressed; all bytes, uncompressed, where there is no span."""
    with open_bytes(path) as stream:
        yield stream if span is None else _SpanBytes(stream, span)


def lines_before(path: Path, span: Span | None) -> int:
    """How many lines of a file end before a piece of it."""
    left, count = span[0] if span else 0, 0
    with path.open("rb") as file:
        while left and (data := file.read(min(left, 1 << 20))):
            left -= len(data)
            count += data.count(b"\n")
    return count


@contextmanager
def readable(path: Path, format: str) -> Iterator[None]:
    """Raise errors of the body as those of a damaged file, not of a malformed row."""
    try:
        yield
    except UnicodeError as error:
        raise RunError(f'file "{path}" is not UTF-8: {error}', hint="Save it as UTF-8.") from error
    except OSError as error:
        if error.errno is not None and error.errno != EINVAL:
            raise machine_fault(error, path) from error
        raise _damaged(path, format, error) from error
    except (EOFError, BadZipFile, zlib.error, RuntimeError, csv.Error, pa.ArrowException) as error:
        raise _damaged(path, format, error) from error


def _damaged(path: Path, format: str, error: Exception) -> RunError:
    return RunError(
        f'file "{path}" cannot be read as {format}: {error}',
        hint="Check that the file is whole and that its format and extension are what it holds.",
    )


def _only_member(archive: ZipFile, path: Path) -> str:
    members = [member.filename for member in archive.infolist() if not member.filename.endswith("/")]
    if len(members) != 1:
        raise RequestError(
            f'the archive "{path}" holds {len(members)} files instead of one',
            hint="Unpack it into a folder, and give the folder as the path.",
        )
    return members[0]
