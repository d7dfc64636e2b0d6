"""Streams whose rows come from Python, on Spark: the driver writes files, which the source reads like any others.

Rules:
- A feed is read to its end before the run begins: one file per item, under the same names after a restart, so that the
  source knows what it has read.
- A stream that is polled or pushed gives one file at a time, under a name that sorts after all earlier ones, also after
  a restart. A run that ends by itself polls before it begins, and not again.
- Such a file is removed when no replay can read it again: when it had been read before the newest micro-batch, which is
  all that Spark may replay.
- A DataFrame of Spark's own is read by Spark (see native_streams.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.native import is_native
from millrace.connectors.opened_source import is_sourced, open_source
from millrace.connectors.push_pull import Asked
from millrace.connectors.stream_input import read_schema
from millrace.errors import RunError
from millrace.hosts.checkpoint.durable_files import make_folder
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.spark.commit_log.commit_log import Record
from millrace.hosts.spark.source.feed_files import count_files, count_removed, put_rows, remove_files
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical

_AT_ONCE = 20
"""The least number of files that are removed together: their number is written to disk first."""


class PythonStreams:
    """What a run reads from Python, by stream, and the files that it has written for it."""

    def __init__(self, feeds: Mapping[str, Any], folder: Path) -> None:
        self.feeds = feeds
        """The very mapping that was given: streams may be declared, and fed, while the network runs."""
        self._folder = folder
        self._files: dict[str, Connector] = {}
        self.polls = Polls()

    def frame(self, stream: str) -> Any:
        """The frame that was given for a stream that Spark reads; None if its connector says all."""
        return self.feeds.get(stream)

    def network(self, plan: Physical) -> QueryNetwork:
        """The plan's network with fed streams read from files; refuses streams that cannot be found."""
        for stream in plan.network.streams():
            name = stream.name
            if name in self.feeds and name not in self._files and not is_native(stream.connector):
                feed = self.feeds[name]
                fed_by = self.polls.add if isinstance(feed, Asked) else write_feed
                self._files[name] = fed_by(feed, stream, plan.columns_read(name), self._folder / name)
        fed = [stream for stream in plan.network.streams() if stream.name in self._files]
        network = plan.network.with_streams(
            {each.name: replace(each, connector=self._files[each.name]) for each in fed}
        )
        readable = physical(network)
        for stream in network.streams():
            low_level = StreamLowLevel(readable, stream.name, (0,))
            if is_sourced(stream):
                with closing(open_source(stream, low_level.schema)) as source:
                    source.spans()
            elif not is_native(stream.connector):
                low_level.files()
        return network


def write_feed(items: Iterable[Any], stream: Stream, read: Sequence[str], folder: Path) -> Connector:
    """Write a stream's items as files, and say how to read them; the columns that are `read` must be there."""
    make_folder(folder, "the folder of fed rows")
    for number, item in enumerate(items):
        put_rows(folder, number, pa.Table.from_batches([_rows_of(item, stream, read)]))
    files().sync_folder(folder)
    return Connector("parquet", {"path": str(folder)})


def _rows_of(item: Any, stream: Stream, read: Sequence[str]) -> pa.RecordBatch:
    """The rows of an item: with all columns if it has them, for queries to come may read them."""
    try:
        return as_rows(item, read_schema(stream, list(stream.schema.names)), stream.name)
    except RunError:
        return as_rows(item, read_schema(stream, list(read)), stream.name)


@dataclass
class _Poll:
    """A stream that is polled, and the columns that are read of it."""

    source: Asked
    stream: Stream
    read: Sequence[str]
    folder: Path
    files: int
    removed: int
    due: float = 0.0

    def look(self, now: float) -> None:
        """Poll if it is time, and write what there is."""
        if now < self.due:
            return
        self.due = now if self.source.every is None else now + self.source.every / 1e6
        parts: list[pa.RecordBatch] = []
        while (item := self.source.ask(self.stream.name)) is not None:
            parts.append(_rows_of(item, self.stream, self.read))
            if not self.source.closes:
                break
        rows = pa.Table.from_batches(parts) if parts else None
        if rows is not None and rows.num_rows:
            put_rows(self.folder, self.files, rows)
            files().sync_folder(self.folder)
            self.files += 1

    def remove(self, read: int) -> None:
        """Remove the first of the files that have been read, if they are many."""
        # One stays: a stream that comes back after a pause tells by it how far it has come (see `has_read`).
        if read - 1 - self.removed >= _AT_ONCE:
            self.removed = read - 1
            remove_files(self.folder, self.removed)


class Polls:
    """The streams of a run that are polled for rows."""

    def __init__(self) -> None:
        self._polls: dict[str, _Poll] = {}

    def add(self, source: Asked, stream: Stream, read: Sequence[str], folder: Path) -> Connector:
        """Poll a stream from now on, and say how its files are read."""
        make_folder(folder, "the folder of polled rows")
        count, removed = count_files(folder), count_removed(folder)
        self._polls[stream.name] = poll = _Poll(source, stream, read, folder, count, removed)
        poll.look(time.monotonic())
        return Connector("parquet", {"path": str(folder)})

    def look(self) -> None:
        """Poll the streams whose time has come."""
        now = time.monotonic()
        for poll in self._polls.values():
            poll.look(now)

    def remove(self, read: Mapping[str, int]) -> None:
        """Remove what is not needed again, given how many files of each stream no replay reads."""
        for name, poll in self._polls.items():
            poll.remove(read.get(name, 0))

    def closed(self) -> bool:
        """Write what has been pushed; True if the program has closed all streams that it can close."""
        pushed = [poll for poll in self._polls.values() if poll.source.closes]
        for poll in pushed:
            poll.look(time.monotonic())
        return all(poll.source.finished for poll in pushed)

    def ask(self, streams: Iterable[str]) -> dict[str, int]:
        """Poll those among these streams at once; how many files each has then."""
        asked = {name: self._polls[name] for name in streams if name in self._polls}
        for poll in asked.values():
            poll.due = 0.0
            poll.look(time.monotonic())
        return {name: poll.files for name, poll in asked.items()}


def has_read(record: Record, files: dict[str, int]) -> bool:
    """True if so many files of each stream had been read when a micro-batch was committed."""
    sources = record.get("sources", {})
    return all(sources.get(name, {}).get("files", 0) >= count for name, count in files.items())
