"""A disk that forgets: what was not synced may be lost, and any call may fail; for tests of what survives.

The files lie in a real folder, so that whatever reads them sees what a process would see. Beside them it is kept what a
power cut would leave, and `crash` makes the folder look like that.

What a power cut leaves:
- Of a file that was not synced since it was written: what it held when it was, nothing, a part, a part with zeros
  after it, or all. Of a file that was only added to since, what it held stays.
- Each name that was made, changed or removed since its folder was synced: the new state or the old, whatever becomes
  of the others, and whatever was done first. A rename is done or not done as a whole.
- Nothing of a folder whose own name is lost.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> disk = SimulatedFiles(root, {4: "cut"})
>>> with using(disk):
...     disk.write(root / "kept", b"1")
...     disk.sync_file(root / "kept")
...     disk.sync_folder(root)
...     disk.write(root / "lost", b"2")
...     try:
...         disk.sync_file(root / "lost")
...     except PowerCut:
...         disk.crash()
>>> [path.name for path in root.iterdir()]
['kept']
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millrace.hosts.checkpoint.file_system import Content, Files, using

__all__ = ["Fault", "Operation", "PowerCut", "SimulatedFiles", "using"]

Fault = str
"""What happens at a call: "cut", the power goes before it; the name of an error of the system, such as "EIO", "ENOSPC"
or "EACCES", which it raises; "torn", half is written and there is no more room; "flip", one bit is another one."""


class PowerCut(BaseException):
    """The process is no more; raised again by every later call, so that nothing is written on the way out."""


@dataclass(frozen=True)
class Operation:
    """A call: the name of the method, and the path it was given."""

    kind: str
    path: Path


@dataclass(eq=False)
class _Inode:
    """A file, whatever its names."""

    safe: bytes = b""
    """What it held when it was last synced."""
    dirty: bool = True
    appended: bool = False
    """True if it was only added to since it was last synced."""
    last: bytes | None = None
    """What it held when its last name went."""


@dataclass
class _Change:
    """Names that changed together, and the folders that must be synced before that is safe; None is no file."""

    unsynced: set[Path]
    names: dict[Path, _Inode | None]


_FOLDER = _Inode(dirty=False)


@dataclass
class SimulatedFiles(Files):
    """The files below `root`; what is there already is safe. `faults` says by the number of a call what happens at it.

    Use it in the place of the real ones with `using`. Paths outside of `root` are on the real disk.
    """

    root: Path
    faults: Mapping[int, Fault] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    """All calls so far: a run without faults tells which numbers there are."""

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        self._start()

    def _start(self) -> None:
        self._off = False
        self._safe: dict[Path, _Inode] = {}
        self._changes: list[_Change] = []
        for path in self.root.rglob("*"):
            self._safe[path] = _FOLDER if path.is_dir() else _Inode(path.read_bytes(), dirty=False)
        self._names = dict(self._safe)

    def crash(self, seed: int | None = None) -> None:
        """Make the folder look as after a power cut; chance decides by the seed, without one all is lost that can be.

        Then the power is on again, without faults.
        """
        chance = random.Random(seed)
        left = dict(self._safe)
        for change in self._changes:
            if seed is not None and chance.random() < 0.5:
                _apply(change, left)
        contents = {path: self._left_of(path, inode, chance, seed) for path, inode in left.items()}
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in sorted(left):
            if path.parent.is_dir():
                path.mkdir() if left[path] is _FOLDER else path.write_bytes(contents[path])
        self.faults = {}
        self._start()

    def _left_of(self, path: Path, inode: _Inode, chance: random.Random, seed: int | None) -> bytes:
        if not inode.dirty or seed is None:
            return inode.safe
        held = inode.last
        if held is None:
            name = next((name for name, other in self._names.items() if other is inode), path)
            held = name.read_bytes() if name.is_file() else b""
        least = len(inode.safe) if inode.appended else 0
        cut = chance.randrange(least, len(held) + 1)
        return chance.choice([inode.safe, held[:least], held[:cut], held[:cut].ljust(len(held), b"\0"), held])

    # Calls

    def _begin(self, kind: str, path: Path) -> Fault | None:
        """Count a call, and let happen what is to happen at it; "torn" and "flip" are left to the call."""
        if self._off:
            raise PowerCut
        fault = self.faults.get(len(self.operations))
        self.operations.append(Operation(kind, path))
        if fault == "cut":
            self._off = True
            raise PowerCut
        if fault is not None and fault not in ("torn", "flip"):
            raise _error(fault, path)
        return fault

    def _inside(self, path: Path) -> Path | None:
        path = path.resolve()
        return path if path.is_relative_to(self.root) else None

    def _written(self, path: Path, *, appended: bool = False) -> None:
        if (inside := self._inside(path)) is None:
            return
        inode = self._names.get(inside)
        if inode is None:
            self._changed({inside.parent}, {inside: _Inode()})
        else:
            inode.appended = appended and (inode.appended or not inode.dirty)
            inode.dirty = True

    def _changed(self, folders: set[Path], names: dict[Path, _Inode | None]) -> None:
        for path in names:
            old = self._names.get(path)
            if old is not None and old is not _FOLDER and old not in names.values() and path.is_file():
                old.last = path.read_bytes()
        change = _Change(folders, names)
        self._changes.append(change)
        _apply(change, self._names)

    @contextmanager
    def create(self, path: Path) -> Iterator[Any]:
        fault = self._begin("create", path)
        self._written(path)
        with super().create(path) as stream:
            yield stream
        if self._off:
            raise PowerCut
        _spoil(path, fault)

    def append(self, path: Path, content: Content) -> None:
        fault = self._begin("append", path)
        self._written(path, appended=True)
        super().append(path, content)
        _spoil(path, fault)

    def rename(self, path: Path, to: Path) -> None:
        self._begin("rename", path)
        here, there = self._inside(path), self._inside(to)
        if here is not None and there is not None:
            self._changed({here.parent, there.parent}, {here: None, there: self._names.get(here) or _Inode()})
        super().rename(path, to)

    def remove(self, path: Path) -> None:
        self._begin("remove", path)
        self._gone(path)
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._begin("remove_folder", path)
        for each in sorted(path.rglob("*"), reverse=True) if path.is_dir() else ():
            self._gone(each)
        self._gone(path)
        super().remove_folder(path)

    def _gone(self, path: Path) -> None:
        if (inside := self._inside(path)) in self._names and inside is not None:
            self._changed({inside.parent}, {inside: None})

    def _make_one(self, path: Path) -> None:
        self._begin("make_folder", path)
        super()._make_one(path)
        if (inside := self._inside(path)) is not None:
            self._changed({inside.parent}, {inside: _FOLDER})

    def sync_file(self, path: Path) -> None:
        self._begin("sync_file", path)
        inode = self._names.get(path.resolve())
        if inode is not None and inode is not _FOLDER:
            inode.safe, inode.dirty = path.read_bytes(), False

    def sync_folder(self, path: Path) -> None:
        self._begin("sync_folder", path)
        for change in self._changes:
            change.unsynced.discard(path.resolve())
            if not change.unsynced:
                _apply(change, self._safe)
        self._changes = [change for change in self._changes if change.unsynced]

    def sync_disk(self, path: Path) -> None:
        self._begin("sync_disk", path)
        for change in self._changes:
            _apply(change, self._safe)
        self._changes = []
        for name, inode in self._names.items():
            if inode.dirty:
                inode.safe, inode.dirty = name.read_bytes(), False

    def read(self, path: Path) -> bytes:
        fault = self._begin("read", path)
        _spoil(path, fault)
        return super().read(path)

    def map(self, path: Path) -> Any:
        fault = self._begin("map", path)
        _spoil(path, fault)
        return super().map(path)

    def list(self, path: Path) -> list[str]:
        self._begin("list", path)
        return super().list(path)


def _apply(change: _Change, names: dict[Path, _Inode]) -> None:
    for path, inode in change.names.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _spoil(path: Path, fault: Fault | None) -> None:
    """Cut the file in half, or change one bit in the middle of it."""
    if fault is None:
        return
    content = path.read_bytes()
    half = len(content) // 2
    if fault == "torn":
        os.truncate(path, half)
        raise _error("ENOSPC", path)
    if content:
        path.write_bytes(content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :])


def _error(name: str, path: Path) -> OSError:
    number = getattr(errno, name)
    return OSError(number, os.strerror(number), str(path))
