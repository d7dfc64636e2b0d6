"""When buckets are woken without rows: when the clock reaches the time they asked for, and at the end.

Rules:
- The offset is the clock of the last wake-up, so that a replay sees the same time.
- It advances only for a reason: a wake-up that is due by the newest commit, rows that queues held back there, a bound
  that a later level has begun to wait for, another plan, or the end. So no batch runs without need, and after
  downtime there is one wake-up, not a backlog.
- Under `availableNow` only the end and rows in queues count; otherwise such a run might never end. Its queues
  become empty, for no rows come in.
- A stream ends once; a stream that joins the network later has an end of its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.exchange.rows import CONTROL_PORT, Row, exchange_rows

Offset = dict[str, Any]

NO_WAKEUP: Offset = {"now": 0, "ended": [], "wants": {}}
"""The offset before the first wake-up."""


@dataclass(frozen=True)
class WakeupPartition(InputPartition):
    """One wake-up of all buckets."""

    now: int
    end: bool
    wants: dict[str, int] = field(default_factory=dict)


class Wakeups:
    """Offsets: the clock of the last wake-up (`now`), the streams that have ended (`ended`), and the bounds
    that later levels waited for (`wants`, by port)."""

    def __init__(self, commits: CommitLog, *, clock_on: bool) -> None:
        self.commits = commits
        self.clock_on = clock_on

    def next_offset(
        self, start: Offset, clock: int, streams: Collection[str], *, anew: bool = False, ends: bool = False
    ) -> Offset:
        """Where to go on to from `start` at this time of the clock; `start` itself if nowhere.

        `streams` are those of the network; `anew` says that its plan is another one, which all buckets must learn;
        `ends` that all streams end with what has been read of them.
        """
        if not anew and set(streams) <= set(start["ended"]):
            return start
        ended = sorted(streams if ends else set(start["ended"]).intersection(streams))
        end = bool(set(ended).difference(start["ended"]))
        newest = self.commits.newest() or {}
        known = newest if self.clock_on else {}
        wants, wake_at = known.get("wants", {}), known.get("wake_at")
        due = newest.get("queued", 0) > 0 or (wake_at is not None and clock >= wake_at)
        if end or due or anew or wants.items() - start["wants"].items():
            return {"now": max(clock, start["now"]), "ended": ended, "wants": wants}
        return start

    def partitions(self, start: Offset, end: Offset) -> list[WakeupPartition]:
        """One wake-up, if there is one between the offsets."""
        if start == end:
            return []
        return [WakeupPartition(end["now"], bool(set(end["ended"]).difference(start["ended"])), end["wants"])]


def wakeup_rows(
    partition: WakeupPartition, buckets: Sequence[int], plan: int, *, live: bool, committed: int = 0
) -> pa.RecordBatch:
    """A wake-up as one exchange row per bucket."""
    told = {"now": partition.now, "end": partition.end, "wants": partition.wants}
    note = json.dumps({**told, "plan": plan, "live": live, "committed": committed})
    return exchange_rows([Row(bucket, CONTROL_PORT, 0, note=note) for bucket in buckets])
