"""A Spark source that wakes the buckets: when the clock reaches what they asked for, and at the end.

Rules:
- The offset is the clock of the last waking, so a replay sees the same time.
- It advances only with a reason: a wake-up that is due by the newest commit, or the end marker. Hence no batch
  runs without need, and after downtime there is one waking, not a backlog.
- Under `availableNow` the end marker alone counts; otherwise such a run might never end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.rows import CONTROL_PORT, EXCHANGE, EXCHANGE_SCHEMA

Offset = dict[str, Any]


@dataclass(frozen=True)
class ControlPartition(InputPartition):
    """One waking of all buckets."""

    now: int
    end: bool


class ControlSource(DataSource):
    """The clock and the end of all streams, as one exchange row per bucket.

    Options: `commits` (a folder), `buckets` (a JSON list of bucket ids), `clock` ("on" or "off").
    """

    @classmethod
    def name(cls) -> str:
        return "millrace_control"

    def schema(self) -> str:
        return EXCHANGE

    def streamReader(self, schema: StructType) -> ControlReader:
        return ControlReader(self.options)


class ControlReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets `{"now": microseconds of the last waking, "end": whether it was the last of all}`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.commits = CommitLog(options["commits"])
        self.buckets: list[int] = json.loads(options["buckets"])
        self.clock_on = options.get("clock", "on") == "on"
        self.ended: bool | None = None

    def initialOffset(self) -> Offset:
        return {"now": 0, "end": False}

    def prepareForTriggerAvailableNow(self) -> None:
        self.ended = self.commits.ended()
        self.clock_on = False

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        with carrying():
            return self.next_offset(start, time.time_ns() // 1000)

    def next_offset(self, start: Offset, clock: int) -> Offset:
        """Where to go on to from `start` at this time of the clock; `start` itself if nowhere."""
        if start["end"]:
            return start
        end = self.commits.ended() if self.ended is None else self.ended
        if end or self._due(clock):
            return {"now": max(clock, start["now"]), "end": end}
        return start

    def _due(self, clock: int) -> bool:
        newest = self.commits.newest() if self.clock_on else None
        wake_at = newest.get("wake_at") if newest else None
        return wake_at is not None and clock >= wake_at

    def partitions(self, start: Offset, end: Offset) -> Sequence[ControlPartition]:
        return [] if start == end else [ControlPartition(end["now"], end["end"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ControlPartition)
        count = len(self.buckets)
        note = json.dumps({"now": partition.now, "end": partition.end})
        columns: list[list[Any]] = [self.buckets, [CONTROL_PORT] * count, [0] * count, [b""] * count, [note] * count]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, EXCHANGE_SCHEMA, strict=True)]
        yield pa.record_batch(arrays, schema=EXCHANGE_SCHEMA)
