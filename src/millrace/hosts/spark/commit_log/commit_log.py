"""The records of micro-batches, one small file per batch: the sink writes them, the source and the run read them.

Rules:
- A record is written last, after all files of its batch are in place, and replaced whole when the batch is replayed
  (see sink/network_sink.py for all steps of a commit).
- A record is complete: what it says of a source holds until a later record says more. Of partitions and groups it
  names the files in which they are (see progress_files.py). Its clock (`now`) is that of the look for rows, and
  `committed` is the moment at which it was written: results in files could be seen then, and writers be given theirs.
- The folder also holds the mark that holds the source between two micro-batches, and the name of the run that owns the
  log: the last that has started. Another one, which a lost lock let in or left, commits nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from millrace.errors import MissingFile
from millrace.hosts.checkpoint.digests import missing
from millrace.hosts.checkpoint.durable_files import make_folder, read_record, replace_file, taken_over, write_record
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles

Record = dict[str, Any]

_HOLD, _HELD, _OWNER = "hold", "held", "owner"
_DIGITS = 8


class CommitLog:
    """The records of a network's batches, in a folder.

    >>> import tempfile
    >>> log = CommitLog(tempfile.mkdtemp())
    >>> log.write(0, {"batch": 0, "sources": {"bids": {"files": 2, "greatest": 70}}})
    >>> log.source("bids", 2)
    {'files': 2, 'greatest': 70}
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.progress_files = ProgressFiles(self.folder)

    def write(self, batch: int, record: Record) -> None:
        """Put the batch's record in place, whole and on disk."""
        make_folder(self.folder, "the commit log")
        write_record(self._path(batch), record)

    def newest(self) -> Record | None:
        """The last batch's record."""
        batches = self._batches()
        return self._read(batches[-1]) if batches else None

    def at(self, batch: int) -> Record | None:
        """A batch's record, if it is committed."""
        with suppress(MissingFile):
            return self._read(batch)
        return None

    def before(self, batch: int) -> Record | None:
        """The record that the batch goes on from, also when the batch is replayed."""
        return self._read(batch - 1) if any(number < batch for number in self._batches()) else None

    def first(self) -> int:
        """The first batch whose record is still there; 0 if there is none."""
        return next(iter(self._batches()), 0)

    def check(self, committed: Iterable[int]) -> None:
        """Refuse a log that lacks the record of a batch: one between others, or one that Spark has committed."""
        found = self._batches()
        needed = range(self.first(), max([*found, *committed], default=-1) + 1)
        for batch in sorted(set(needed).difference(found)):
            raise missing(self._path(batch))

    def records(self, after: int = -1) -> Iterator[tuple[int, Record]]:
        """Each later batch's number and its record, in order; one that is pruned meanwhile is left out."""
        for batch in self._batches():
            if batch > after:
                with suppress(MissingFile):
                    yield batch, self._read(batch)

    def source(self, stream: str, files: int) -> Record:
        """What was known of the stream when exactly so many of its files had been read; empty if nothing."""
        for batch in reversed(self._batches()):
            known: Record | None = self._read(batch).get("sources", {}).get(stream)
            if known is None or known.get("files") == files:
                # Before a record that lacks it the stream had another life, if any.
                return known or {}
        return {}

    def claim(self, owner: str) -> None:
        """Make a run the owner of the log: the one that was can commit no more."""
        make_folder(self.folder, "the commit log")
        replace_file(self.folder / _OWNER, owner)

    def check_owner(self, owner: str) -> None:
        """Refuse a commit of a run that is not the owner."""
        if self._mark(_OWNER) != owner:
            raise taken_over(self.folder.parent, "it is in the hands of a run that has started later")

    def hold(self) -> None:
        """Ask the source not to advance."""
        make_folder(self.folder, "the commit log")
        replace_file(self.folder / _HOLD, uuid4().hex)

    def held(self) -> bool:
        """True if the source must not advance; asked by the source between two micro-batches, it tells the run so."""
        if (asked := self._mark(_HOLD)) is None:
            return False
        replace_file(self.folder / _HELD, asked)
        return True

    def is_held(self) -> bool:
        """True if the source has answered the last `hold`: it does not advance."""
        return self._mark(_HOLD) is not None and self._mark(_HELD) == self._mark(_HOLD)

    def release(self) -> None:
        """Let the source advance."""
        files().remove(self.folder / _HOLD)

    def _mark(self, name: str) -> str | None:
        try:
            return files().read(self.folder / name).decode()
        except FileNotFoundError:
            return None

    def prune(self, keep: int = 100) -> None:
        """Drop all but the newest records. Spark replays one batch at most, so two would do."""
        for batch in self._batches()[: -max(keep, 2)]:
            files().remove(self._path(batch))
        self.progress_files.prune(known for _, record in self.records() for known in record.get("sources", {}).values())

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:0{_DIGITS}d}.json"

    def _read(self, batch: int) -> Record:
        return read_record(self._path(batch))

    def _batches(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        stems = (name[:-5] for name in os.listdir(self.folder) if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdigit())
