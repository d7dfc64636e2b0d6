"""The manifest of a checkpoint of the Spark host: buckets, stages, and the network as changes have made it.

Rules:
- Spark lets neither the number of buckets nor that of the stateful stages change: both are chosen by the first run.
  More stages than the queries need can be reserved; they pass rows on.
- The network is kept as text: the first file and all changes since. Plans are made from it again.
- The manifest is replaced whole. What it says of the network holds from the next micro-batch on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from millrace.errors import CheckpointError
from millrace.hosts.checkpoint.checkpoint import check_queries, fingerprint, other_version
from millrace.hosts.checkpoint.digests import damaged_file, missing
from millrace.hosts.checkpoint.durable_files import read_record, write_record
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.plan.evolution.evolution import Evolution, beginning
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.physical.stages import Physical, physical

_LAYOUT = 10
_RECORD = "network.json"


@dataclass(frozen=True)
class CheckpointManifest:
    """The manifest; `plan` is the number of the version in force."""

    network: str
    """The fingerprint of the network that the first run began with."""
    buckets: int
    levels: int
    plan: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    layout: int = _LAYOUT

    @staticmethod
    def read(folder: Path) -> CheckpointManifest | None:
        """The manifest in a folder; None if it holds no checkpoint yet."""
        record = folder / _RECORD
        if not record.exists():
            if (folder / "current.json").exists():
                raise CheckpointError(
                    f'"{folder}" is a checkpoint of the local host',
                    hint="Run with --on local, or name another folder.",
                )
            if PlanLog(folder / "plans").newest() or CommitLog(folder / "commits").newest():
                raise missing(record)
            return None
        known = read_record(record, _LAYOUT)
        if known.get("layout") != _LAYOUT:
            raise other_version(folder)
        return CheckpointManifest(**known)

    def write(self, folder: Path) -> None:
        """Put the manifest in place."""
        write_record(folder / _RECORD, asdict(self))

    def check_depth(self, plan: Physical, folder: Path) -> None:
        """Refuse queries that need more stages than there are."""
        if plan.depth > self.levels:
            raise self._too_few("the queries need", plan.depth, folder)

    def check_stages(self, asked: int | None, folder: Path) -> None:
        """Refuse to reserve more stages than there are."""
        if asked is not None and asked > self.levels:
            raise self._too_few("the run asks for", asked, folder)

    def _too_few(self, who: str, stages: int, folder: Path) -> CheckpointError:
        return CheckpointError(
            f'{who} {stages} stages, and the checkpoint "{folder}" has {self.levels}',
            hint="Spark cannot add a stage to a checkpoint: start anew in another folder, with "
            f"--stages {stages} or more to leave room.",
        )


def go_on(folder: Path, known: CheckpointManifest, changes: LiveChanges) -> Evolution | None:
    """Let the changes of a run go on from a checkpoint; what is different in its queries, None if nothing is.

    Refuses what cannot go on; nothing is touched.
    """
    _check_logs(folder, known)
    check_queries(asdict(known), fingerprint(physical(changes.network)), folder, changes)
    evolution = changes.resume(known.changes, points(folder), spread=True)
    known.check_depth(physical(changes.network), folder)
    return evolution


def _check_logs(folder: Path, known: CheckpointManifest) -> None:
    """Refuse a log that lacks records, and a manifest that is older than the plans and records beside it."""
    log = CommitLog(folder / "commits")
    log.check(int(name) for name in files().list(folder / "spark" / "commits") if name.isdigit())
    if known.plan < max(PlanLog(folder / "plans").newest(), (log.newest() or {}).get("plan", 0)):
        raise damaged_file(folder / _RECORD)


def points(folder: Path) -> StreamProgress:
    """How far each stream has come by the newest commit."""
    newest = CommitLog(folder / "commits").newest() or {}
    found: StreamProgress = newest.get("sources", {})
    return found


def pending_change(folder: Path, changes: LiveChanges, stages: int | None = None) -> Evolution | None:
    """What would become of the queries in a checkpoint if a run went on from it now; nothing is touched."""
    known = CheckpointManifest.read(folder)
    if known is None:
        return beginning(changes.network)
    known.check_stages(stages, folder)
    return go_on(folder, known, changes)
