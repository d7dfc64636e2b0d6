"""What may end a run before its input does: a kill, a power cut, a file that cannot be written, a stop.

A fault strikes once, after so many steps of the kernel or so many calls of the file system. It is plain data, so that a
failing scenario can be shown, repeated, and made smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from millrace.testing.simulated_files import PowerCut, SimulatedFiles

FaultKind = Literal["kill", "power cut", "damage", "EIO", "ENOSPC", "torn", "stop"]
"""A kill leaves all that was written, a power cut what was synced. Damage is a bit that is another one after a kill;
torn: half of a file is written, and there is no more room."""


@dataclass(frozen=True)
class RunFault:
    """What ends a run, after so many steps of the kernel or calls of the file system."""

    kind: FaultKind
    at: Literal["step", "file"] = "step"
    after: int = 1


KINDS: tuple[FaultKind, ...] = ("kill", "power cut", "power cut", "EIO", "ENOSPC", "torn", "stop")
_WRITTEN = ("EIO", "ENOSPC", "torn")


def any_fault(random: Random) -> RunFault:
    """A fault of any kind, sooner or later."""
    kind: FaultKind = random.choice(KINDS)
    at: Literal["step", "file"] = random.choice(("step", "file"))
    after = round(2 ** random.uniform(0, 8))
    if kind == "kill" and after % 2:
        # A bit of the checkpoint is another one when the next run begins.
        kind = "damage"
    return RunFault(kind, "step" if kind == "stop" else "file" if kind in _WRITTEN else at, after)


class FailingFiles(SimulatedFiles):
    """Files of which a call fails; it is known whether it has, and only what is written is torn."""

    struck = False

    def _begin(self, kind: str, path: Path) -> str | None:
        number = len(self.operations)
        if self.faults.get(number) == "torn" and kind not in ("create", "append"):
            self.faults = {number + 1: "torn"}
        self.struck = self.struck or number in self.faults
        return super()._begin(kind, path)


class Fate:
    """Lets the fault of one run strike, in the kernel or on the disk that it returns to use."""

    def __init__(self, fault: RunFault | None, folder: Path) -> None:
        self.fault = fault
        self.stopping = False
        """True if the run is to be stopped."""
        self._steps = 0
        faults = {}
        if fault is not None and fault.at == "file":
            faults[fault.after] = fault.kind if fault.kind in _WRITTEN else "cut"
        self.disk = FailingFiles(folder, faults)

    @property
    def struck(self) -> bool:
        """True if the fault has struck."""
        return self.stopping or self.disk.struck

    def step(self) -> None:
        """Called at every step of the kernel."""
        self._steps += 1
        fault = self.fault
        if fault is None or fault.at != "step" or self._steps < fault.after:
            return
        if fault.kind == "stop":
            self.stopping = True
        else:
            # From now on nothing is written, whatever the run does on its way out.
            self.disk.faults, self.disk.struck = {len(self.disk.operations): "cut"}, True
            raise PowerCut

    def end(self, random: Random) -> None:
        """Leave on the disk what the fault leaves."""
        assert self.fault is not None
        if self.fault.kind == "power cut":
            self.disk.crash(random.choice((None, random.randrange(1 << 30))))


@dataclass
class Damage:
    """One bit of a checkpoint that is another one, until it is mended."""

    path: Path
    content: bytes

    @classmethod
    def done(cls, folder: Path, random: Random) -> Damage | None:
        """Change a bit of some file in a folder; None if there is no file."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
        if not paths:
            return None
        found = cls(path := random.choice(paths), path.read_bytes())
        place = random.randrange(len(found.content))
        flipped = found.content[place] ^ (1 << random.randrange(8))
        path.write_bytes(found.content[:place] + bytes([flipped]) + found.content[place + 1 :])
        return found

    def mend(self) -> None:
        """Put back what was there."""
        self.path.write_bytes(self.content)
