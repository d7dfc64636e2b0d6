"""A checkpoint in a folder: segments as files, and one small file that says which of them count.

Rules:
- `current.json` is replaced at once; whatever it does not name is as if never written.
- A save writes the segments added since the last one and removes those it no longer needs, afterwards.
- It names the staged result files too, so that a run that died between commit and publishing publishes them.
- It belongs to the queries that the first run began with, and holds the changes made to them since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.errors import CheckpointError
from millrace.hosts.changes import Entry
from millrace.hosts.durable import make_folder, replace_file, sync
from millrace.kernel.executor import Place, Saved
from millrace.plan.stages import Physical

_LAYOUT = 2


@dataclass(frozen=True)
class Resumed:
    """What a run goes on from."""

    epoch: int
    control: dict[str, Any]
    segments: dict[Place, pa.Table]
    positions: dict[str, Any]
    staged: dict[str, str]
    results: dict[str, int]
    history: tuple[Entry, ...] = ()


def fingerprint(plan: Physical) -> str:
    """A short name for what a network computes; saved state fits only the same one."""
    return hashlib.sha256(repr(plan.roots).encode()).hexdigest()[:16]


class Checkpoint:
    """The state of one network in one folder."""

    def __init__(self, folder: Path, plan: Physical) -> None:
        self.folder = folder
        self._fingerprint = fingerprint(plan)
        self._live: set[Place] = set()
        make_folder(folder, "the checkpoint")

    def load(self) -> Resumed | None:
        """The last committed state; None in a new folder."""
        current = self.folder / "current.json"
        if not current.exists():
            if (self.folder / "commits").is_dir() or (self.folder / "offsets").is_dir():
                raise CheckpointError(
                    f'"{self.folder}" is a checkpoint of the Spark host',
                    hint="Run with --on spark, or name another folder.",
                )
            return None
        saved = json.loads(current.read_text())
        if saved["layout"] != _LAYOUT or saved["network"] != self._fingerprint:
            raise CheckpointError(
                f'the checkpoint "{self.folder}" belongs to other queries',
                hint="Run the queries it was made with, or start anew with another --checkpoint folder.",
            )
        self._live = {(node, number) for node, number in saved["segments"]}
        segments = {place: _read(self._path(place)) for place in self._live}
        return Resumed(
            epoch=saved["epoch"],
            control=saved["control"],
            segments=segments,
            positions=saved["positions"],
            staged=saved["staged"],
            results=saved["results"],
            history=tuple(_entry(text, starts) for text, starts in saved["history"]),
        )

    def save(
        self,
        epoch: int,
        saved: Saved,
        positions: Mapping[str, Any],
        staged: Mapping[str, str],
        results: Mapping[str, int],
        history: Sequence[Entry] = (),
    ) -> None:
        """Commit an epoch."""
        for place, table in saved.added.items():
            _write(self._path(place), table)
        self._live = (self._live - set(saved.removed)) | set(saved.added)
        record = {
            "layout": _LAYOUT,
            "network": self._fingerprint,
            "epoch": epoch,
            "control": saved.control,
            "segments": sorted(self._live),
            "positions": dict(positions),
            "staged": dict(staged),
            "results": dict(results),
            "history": [[entry.text, entry.starts] for entry in history],
        }
        replace_file(self.folder / "current.json", json.dumps(record))
        for place in set(saved.removed) - self._live:
            self._path(place).unlink(missing_ok=True)

    def _path(self, place: Place) -> Path:
        node, number = place
        return self.folder / f"{node}-{number}.arrow"


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write(table)
    sync(path)


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def _entry(text: str, starts: Sequence[Any]) -> Entry:
    return Entry(text, tuple((time, tuple((name, point) for name, point in outlets)) for time, outlets in starts))
