"""The one source of a network: the files of all its streams, read by their low levels, and what wakes its buckets.

Rules:
- One source, not one per stream: Spark gives each Python source a process of its own, and starts them one by one.
- The offset names the plan of a micro-batch, and says if ETS may be made for silent streams. A replay reads by that
  plan, or by a later one with which the run has begun, and makes the same ETS as the first attempt.
- The offset also holds when the results of the micro-batch before could be seen: when it was committed, or when writers
  had them.
- A source that is held does not advance: the plan can be changed between two micro-batches.
- The clock is read before any stream is listed: an ETS never passes a file that comes after it.
- In a run to the end, streams end when nothing more is to be read of any: files that come later are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from millrace.connectors.native import SOURCES
from millrace.connectors.opened_source import is_sourced
from millrace.hosts.checkpoint.checkpoint import has_ended
from millrace.hosts.checkpoint.digests import damaged, digest
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.exchange.rows import EXCHANGE
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.sink.deliveries import visible_at
from millrace.hosts.spark.source.followed_files import FollowedFiles
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import START, FileLimit, FilePartition, StreamFiles
from millrace.hosts.spark.source.stream_partitions import SlicePartition, StreamPartitions
from millrace.hosts.spark.source.wakeups import NO_WAKEUP, WakeupPartition, Wakeups, wakeup_rows
from millrace.hosts.system_clock import SystemClock
from millrace.plan.nodes.endpoints import Stream

Offset = dict[str, Any]


@dataclass(frozen=True)
class NetworkPartition(InputPartition):
    """What one task reads, by which plan, whether its run goes on until it is stopped, and when the micro-batch before
    was committed."""

    plan: int
    live: bool
    committed: int
    part: FilePartition | SlicePartition | WakeupPartition


class NetworkSource(DataSource):
    """All streams that are read from files, and the wake-ups of a network, as exchange rows.

    Options: `folder` (the checkpoint's), `plan` (the least version), `buckets` (a JSON list of ids), `live` ("true" if
    the run goes on until it is stopped), `ends` ("true" if the streams end with what is there now).
    """

    @classmethod
    def name(cls) -> str:
        return "millrace"

    def schema(self) -> str:
        return EXCHANGE

    def streamReader(self, schema: StructType) -> NetworkReader:
        return NetworkReader(self.options)


class NetworkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets: the number of the plan, whether the run is live, when the last micro-batch was committed, one offset
    per stream (see `StreamFiles`), and that of the wake-ups (`Wakeups`)."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.folder = options["folder"]
        folder = Path(self.folder)
        self.least = int(options["plan"])
        self.buckets: tuple[int, ...] = tuple(json.loads(options["buckets"]))
        self.live = options.get("live") == "true"
        self.ends = options.get("ends") == "true"
        self.commits = CommitLog(folder / "commits")
        self.plans = PlanLog(folder / "plans")
        self.waking = Wakeups(self.commits, clock_on=self.live)
        self.version = self.least
        self.streams: dict[str, StreamFiles | StreamPartitions] = {}
        self.bounded = False
        self._clock = SystemClock()

    def initialOffset(self) -> Offset:
        return _sealed({"plan": 0, "live": self.live, "committed": 0, "streams": {}, "control": dict(NO_WAKEUP)})

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with carrying():
            self.bounded = True
            self.waking.clock_on = False
            self._follow(self.least)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        with carrying():
            _check(start)
            if self.commits.held():
                return start
            version, now = max(self.least, start["plan"], self.plans.newest()), self._clock.now(_clock_of(start))
            self._follow(version)
            before = {name: start["streams"].get(name, START) for name in self.streams}
            streams = self._looked(before, now)
            new = [name for name, offset in streams.items() if offset is not before[name]]
            for name in start["control"]["ended"]:
                if name in new:
                    raise has_ended(name, "more files")
            names = {stream.name for stream in self.plans.read(version).network.streams()}
            anew = start["plan"] not in (0, version)
            control = self.waking.next_offset(start["control"], now, names, anew=anew)
            if not new and self.ends and control is start["control"]:
                control = self.waking.next_offset(control, now, names, ends=True)
            if not new and control is start["control"]:
                return start
            committed = visible_at(Path(self.folder), self.commits.newest() or {})
            offset = {"plan": version, "live": self.live, "committed": committed}
            return _sealed({**offset, "streams": streams, "control": control})

    def _looked(self, before: Mapping[str, Offset], now: int) -> dict[str, Offset]:
        """The offsets of all streams after a look at this time of the clock, unchanged where there is nothing new."""
        return {name: files.next_offset(before[name], now) for name, files in self.streams.items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with carrying():
            _check(start)
            _check(end)
            self._follow(max(self.least, end["plan"]))
            parts: list[FilePartition | SlicePartition | WakeupPartition] = []
            for name, files in self.streams.items():
                parts += files.partitions(*(offset["streams"].get(name, START) for offset in (start, end)))
            parts += self.waking.partitions(start["control"], end["control"])
            return [NetworkPartition(self.version, end["live"], end.get("committed", 0), part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NetworkPartition)
        with carrying():
            part, committed = partition.part, partition.committed
            if isinstance(part, WakeupPartition):
                yield wakeup_rows(part, self.buckets, partition.plan, live=partition.live, committed=committed)
                return
            low_level = self._low_level(part.stream, partition.plan, live=partition.live, committed=committed)
            if isinstance(part, SlicePartition):
                yield from low_level.read_slices(part)
                return
            yield from low_level.read(
                part.paths, part.index, part.scan, part.before, alone=part.alone, spans=part.spans
            )

    def _follow(self, version: int) -> None:
        """Read the streams of that version from now on; streams of both versions keep what is known of them."""
        if version == self.version and self.streams:
            return
        self.version = version
        known, self.streams = self.streams, {}
        for stream in self.plans.read(version).network.streams():
            if is_sourced(stream) or stream.connector.format in SOURCES:
                followed = self._followed(stream, version, known.get(stream.name))
                if self.bounded and stream.name not in known:
                    followed.prepare()
                self.streams[stream.name] = followed

    def _followed(
        self, stream: Stream, version: int, known: StreamFiles | StreamPartitions | None
    ) -> StreamFiles | StreamPartitions:
        """The files or partitions of a stream, as a version of the plan reads them."""
        low_level = self._low_level(stream.name, version, live=self.live)
        if is_sourced(stream):
            parts = known if isinstance(known, StreamPartitions) else None
            parts = parts or StreamPartitions(stream, low_level.schema, self.commits)
            parts.in_sequence, parts.buckets = low_level.in_sequence, len(self.buckets)
            return parts
        files = known if isinstance(known, StreamFiles) else self._files(low_level, stream)
        files.low_level, files.limit = low_level, FileLimit.of(stream.connector.options)
        return files

    def _files(self, low_level: StreamLowLevel, stream: Stream) -> StreamFiles:
        """The files of a stream: those of a user are followed."""
        if low_level.is_ours:
            return StreamFiles(low_level, stream.name, self.commits)
        return FollowedFiles(low_level, stream, self.commits, ends=self.ends)

    def _low_level(self, stream: str, version: int, *, live: bool, committed: int = 0) -> StreamLowLevel:
        read = self.plans.read(version)
        return StreamLowLevel(read.plan, stream, self.buckets, live, version, self.folder, committed, read.tables)


def _sealed(offset: Offset) -> Offset:
    """An offset with its digest: Spark keeps it in a log that has none."""
    return {**offset, "digest": _digest(offset)}


def _check(offset: Offset) -> None:
    """Refuse an offset that is not what was given to Spark."""
    rest = {name: value for name, value in offset.items() if name != "digest"}
    if offset.get("digest") != _digest(rest):
        raise damaged("an offset in Spark's log")


def _digest(offset: Offset) -> str:
    return digest(json.dumps(offset, sort_keys=True).encode())


def _clock_of(offset: Offset) -> int:
    """The greatest time of the clock that an offset holds."""
    return max([offset["control"]["now"], *(each["now"] for each in offset["streams"].values())])
