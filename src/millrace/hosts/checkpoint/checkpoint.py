"""A checkpoint of the local host in a folder: segments as files, and one small file that names the valid ones.

Rules:
- `current.json` is replaced in one step; a file that it does not name is as if never written. It holds the digests of
  all that it names, and its own: what is damaged, missing or of another commit is refused before it is used.
- A save writes the segments added since the last one and syncs them, then the record, and then removes segments that
  are not needed. What the record names is on disk before the record is.
- The record names the staged result files too: a run that died between commit and publishing publishes them.
- A record names the run that wrote it. A run compares the record with the one that it knows before it stages or
  commits anything: of two runs on one folder the first to commit goes on, and the other stops.
- It belongs to the queries that the first run began with, and holds their text and all changes since, so that a run
  with another text can tell what is different (see live_changes.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millrace.connectors.files.pieces.file_piece import ReadPiece
from millrace.errors import CheckpointError, RunError
from millrace.hosts.checkpoint.durable_files import (
    make_checkpoint_folder,
    read_arrow,
    read_record,
    replace_file,
    sync_all,
    taken_over,
    write_arrow,
    write_record,
)
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.checkpoint.read_log import ReadLog
from millrace.hosts.control.live_changes import LiveChanges
from millrace.kernel.graph.snapshot import Place, Snapshot
from millrace.plan.evolution.evolution import Evolution, beginning
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.physical.stages import Physical, physical

_LAYOUT = 14
_RECORD, _BEGUN = "current.json", "begun"
"""The record, and an empty file that is there from the first commit on: then the record must be there too."""
_NO_CHANGES: Mapping[str, Any] = {"text": None, "history": [], "tables": {}}
_NOTHING_KEPT: Mapping[str, str] = {}


@dataclass(frozen=True)
class Resumed:
    """What a run goes on from."""

    epoch: int
    control: dict[str, Any]
    segments: dict[Place, pa.Table]
    positions: dict[str, Any]
    staged: dict[str, str]
    results: dict[str, int]
    kept: Mapping[str, str]
    """The digests of further files, latest answers and rows that are staged for writers, by their path in it."""
    changes: Mapping[str, Any]
    """The text of the first file and the history of changes, as `LiveChanges.saved` gives them."""

    @property
    def points(self) -> StreamProgress:
        """How far each stream had come."""
        points: StreamProgress = self.control["sources"]
        return points


def has_ended(stream: str, more: str) -> RunError:
    """The error of a stream that has more rows after its end."""
    return RunError(
        f'stream "{stream}" has ended, and now has {more}',
        hint="A run with --until-end ends its streams for good: start anew with another checkpoint and sink.",
    )


def fingerprint(plan: Physical) -> str:
    """A short name for what a network computes; saved state fits only the same one."""
    return hashlib.sha256(repr(plan.roots).encode()).hexdigest()[:16]


class Checkpoint:
    """The state of one network in one folder."""

    def __init__(self, folder: Path, plan: Physical) -> None:
        self.folder = folder
        self._fingerprint = fingerprint(plan)
        self._live: dict[Place, str] = {}
        """The digests of the segments."""
        self._owner = uuid4().hex
        self._saved: tuple[int, str] | None = None
        """The epoch and the owner of the record that this run goes on from, or has written."""
        self._file: tuple[int, ...] = ()
        """The file of that record, so that it need not be read again while it is the same."""
        make_checkpoint_folder(folder)

    def load(self, changes: LiveChanges | None = None) -> Resumed | None:
        """The last committed state; None in a new folder.

        Refuses that of other queries, unless the changes of this run can follow it.
        """
        saved = _record(self.folder)
        if saved is None:
            return None
        check_queries(saved, self._fingerprint, self.folder, changes)
        self._fingerprint, self._saved = saved["network"], _stamp(saved)
        self._live = {(node, number): told for node, number, told in saved["segments"]}
        segments = {place: read_arrow(self._path(place), told, mapped=True) for place, told in self._live.items()}
        return Resumed(
            epoch=saved["epoch"],
            control=saved["control"],
            segments=segments,
            positions=saved["positions"],
            staged=saved["staged"],
            results=saved["results"],
            changes=saved["changes"],
            kept=saved["kept"],
        )

    def fence(self) -> None:
        """Refuse to go on if the record is no longer the one that this run knows: then another run has written it."""
        if self._file and self._file == _file(self.folder):
            return
        saved = _record(self.folder)
        found = None if saved is None else _stamp(saved)
        if found != self._saved:
            epoch = "its record is gone" if found is None else f"its record is of epoch {found[0]}"
            raise taken_over(self.folder, f"{epoch}, which this run has not written")

    def save(
        self,
        epoch: int,
        saved: Snapshot,
        positions: Mapping[str, Any],
        staged: Mapping[str, str],
        results: Mapping[str, int],
        changes: Mapping[str, Any] = _NO_CHANGES,
        kept: Mapping[str, str] = _NOTHING_KEPT,
    ) -> None:
        """Commit an epoch; refuses if another run has committed one."""
        added = {place: write_arrow(self._path(place), table) for place, table in saved.added.items()}
        sync_all(map(self._path, added))
        removed = set(saved.removed) - set(added)
        self._live = {place: told for place, told in self._live.items() if place not in removed} | added
        record = {
            "layout": _LAYOUT,
            "network": self._fingerprint,
            "epoch": epoch,
            "owner": self._owner,
            "control": saved.control,
            "segments": [[*place, told] for place, told in sorted(self._live.items())],
            "positions": dict(positions),
            "staged": dict(staged),
            "results": dict(results),
            "changes": dict(changes),
            "kept": dict(kept),
        }
        self.fence()
        write_record(self.folder / _RECORD, record)
        self._saved, self._file = _stamp(record), _file(self.folder)
        if not (self.folder / _BEGUN).exists():
            replace_file(self.folder / _BEGUN, "")
        for place in sorted(removed):
            files().remove(self._path(place))

    def save_read(self, pieces: Mapping[str, Mapping[int, ReadPiece]]) -> None:
        """Keep the pieces of files that were read, by stream, for the epoch that is about to be committed."""
        logs = {stream: ReadLog(self.folder, stream) for stream in pieces}
        for stream, log in logs.items():
            log.add(pieces[stream])
        sync_all(log.path for log in logs.values())

    def _path(self, place: Place) -> Path:
        node, number = place
        return self.folder / f"{node}-{number}.arrow"


def _file(folder: Path) -> tuple[int, ...]:
    """What changes whenever a record is put in place; nothing if there is none."""
    try:
        found = (folder / _RECORD).stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _stamp(record: Mapping[str, Any]) -> tuple[int, str]:
    """What tells a record from all others: its epoch, and the run that wrote it."""
    return record["epoch"], record["owner"]


def check_operator_names(saved: Resumed, plan: Physical, folder: Path) -> None:
    """Refuse state whose operators have other names than those of the plan that made it."""
    if set(plan.whole().nodes) != set(saved.control["nodes"]):
        raise other_version(folder)


def kept_files(folder: Path) -> Mapping[str, str] | None:
    """The digests of committed files beside the segments, by their path in the folder; None in a new one."""
    saved = _record(folder)
    return None if saved is None else saved["kept"]


def pending_change(folder: Path, changes: LiveChanges) -> Evolution | None:
    """What would become of the queries in a checkpoint if a run went on from it now; nothing is touched."""
    saved = _record(folder)
    if saved is None:
        return beginning(changes.network)
    check_queries(saved, fingerprint(physical(changes.network)), folder, changes)
    return changes.resume(saved["changes"], saved["control"]["sources"])


def check_queries(saved: Mapping[str, Any], own: str, folder: Path, changes: LiveChanges | None) -> None:
    """Refuse state of other queries, unless the changes of this run can follow it."""
    follows = changes is not None and changes.can_follow(saved["changes"])
    if not follows and saved["network"] != own:
        raise CheckpointError(
            f'the checkpoint "{folder}" belongs to other queries',
            hint="Run the queries it was made with, or start anew with another --checkpoint folder.",
        )


def _record(folder: Path) -> dict[str, Any] | None:
    """The record of the last committed state; None in a new folder."""
    current = folder / _RECORD
    if not current.exists() and not (folder / _BEGUN).exists():
        if (folder / "commits").is_dir() or (folder / "offsets").is_dir():
            raise CheckpointError(
                f'"{folder}" is a checkpoint of the Spark host',
                hint="Run with --on spark, or name another folder.",
            )
        return None
    saved = read_record(current, _LAYOUT)
    if saved["layout"] != _LAYOUT:
        raise other_version(folder)
    return saved


def other_version(folder: Path) -> CheckpointError:
    """The error of a checkpoint that this version cannot read."""
    return CheckpointError(
        f'the checkpoint "{folder}" was made by another version of Millrace',
        hint="Go on with that version, or start anew with another --checkpoint folder.",
    )
