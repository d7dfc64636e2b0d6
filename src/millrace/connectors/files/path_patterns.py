"""Paths of streams as patterns: whether a stream would read files that a sink is going to write.

Rules:
- Links are followed, and folders that do not exist yet count: the sink makes them.
- A name is a sequence with the characters that may stand at each place, for results are numbered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

Name = Sequence[str]

_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def reads(path: str, folder: Path, names: Sequence[Name] | None) -> bool:
    """True if a stream with this path reads files of these names (None: any) in a folder, given as its real path."""
    given = Path(path).expanduser()
    if given.is_dir() or given.resolve() == folder:
        return given.resolve() == folder
    places, last = {Path(given.anchor or ".").resolve()}, given.name
    for part in [each for each in given.parent.parts if each != given.anchor]:
        places = _below(places, part, folder)
    if last == "**":
        places, last = _below(places, last, folder), "*"
    return folder in places and (names is None or any(overlaps(last, name) for name in names))


def overlaps(pattern: str, name: Name) -> bool:
    """True if a pattern matches one of the names.

    >>> overlaps("p*[3-5].csv", ["p", "0123456789", *".csv"]), overlaps("p*a.csv", ["p", "0123456789", *".csv"])
    (True, False)
    """
    reached = {0}
    for token in _TOKEN.findall(pattern):
        if token == "*":
            reached = set(range(min(reached, default=len(name) + 1), len(name) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(name) and any(fnmatchcase(c, token) for c in name[at])}
    return len(name) in reached


def _below(places: set[Path], part: str, folder: Path) -> set[Path]:
    """The folders to which a part of a pattern leads."""
    if not has_magic(part):
        return {(place / part).resolve() for place in places}
    found = {each for place in places for each in _named(place, part, folder)}
    if part != "**":
        return found
    while more := found - places:
        places = places | more
        found = {each for place in more for each in _named(place, part, folder)}
    return places


def _named(place: Path, part: str, folder: Path) -> Iterator[Path]:
    """The folders in a place whose names match, with the one on the way to `folder`."""
    names = set(folder.relative_to(place).parts[:1] if folder.is_relative_to(place) else ())
    with suppress(OSError), os.scandir(place) as entries:
        names.update(entry.name for entry in entries if entry.is_dir())
    for name in names:
        if fnmatchcase(name, part) and (part[0] == "." or name[0] != "."):
            yield (place / name).resolve()
