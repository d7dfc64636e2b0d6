"""The partitions of one stream's source as part of the network's source, read by the low level.

Rules:
- An offset holds the position of each partition, and where partitions began that are new in it: a replay reads the same
  places. It counts slices, the parts of partitions that were read, as that of files counts files.
- Where a stream begins is settled at the first look, even if there is nothing to read then.
- With a limit each partition that has rows gets its share, so that none of them seems to be silent.
- A bounded run reads up to where the partitions ended when it was prepared.
- A source that does not answer is asked again for a while.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from millrace.connectors.opened_source import check_positions, named_rows, open_source, row_limit, unread_rows
from millrace.connectors.partitioned_input import PATIENCE
from millrace.connectors.source import PartitionSpan, Source, Unreachable
from millrace.connectors.stream_input import Chunk
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.plan.nodes.endpoints import Stream

Offset = dict[str, Any]
_TASK_ROWS = 10_000
"""How many places the slices of a task have together at least, if there are so many."""
_OPEN = 8
"""How many sources a worker process keeps open."""


@dataclass(frozen=True)
class Slice:
    """Places of one partition, from one position up to another."""

    partition: str
    start: int
    stop: int


@dataclass(frozen=True)
class SlicePartition(InputPartition):
    """Slices that one task reads, one after another, and all that their rows may depend on."""

    stream: str
    slices: tuple[Slice, ...]
    index: int
    scan: FileScan
    before: dict[str, Any]
    alone: bool
    known: tuple[str, ...]
    """All partitions of the stream: its bound waits for each."""


class StreamPartitions:
    """Offsets over the partitions of a stream; `in_sequence` says that one task reads a micro-batch."""

    def __init__(self, stream: Stream, schema: pa.Schema, commits: CommitLog) -> None:
        self.stream, self.schema, self.commits = stream, schema, commits
        self.in_sequence = False
        self.buckets = 1
        self.target: Mapping[str, PartitionSpan] | None = None
        self._looked: int | None = None

    @cached_property
    def _source(self) -> Source:
        return open_source(self.stream, self.schema)

    def prepare(self) -> None:
        """Take what the partitions hold now as all that there will be."""
        self.target = self._spans()

    def next_offset(self, start: Offset, clock: int) -> Offset:
        """Where a micro-batch that goes on from `start` ends; `start` itself if there is nothing new."""
        spans = self._spans() if self.target is None else self.target
        now, looked, self._looked = max(clock, start["now"]), self._looked, clock
        known = start.get("positions")
        if known is not None:
            check_positions(self.stream.name, known, {**spans, **(self._spans() if self.target is not None else {})})
        fresh = {name: span for name, span in spans.items() if name not in (known or {})}
        begins = (
            dict(self._source.starts(fresh)) if known is None else {name: each.first for name, each in fresh.items()}
        )
        positions = {**(known or {}), **begins}
        unread = {name: span.end - positions[name] for name, span in spans.items() if span.end > positions[name]}
        taken = shares(unread, row_limit(self.stream))
        if not taken and known is not None:
            return start
        ends = {name: at + taken.get(name, 0) for name, at in positions.items()}
        return {
            "files": start["files"] + len(taken),
            "positions": ends,
            "began": begins,
            "now": now,
            "first": now if looked is None else min(looked, now),
            "came": max(now, time.time_ns() // 1000),
            "unread": sum(unread.values()) - sum(taken.values()) + any(span.busy for span in spans.values()),
        }

    def partitions(self, start: Offset, end: Offset) -> list[SlicePartition]:
        """The slices between two offsets, in tasks."""
        slices = slices_of(start, end)
        if not slices:
            return []
        before = self.commits.source(self.stream.name, start["files"])
        scan = FileScan(int(end["now"]), end["first"], end["came"], end["unread"] == 0)
        tasks = [slices] if self.in_sequence else tasks_of(slices, self.buckets)
        index, known = start["files"], tuple(end["positions"])
        found = []
        for task in tasks:
            alone = len(tasks) == 1
            found.append(SlicePartition(self.stream.name, tuple(task), index, scan, before, alone, known))
            index += len(task)
        return found

    def _spans(self) -> dict[str, PartitionSpan]:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return dict(self._source.spans())
            except Unreachable:
                # At the start an address may be wrong; later the source has answered.
                if self._looked is None or time.monotonic() > until:
                    raise
                time.sleep(0.2)


def slices_of(start: Offset, end: Offset) -> list[Slice]:
    """What is to be read between two offsets.

    >>> slices_of({"files": 0}, {"positions": {"a": 3, "b": 1}, "began": {"a": 1, "b": 1}})
    [Slice(partition='a', start=1, stop=3)]
    """
    begins = {**end.get("began", {}), **(start.get("positions") or {})}
    stops = end.get("positions", {})
    return [Slice(name, begins[name], stop) for name, stop in stops.items() if stop > begins[name]]


def shares(unread: Mapping[str, int], most: int | None) -> dict[str, int]:
    """How much each partition gives; with a limit all give as much as the limit allows to each, and at least one.

    >>> shares({"a": 100, "b": 2}, 10)
    {'b': 2, 'a': 8}
    """
    if most is None:
        return dict(unread)
    taken, left = {}, most
    by_size = sorted(unread.items(), key=lambda each: each[1])
    for number, (name, count) in enumerate(by_size):
        taken[name] = min(count, max(left // (len(by_size) - number), 1))
        left -= taken[name]
    return taken


def tasks_of(slices: Sequence[Slice], most: int) -> list[list[Slice]]:
    """Slices in at most so many groups of about equal size, none much smaller than a task is worth."""
    sizes = [each.stop - each.start for each in slices]
    whole = max(_TASK_ROWS, -(-sum(sizes) // most))
    tasks: list[list[Slice]] = [[]]
    filled = 0
    for each, size in zip(slices, sizes, strict=True):
        if tasks[-1] and filled + size // 2 >= whole and len(tasks) < most:
            tasks.append([])
            filled = 0
        tasks[-1].append(each)
        filled += size
    return tasks


_sources: dict[tuple[Any, ...], Source] = {}
"""The sources that this worker process keeps open: they fetch ahead of the next micro-batch."""


def chunks_of(stream: Stream, schema: pa.Schema, slices: Sequence[Slice]) -> Iterator[Chunk]:
    """The rows of slices, one after another."""
    key = (stream.name, stream.connector.format, tuple(sorted(stream.connector.options.items())), str(schema))
    # Not in the table while it is read: one that failed is not used again.
    source = _sources.pop(key, None) or open_source(stream, schema)
    for each in slices:
        for piece in source.read(each.partition, each.start, each.stop):
            yield Chunk(named_rows(piece, schema), unread_rows([piece]))
    while len(_sources) >= _OPEN:
        _sources.pop(next(iter(_sources))).close()
    _sources[key] = source
