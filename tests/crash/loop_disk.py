"""A disk of its own for a test, in a file, whose power can be cut: ext4, shut down without a flush of its log."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN."""
_NO_FLUSH = 2
"""What has not reached the disk is lost, the log of the file system included."""


@dataclass(frozen=True)
class LoopDisk:
    """The disk; its files are below `path`."""

    image: Path
    path: Path

    def cut(self) -> None:
        """Cut the power: all later calls fail."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_FLUSH))
        finally:
            os.close(descriptor)

    def start(self) -> None:
        """Mount the disk; after a cut it shows what had reached it. No process may use its files."""
        if self.path.is_mount():
            _call("umount", self.path)
        _call("mount", "-o", "loop", self.image, self.path)


@contextmanager
def loop_disk(folder: Path, megabytes: int = 64) -> Iterator[LoopDisk]:
    """A new disk; raises OSError, with the reason, where there can be none."""
    if not all(map(shutil.which, ("mkfs.ext4", "mount", "umount"))):
        raise OSError("there is no mkfs.ext4 or no mount")
    if os.geteuid() != 0:
        raise OSError("only root may mount a disk")
    disk = LoopDisk(folder / "disk.image", folder / "disk")
    disk.path.mkdir()
    with disk.image.open("wb") as image:
        image.truncate(megabytes << 20)
    _call("mkfs.ext4", "-q", disk.image)
    disk.start()
    try:
        yield disk
    finally:
        _call("umount", "--lazy", disk.path)


def _call(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")
