"""The plans of a network, one file per version: source, stages and sink read them by the number that travels with rows.

Rules:
- A version is written whole before its number is used, and never changed: the number is enough to find the plan.
- A run that goes on from a checkpoint writes the version in force again, by its own software.
- Worker processes keep the plans they have used; a file that has been replaced is read again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from millrace.hosts.checkpoint.checkpoint import other_version
from millrace.hosts.checkpoint.durable_files import make_folder, replace_file
from millrace.hosts.checkpoint.file_system import files
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical

_SUFFIX = ".plan"
_KEPT = 3
"""Versions that stay: Spark replays one micro-batch at most, which may be of the version before."""


@dataclass(frozen=True)
class Version:
    """A network as it runs from some micro-batch on, and where its results go."""

    network: QueryNetwork
    sinks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By query: {"format", "path", "options"}; with "writer", a `WriterSpec`, the path is where rows are staged; with
    "latest" {"path", "key"}, the latest answers by the key are written too."""
    paths: tuple[str, ...] = field(default_factory=lambda: tuple(path for path in sys.path if path))
    """Where worker processes find the user's own classes that it names: where the driver looks for modules."""

    @cached_property
    def plan(self) -> Physical:
        """The network after all rules."""
        return physical(self.network)


class PlanLog:
    """The versions of a network's plan, in a folder; they count from 1."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def write(self, number: int, version: Version) -> None:
        """Put a version in place."""
        make_folder(self.folder, "the folder of plans")
        replace_file(self._path(number), cloudpickle.dumps(version))  # type: ignore[no-untyped-call]
        for old in self._numbers()[:-_KEPT]:
            files().remove(self._path(old))

    def newest(self) -> int:
        """The last version's number; 0 if there is none."""
        return max(self._numbers(), default=0)

    def read(self, number: int) -> Version:
        """The version of that number."""
        path = self._path(number)
        return _read(str(path), path.stat().st_mtime_ns)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{_SUFFIX}"

    def _numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        stems = (name.removesuffix(_SUFFIX) for name in os.listdir(self.folder) if name.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())


@lru_cache(maxsize=8)
def _read(path: str, changed: int) -> Version:
    try:
        version: Version = cloudpickle.loads(files().read(Path(path)))
    except (ImportError, AttributeError):
        # It names a module or class that this version does not have.
        raise other_version(Path(path).parents[1]) from None
    sys.path += [place for place in version.paths if place not in sys.path]
    return version
