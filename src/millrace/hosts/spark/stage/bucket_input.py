"""What a micro-batch brings to a bucket: what is for it, and what it has to pass on to later levels.

Rules:
- The clock, the end and what streams have come to concern every level; they are read and passed on.
- A bucket reads the ports of its own level. Rows for later levels, results and reports are passed on as they are.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from millrace.hosts.spark.exchange.rows import BOUNDS_PORT, CONTROL_PORT, STREAM_PORT, Row

Summary = dict[str, Any]
"""What a stream had come to after some of its files."""


@dataclass
class BucketInput:
    """What a micro-batch brought to a bucket of one level."""

    blobs: list[tuple[str, bytes]] = field(default_factory=list)
    """Tuples by port, in the order in which they are to be taken."""
    summaries: dict[str, list[Summary]] = field(default_factory=dict)
    bounds: dict[str, dict[str, int]] = field(default_factory=dict)
    """By port what each bucket of an earlier level has promised."""
    joints: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """The same about pairs of times."""
    wants: dict[str, int] | None = None
    """The bound that later levels wait for, by port; None where nobody has said."""
    clocks: list[int] = field(default_factory=list)
    committed: int = 0
    """When the micro-batch before was committed; 0 if nobody has said."""
    live: bool = False
    """True if silent streams may be spoken for."""
    end: bool = False
    passing: list[Row] = field(default_factory=list)

    @property
    def first(self) -> int:
        """The earliest clock of all that was looked at."""
        return min(self.clocks, default=0)

    @property
    def now(self) -> int:
        """The latest clock of all that was looked at."""
        return max(self.clocks, default=0)


def rows_of(frames: Iterable[pd.DataFrame]) -> list[Row]:
    """A bucket's exchange rows of a micro-batch, in the order in which they are to be taken."""
    every = (Row(*row) for frame in frames for row in frame.itertuples(index=False, name=None))
    return sorted(every, key=lambda row: (row.port, row.seq))


def plan_of(rows: Iterable[Row]) -> int:
    """The number of the plan by which exchange rows were made; 0 if none says it."""
    return max((json.loads(row.note)["plan"] for row in rows if row.port in (CONTROL_PORT, STREAM_PORT)), default=0)


def read_input(rows: Iterable[Row], level: int, ports: Container[str]) -> BucketInput:
    """The news among a bucket's exchange rows, for a level that reads these ports."""
    news = BucketInput()
    for row in rows:
        if row.port in ports:
            news.blobs.append((row.port, row.blob))
            continue
        note = json.loads(row.note) if row.port in (CONTROL_PORT, STREAM_PORT, BOUNDS_PORT) else {}
        if row.port == BOUNDS_PORT and note["level"] == level:
            for port, until in note["bounds"].items():
                news.bounds.setdefault(port, {})[note["bucket"]] = until
            for port, pair in note["joints"].items():
                news.joints.setdefault(port, {})[note["bucket"]] = pair
            continue
        if row.port in (CONTROL_PORT, STREAM_PORT):
            _hear(news, row.port, note)
        news.passing.append(row)
    return news


def _hear(news: BucketInput, port: str, note: Summary) -> None:
    """Take in what concerns every level."""
    news.clocks.append(note["now"])
    news.committed = max(news.committed, note["committed"])
    news.live = news.live or note["live"]
    if port == STREAM_PORT:
        news.summaries.setdefault(note["stream"], []).append(note)
    else:
        news.end = news.end or note["end"]
        news.wants = note["wants"]
