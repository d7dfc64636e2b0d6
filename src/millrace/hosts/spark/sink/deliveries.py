"""Committed rows on their way to writers: a thread of the run gives them each micro-batch, in order.

Rules:
- Tasks stage the rows of a writer as files; the sink gives them their names before the commit record, which has their
  digests (see network_sink.py). From then on the writer will be given them.
- One thread calls all writers, and they stay open from micro-batch to micro-batch: to open a store takes longer than to
  write to it.
- A mark in the checkpoint says which micro-batch was delivered last, and when. It is written when the writers have the
  rows, and only then their files are removed. After a kill one micro-batch is given again, which a writer ignores.
- The sink waits before it commits while deliveries are some micro-batches behind: what is staged stays little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

from millrace.errors import MissingFile
from millrace.hosts.checkpoint.digests import missing
from millrace.hosts.checkpoint.durable_files import make_folder, read_arrow, read_record, write_record
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.sinks.writers import OpenWriters, WriterSpec, write_epoch, writer_of
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record

_MARK, _STAGED = "delivered", "staged"
LOOK = 0.005
"""Seconds between two looks for what is committed, and for what is delivered."""
_BEHIND = 4
"""Micro-batches that may wait for writers when another one is committed."""


class Deliveries:
    """What a run has committed for writers, and the thread that gives it to them."""

    def __init__(self, checkpoint: Path, owner: str | None = None) -> None:
        self._checkpoint, self._owner = checkpoint, owner
        self._commits = CommitLog(checkpoint / "commits")
        self._writers = OpenWriters()
        self._used: Sequence[WriterSpec] = ()
        self._reached: Mapping[str, WriterSpec] = {}
        self._resumed_at = -1
        self._stopping = Event()
        self._thread: Thread | None = None
        self._failure: Exception | None = None
        self._delivered = -1

    def resume(self, reached: Mapping[str, WriterSpec]) -> None:
        """Go on after another run. What it has committed is given to its stores as they are reached now: by the name
        that a query had, another writer of its kind."""
        self._reached, self._resumed_at = reached, self._newest()
        if (mark := _mark(self._checkpoint)) is not None:
            self._delivered = mark["batch"]
            # Nobody waits for a run that was killed.
            self._put_mark(at_work=False)

    def use(self, writers: Sequence[WriterSpec]) -> None:
        """Deliver to these writers from now on, and to others what is committed for them already.

        To be called before the plan that has the writers is in force.
        """
        self._used = writers
        had_writers = (self._checkpoint / _MARK).exists()
        if self._thread is not None or not (writers or had_writers):
            return
        if not had_writers:
            self._delivered = self._newest()
        if self._commits.first() > self._delivered + 1:
            raise missing(self._commits.folder)
        self._put_mark(at_work=True)
        self._thread = Thread(target=self._work, name="millrace-deliveries", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what made a writer fail, if one did."""
        if self._failure is not None:
            raise self._failure

    def drain(self) -> None:
        """Return when all that is committed is delivered."""
        newest = self._newest()
        while self._thread is not None and self._delivered < newest:
            self.check()
            time.sleep(LOOK)
        self.check()

    def stop(self) -> None:
        """End after the micro-batch under way, and close the writers; the next run delivers the rest."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        try:
            while not self._stopping.wait(LOOK):
                self.deliver()
        # A user's code may raise anything; the run ends with it.
        except Exception as error:
            self._failure = error
        finally:
            self._put_mark(at_work=False)
            self._writers.keep(())

    def deliver(self) -> None:
        """Give writers what is committed for them."""
        while not self._stopping.is_set() and (record := self._commits.at(self._delivered + 1)) is not None:
            self._deliver(record)
        self._writers.keep(self._used)

    def _deliver(self, record: Record) -> None:
        batch = int(record["batch"])
        for query, told in _staged(record).items():
            if self._owner is not None:
                self._commits.check_owner(self._owner)
            paths = [staged_folder(self._checkpoint, query) / name for name in told]
            rows = [read_arrow(path, digest, mapped=True) for path, digest in zip(paths, told.values(), strict=True)]
            spec = writer_of(rows[0])
            if batch <= self._resumed_at:
                spec = spec.reached_as(self._reached.get(query))
            write_epoch(spec, batch, paths, self._writers)
        self._delivered = batch
        self._put_mark(at_work=self._thread is not None)
        for path in (self._checkpoint / _STAGED).glob("*/part-*"):
            # Those of a micro-batch that was run again after its delivery, too.
            if int(path.name.split("-")[1]) <= batch:
                files().remove(path)

    def _put_mark(self, *, at_work: bool) -> None:
        make_folder(self._checkpoint, "the checkpoint")
        mark = {"batch": self._delivered, "at": _now(), "at_work": at_work}
        write_record(self._checkpoint / _MARK, mark)

    def _newest(self) -> int:
        return int((self._commits.newest() or {}).get("batch", -1))


def staged_folder(checkpoint: Path, query: str) -> Path:
    """Where tasks stage the rows of a query for its writer."""
    return checkpoint / _STAGED / query


def is_behind(checkpoint: Path, batch: int) -> bool:
    """True if the commit of a micro-batch should wait: a run is at work on too many before it."""
    mark = _mark(checkpoint)
    return mark is not None and mark["at_work"] and mark["batch"] < batch - _BEHIND


def visible_at(checkpoint: Path, record: Record) -> int:
    """When all results of a committed micro-batch could be seen: now, if writers do not have them yet."""
    committed: int = record.get("committed", 0)
    if not _staged(record):
        return committed
    mark = _mark(checkpoint)
    return _now() if mark is None or mark["batch"] < record["batch"] else max(committed, mark["at"])


def _staged(record: Record) -> dict[str, dict[str, str]]:
    """The staged files of a micro-batch by query, with their digests."""
    outputs: dict[str, Any] = record.get("outputs", {})
    return {query: told["staged"] for query, told in outputs.items() if told.get("staged")}


def _mark(checkpoint: Path) -> Record | None:
    try:
        return read_record(checkpoint / _MARK)
    except MissingFile:
        return None


def _now() -> int:
    return time.time_ns() // 1000
