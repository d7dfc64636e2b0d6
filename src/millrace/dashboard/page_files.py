"""The files of the page, as they are shipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class PageFile:
    """A file, what it is, and a name of its content."""

    content: bytes
    kind: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """All files by their path below the page's folder.

    >>> page_files()["index.html"].kind
    'text/html; charset=utf-8'
    """
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file() and path.suffix in _KINDS:
            content = path.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:16]}"'
            found[path.relative_to(FOLDER).as_posix()] = PageFile(content, _KINDS[path.suffix], tag)
    return found
