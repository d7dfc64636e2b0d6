"""How much memory a process and all that it started hold at most, as seen a few times per second.

Rules:
- A page that several processes share counts once: each is charged its part of it, as the kernel of the system says.
- Where that cannot be read, there is no figure: 0.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")


class Peak:
    """The most memory that was seen; `itself` is True if the first process counts too."""

    def __init__(self, pid: int, *, itself: bool) -> None:
        self.bytes = 0
        self._pid = pid
        self._itself = itself

    def look(self) -> None:
        """See how much there is now."""
        counted = [pid for pid in tree(self._pid) if self._itself or pid != self._pid]
        self.bytes = max(self.bytes, sum(map(resident, counted)))


def tree(pid: int) -> list[int]:
    """A process and all that it and they have started, as long as they live."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(_PROCESSES) if _PROCESSES.is_dir() else []:
        if entry.isdigit() and (parent := _parent(int(entry))) is not None:
            children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def end(pid: int) -> None:
    """Kill a process and all that it has started."""
    for each in tree(pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _parent(pid: int) -> int | None:
    with suppress(OSError):
        # The name in brackets may hold anything; what follows it are the state and the parent.
        return int((_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return None


def resident(pid: int) -> int:
    """Bytes of memory that a process is charged for."""
    with suppress(OSError):
        for line in (_PROCESSES / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
