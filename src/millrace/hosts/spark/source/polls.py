"""Streams that are asked for rows, or whose rows are pushed, on Spark: the driver asks, and writes files.

Rules:
- What a stream gives at one time is a file, under a name that sorts after all earlier ones, also after a restart. The
  source reads it like any other file.
- A file goes when no replay can read it again: when it had been read before the newest micro-batch, which is all that
  Spark may replay.
- A run that does not go on until it is stopped asks before it begins, and not again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from millrace.connectors.push_pull import Asked
from millrace.hosts.spark.commit_log.commit_log import Record
from millrace.hosts.spark.source.feed_files import count_files, count_removed, put_rows, remove_files
from millrace.hosts.spark.source.feeds import rows_of
from millrace.plan.nodes.endpoints import Connector, Stream

_AT_ONCE = 20
"""How many files are removed at a time at least, for how many is put down on disk."""


@dataclass
class _Poll:
    """A stream that is asked, and the columns that are read of it."""

    source: Asked
    stream: Stream
    read: Sequence[str]
    folder: Path
    files: int
    removed: int
    due: float = 0.0

    def look(self, now: float) -> None:
        """Ask if it is time, and write what there is."""
        if now < self.due:
            return
        self.due = now if self.source.every is None else now + self.source.every / 1e6
        parts: list[pa.RecordBatch] = []
        while (item := self.source.ask(self.stream.name)) is not None:
            parts.append(rows_of(item, self.stream, self.read))
            if not self.source.closes:
                break
        rows = pa.Table.from_batches(parts) if parts else None
        if rows is not None and rows.num_rows:
            put_rows(self.folder, self.files, rows)
            self.files += 1

    def remove(self, read: int) -> None:
        """Remove the first of the files that have been read, if they are many."""
        # One stays: a stream that comes back after nobody read it says by that how far it has come (see `has_read`).
        if read - 1 - self.removed >= _AT_ONCE:
            self.removed = read - 1
            remove_files(self.folder, self.removed)


class Polls:
    """The streams of a run that are asked for rows."""

    def __init__(self) -> None:
        self._polls: dict[str, _Poll] = {}

    def add(self, source: Asked, stream: Stream, read: Sequence[str], folder: Path) -> Connector:
        """Ask a stream from now on, and say how its files are read."""
        folder.mkdir(parents=True, exist_ok=True)
        files, removed = count_files(folder), count_removed(folder)
        self._polls[stream.name] = poll = _Poll(source, stream, read, folder, files, removed)
        poll.look(time.monotonic())
        return Connector("parquet", {"path": str(folder)})

    def look(self) -> None:
        """Ask those whose time has come."""
        now = time.monotonic()
        for poll in self._polls.values():
            poll.look(now)

    def remove(self, read: Mapping[str, int]) -> None:
        """Remove what is not needed again, given how many files of each stream no replay reads."""
        for name, poll in self._polls.items():
            poll.remove(read.get(name, 0))

    def closed(self) -> bool:
        """Write what has been pushed, and say whether all of it has, of the streams that say so."""
        pushed = [poll for poll in self._polls.values() if poll.source.closes]
        for poll in pushed:
            poll.look(time.monotonic())
        return all(poll.source.finished for poll in pushed)

    def ask(self, streams: Iterable[str]) -> dict[str, int]:
        """Ask those among these streams at once; how many files each has then."""
        asked = {name: self._polls[name] for name in streams if name in self._polls}
        for poll in asked.values():
            poll.due = 0.0
            poll.look(time.monotonic())
        return {name: poll.files for name, poll in asked.items()}


def has_read(record: Record, files: dict[str, int]) -> bool:
    """Whether so many files of each stream had been read when a micro-batch was committed."""
    sources = record.get("sources", {})
    return all(sources.get(name, {}).get("files", 0) >= count for name, count in files.items())
