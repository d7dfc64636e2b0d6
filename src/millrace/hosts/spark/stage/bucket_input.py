"""What a micro-batch brings to a bucket: its own input, and what it passes on to later levels.

Rules:
- The clock, the end and the progress of streams concern every level; they are read and passed on.
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
"""The progress of a stream after some of its files."""


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
    releases: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """By port what brought about the promise of each such bucket, where a query tells it."""
    wants: dict[str, int] | None = None
    """The bound that later levels wait for, by port; None where it is not known."""
    clocks: list[int] = field(default_factory=list)
    committed: int = 0
    """When the micro-batch before was committed; 0 if it is not known."""
    live: bool = False
    """True if ETS may be made for silent streams."""
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
    """The input among a bucket's exchange rows, for a level that reads these ports."""
    found = BucketInput()
    for row in rows:
        if row.port in ports:
            found.blobs.append((row.port, row.blob))
            continue
        note = json.loads(row.note) if row.port in (CONTROL_PORT, STREAM_PORT, BOUNDS_PORT) else {}
        if row.port == BOUNDS_PORT and note["level"] == level:
            for port, until in note["bounds"].items():
                found.bounds.setdefault(port, {})[note["bucket"]] = until
            for port, pair in note["joints"].items():
                found.joints.setdefault(port, {})[note["bucket"]] = pair
            for port, release in note.get("releases", {}).items():
                found.releases.setdefault(port, {})[note["bucket"]] = release
            continue
        if row.port in (CONTROL_PORT, STREAM_PORT):
            _add_note(found, row.port, note)
        found.passing.append(row)
    return found


def _add_note(found: BucketInput, port: str, note: Summary) -> None:
    """Add what concerns every level."""
    found.clocks.append(note["now"])
    found.committed = max(found.committed, note["committed"])
    found.live = found.live or note["live"]
    if port == STREAM_PORT:
        found.summaries.setdefault(note["stream"], []).append(note)
    else:
        found.end = found.end or note["end"]
        found.wants = note["wants"]
