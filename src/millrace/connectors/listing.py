"""Which files a connector reads, and in which order."""

from __future__ import annotations

from difflib import get_close_matches
from glob import glob, has_magic
from pathlib import Path

from millrace.connectors.options import read_options
from millrace.errors import RequestError
from millrace.plan.nodes import Connector


def list_files(connector: Connector, stream: str) -> list[Path]:
    """The files of a stream in the order they are read: by name.

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
        return _data_files(list(path.iterdir()))
    if path.exists():
        return [path]
    return _matching(path, stream)


def _matching(path: Path, stream: str) -> list[Path]:
    found = _data_files([Path(name) for name in glob(str(path), recursive=True)]) if has_magic(str(path)) else []
    if not found:
        kind = "a pattern without a match" if has_magic(str(path)) else "not there"
        raise RequestError(f'the path "{path}" of stream "{stream}" is {kind}', hint=_hint(path))
    return found


def _data_files(paths: list[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and not path.name.startswith((".", "_")))


def _hint(path: Path) -> str:
    missing = path
    while not missing.parent.is_dir():
        missing = missing.parent
    siblings = [sibling.name for sibling in missing.parent.iterdir()]
    close = get_close_matches(missing.name, siblings, n=1)
    if close:
        return f'There is "{missing.with_name(close[0])}"; did you mean that?'
    return f'Look into "{missing.parent}": a relative path starts from "{Path.cwd()}".'
