"""Damage to one file of a checkpoint, drawn by chance."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

KINDS = ("flip", "cut", "swap", "delete", "older")
SHARES = (12, 3, 2, 2, 1)
"""How often each kind is drawn: of twenty cases twelve are flips."""


def flipped(content: bytes, chance: random.Random) -> bytes:
    """The content with one bit changed."""
    place = chance.randrange(len(content) * 8)
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def changed(
    kind: str, name: str, content: Mapping[str, bytes], older: Mapping[str, bytes], chance: random.Random
) -> dict[str, bytes | None] | None:
    """What damage makes of some files, None of one that is gone; None if this kind cannot befall this file."""
    own = content[name]
    if kind == "flip":
        return {name: flipped(own, chance)} if own else None
    if kind == "cut":
        return {name: own[: chance.randrange(len(own))]} if own else None
    if kind == "delete":
        return {name: None}
    if kind == "swap":
        others = [each for each in content if alike(each, name) and content[each] != own]
        other = chance.choice(others) if others else None
        return None if other is None else {name: content[other], other: own}
    # An earlier version of the file or, of files that are written once, the content of an earlier one.
    known = [older[name]] if older.get(name, own) != own else []
    known += [older[each] for each in older if alike(each, name) and older[each] != own] if not known else []
    return {name: chance.choice(known)} if known else None


def alike(one: str, other: str) -> bool:
    """True if two files are of one kind: in the same folder, with the same ending."""
    return one != other and Path(one).parent == Path(other).parent and Path(one).suffix == Path(other).suffix


def draw(
    content: Mapping[str, bytes], older: Mapping[str, bytes], chance: random.Random
) -> tuple[str, str, dict[str, bytes | None]]:
    """A kind of damage, the file that it befalls, and what that makes of the files."""
    while True:
        (kind,) = chance.choices(KINDS, SHARES)
        name = chance.choice(sorted(content))
        damage = changed(kind, name, content, older, chance)
        if damage is not None:
            return kind, name, damage


def files_in(folder: Path, without: Sequence[str] = ("lock",)) -> dict[str, bytes]:
    """The files in a folder and below, by their path in it."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in without)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def put_files(folder: Path, damage: Mapping[str, bytes | None]) -> None:
    """Write damaged files in their places, and remove those that are gone."""
    for name, content in damage.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)


def copy_site(base: Path, folder: Path) -> None:
    """A copy of a project, whose input stays where it is."""
    shutil.copytree(base, folder, symlinks=True)
