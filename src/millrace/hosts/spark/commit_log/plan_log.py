"""The plans of a network, one file per version: source, stages and sink read them by the number that travels with rows.

Rules:
- A version is written whole before its number is used, and never changed: the number is enough to find the plan.
- A version is data, with its digest (see plan/nodes/plan_data.py): reading it runs no code of anyone.
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

from millrace.hosts.checkpoint.checkpoint import other_version
from millrace.hosts.checkpoint.digests import damaged_file, missing, sealed, unsealed
from millrace.hosts.checkpoint.durable_files import make_folder, replace_file
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.sinks.writers import WriterSpec
from millrace.plan.nodes.plan_data import data_of, value_of
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical

_SUFFIX = ".plan"
_FURTHER = {WriterSpec.__name__: WriterSpec}
_KEPT = 3
"""Versions that stay: Spark replays one micro-batch at most, which may be of the version before."""


@dataclass(frozen=True)
class Version:
    """A network as it runs from some micro-batch on, and where its results go."""

    network: QueryNetwork
    sinks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By query: {"format", "path", "options"}; with "writer", a `WriterSpec`, the path is where rows are staged; with
    "latest" {"path", "key"}, the latest answers by the key are written too."""
    tables: Mapping[str, Any] = field(default_factory=dict)
    """The versions of its tables, as hosts/tables records them."""
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
        path = self._path(number)
        data = data_of((version.network, version.sinks, version.tables, version.paths), _FURTHER)
        replace_file(path, sealed(data, path.name))
        for old in self._numbers()[:-_KEPT]:
            files().remove(self._path(old))

    def newest(self) -> int:
        """The last version's number; 0 if there is none."""
        return max(self._numbers(), default=0)

    def read(self, number: int) -> Version:
        """The version of that number."""
        path = self._path(number)
        try:
            return _read(str(path), path.stat().st_mtime_ns)
        except FileNotFoundError:
            raise missing(path) from None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{_SUFFIX}"

    def _numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        stems = (name.removesuffix(_SUFFIX) for name in os.listdir(self.folder) if name.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())


@lru_cache(maxsize=8)
def _read(path: str, changed: int) -> Version:
    data = unsealed(files().read(Path(path)), Path(path).name)
    if data is None:
        raise damaged_file(Path(path))
    try:
        version = Version(*value_of(data, _FURTHER))
    except (KeyError, TypeError):
        # It names a class, or fields, that this version does not have.
        raise other_version(Path(path).parents[1]) from None
    sys.path += [place for place in version.paths if place not in sys.path]
    return version
