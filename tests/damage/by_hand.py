"""The parts of a run on Spark that are ours, without Spark: the files of the checkpoint, our blobs in Spark's state
store and our offsets in its offset log. What Spark does around them is done by `tests/crash/spark_by_hand.py`.

Of blobs and offsets only bits and ends are damaged: Spark itself keeps the right version of each.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from millrace.errors import MillraceError
from millrace.hosts.checkpoint.checkpoint import fingerprint
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.spark.commit_log.checkpoint_manifest import CheckpointManifest, go_on
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.commit_reader import CommitReader
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.failures import CarriedError
from millrace.hosts.spark.sink.destinations import Destinations
from millrace.language import bind_changes, parse_network, read_file
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical
from tests.crash.spark_by_hand import BUCKETS, Disk, SparkByHand, forget
from tests.damage.damages import copy_site, draw, files_in, put_files
from tests.damage.networks import QUEUED, Rows, results, script
from tests.damage.on_local import Case, forked, named_by, outcome_of

_OLDER, _BASE = 3, 6
"""The micro-batches after which copies are kept."""
_STATE = Path("state")


@dataclass(frozen=True)
class Site:
    """A run that was killed half-way, what Spark has kept of it then and earlier, and what it must give in the end."""

    network: str
    folder: Path
    disk: Disk
    older: Disk
    expected: Rows
    answers: str


class Run:
    """A run in this folder that begins, or goes on from what is there, as `SparkRun` does."""

    def __init__(self, disk: Disk) -> None:
        text = Path("network.sql").read_text()
        changes = LiveChanges(parse_network(text), text, bind_changes, read_file)
        _STATE.mkdir(exist_ok=True)
        known = CheckpointManifest.read(_STATE)
        if known is not None:
            go_on(_STATE, known, changes)
            # As for a micro-batch that is run again by the plan that it was begun with.
            assert isinstance(PlanLog(_STATE / "plans").read(known.plan).network, QueryNetwork)
            CommitReader(CommitLog(_STATE / "commits"), profiled=False).go_on()
        plan = physical(changes.network)
        self.sinks = Destinations(_STATE, changes.network.queries, fresh=known is None)
        saved = json.loads(json.dumps(changes.saved()))
        CheckpointManifest(fingerprint(plan), len(BUCKETS), plan.depth, 1, saved).write(_STATE)
        self.spark = SparkByHand(changes.network, self.sinks.specs, _STATE, disk)

    def work(self, until: int | None = None) -> None:
        """Micro-batches until so many are committed, or all streams have ended."""
        self.spark.reader.ends = until is None
        while self.spark.disk.committed != until and self.spark.micro_batch():
            batch = self.spark.disk.committed - 1
            for log in ("offsets", "commits"):
                path = _STATE / "spark" / log / str(batch)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            self.sinks.put_answers(CommitLog(_STATE / "commits").newest() or {})

    def answers(self, network: str) -> str:
        """The latest answers, as text."""
        return (
            "\n".join(sorted(map(str, self.sinks.sinks.answers.of("q").table().to_pylist())))
            if network in QUEUED
            else ""
        )


def prepared(folder: Path, name: str) -> Site:
    """A network in a folder, run half-way, and what a run without damage gives."""
    folder.mkdir()
    (folder / "network.sql").write_text(script(name))
    for stream in ("links", "rates"):
        (folder / stream).symlink_to((folder.parent / "inputs" / stream).resolve())
    home, disk = Path.cwd(), Disk()
    os.chdir(folder)
    try:
        run = Run(disk)
        run.work(_OLDER)
        older = deepcopy(disk)
        shutil.copytree("state", "older/state")
        run.work(_BASE)
        kept, whole = deepcopy(disk), folder.with_name(f"{folder.name}-whole")
        copy_site(folder, whole)
        os.chdir(whole)
        forget()
        run = Run(deepcopy(kept))
        run.work()
        expected, answers = results(whole, name), run.answers(name)
    finally:
        os.chdir(home)
    assert expected
    return Site(name, folder, kept, older, expected, answers)


def tried(site: Site, folder: Path, chance: random.Random) -> Case:
    """Damage a copy of the checkpoint and go on from it."""
    copy_site(site.folder, folder)
    disk, files = deepcopy(site.disk), files_in(folder / "state", ("lock",))
    content = {name: each for name, each in files.items() if not name.startswith("spark/")} | _kept_by_spark(disk)
    older = files_in(folder / "older" / "state") | _kept_by_spark(site.older)
    while True:
        kind, file, damage = draw(content, older, chance)
        if kind in ("flip", "cut") or not file.startswith(("offset", "blob")):
            break
    put_files(
        folder / "state", {name: each for name, each in damage.items() if not name.startswith(("offset", "blob"))}
    )
    if any(not _put(disk, name, each or b"") for name, each in damage.items() if name.startswith(("offset", "blob"))):
        return Case(site.network, kind, file, "detected", "no JSON any more: Spark refuses it")
    code = forked(lambda: _went_on(folder, site.network, disk), folder / "said")
    answers = (folder / "answers").read_text() if code == 0 else ""
    said = (folder / "said").read_text()
    named = named_by(kind, damage) if not file.startswith(("offset", "blob")) else ["offset", "state of"]
    outcome = outcome_of(code, said, results(folder, site.network), site.expected, site.network, named)
    if outcome == "harmless" and answers != site.answers:
        outcome = "silently wrong"
    return Case(site.network, kind, file, outcome, "" if outcome == "harmless" else said.strip()[-400:])


def _went_on(folder: Path, network: str, disk: Disk) -> int:
    os.chdir(folder)
    forget()
    try:
        run = Run(disk)
        run.work()
    except (MillraceError, CarriedError) as error:
        print(error)
        return 1
    (folder / "answers").write_text(run.answers(network))
    return 0


def _kept_by_spark(disk: Disk) -> dict[str, bytes]:
    """Our part of what Spark keeps: the last offset, and all blobs of the last version of the state."""
    found = {f"offset {len(disk.offsets) - 1}": json.dumps(disk.offsets[-1]).encode()}
    for (level, version), buckets in disk.states.items():
        if version == disk.committed - 1:
            for bucket, values in buckets.items():
                found |= {f"blob {level}|{bucket}|{node}|{part}": value[0] for (node, part), value in values.items()}
    return found


def _put(disk: Disk, name: str, content: bytes) -> bool:
    """Put back a damaged offset or blob; False if Spark itself could not read it."""
    kind, _, place = name.partition(" ")
    if kind == "offset":
        try:
            disk.offsets[int(place)] = json.loads(content)
        except ValueError:
            return False
        return isinstance(disk.offsets[int(place)], dict)
    level, bucket, node, part = place.split("|")
    disk.states[int(level), disk.committed - 1][int(bucket)][node, int(part)] = (content,)
    return True
