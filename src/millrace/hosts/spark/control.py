"""A Spark source that wakes the buckets: when the clock reaches what they asked for, and at the end.

Rules:
- The offset is the clock of the last waking, so a replay sees the same time.
- It advances only with a reason: a wake-up that is due by the newest commit, a bound that a later level has begun to
  wait for, or the end marker. Hence no batch runs without need, and after downtime there is one waking, not a backlog.
- Under `availableNow` the end marker alone counts; otherwise such a run might never end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.rows import CONTROL_PORT, EXCHANGE, Row, exchange_rows

Offset = dict[str, Any]


@dataclass(frozen=True)
class ControlPartition(InputPartition):
    """One waking of all buckets."""

    now: int
    end: bool
    wants: dict[str, int] = field(default_factory=dict)


class ControlSource(DataSource):
    """The clock, the end of all streams, and what later levels wait for, as one exchange row per bucket.

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
    """Offsets: the clock of the last waking (`now`), whether it was the last of all (`end`), and the bounds that later
    levels waited for (`wants`, by port)."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.commits = CommitLog(options["commits"])
        self.buckets: list[int] = json.loads(options["buckets"])
        self.clock_on = options.get("clock", "on") == "on"
        self.ended: bool | None = None

    def initialOffset(self) -> Offset:
        return {"now": 0, "end": False, "wants": {}}

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
        known = (self.commits.newest() if self.clock_on else None) or {}
        wants, wake_at = known.get("wants", {}), known.get("wake_at")
        due = wake_at is not None and clock >= wake_at
        if end or due or wants.items() - start["wants"].items():
            return {"now": max(clock, start["now"]), "end": end, "wants": wants}
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[ControlPartition]:
        return [] if start == end else [ControlPartition(end["now"], end["end"], end["wants"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ControlPartition)
        note = json.dumps({"now": partition.now, "end": partition.end, "wants": partition.wants})
        yield exchange_rows([Row(bucket, CONTROL_PORT, 0, note=note) for bucket in self.buckets])
