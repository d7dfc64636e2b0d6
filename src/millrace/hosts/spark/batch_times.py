"""Where the time of micro-batches goes: in the tasks of Millrace, by part, and in Spark around them.

Rules:
- Tasks always measure, at two reads of the clock per part; the times go to the commit record with their reports.
- Seconds of tasks add up over tasks that run side by side, so they may be more than the micro-batch took.
- The first micro-batch of a run has its start in it, and is left out where there are others.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

PARTS = {
    "read": "files read",
    "low": "low level: stamped, filtered, pre-aggregated",
    "pack": "split by bucket and packed",
    "open": "state read",
    "work": "high levels: windows, joins",
    "send": "results and crossings packed",
    "save": "state written",
    "write": "result files written",
    "commit": "results published",
}
"""The parts of our own work, in the order in which a micro-batch goes through them."""
SPARK = {
    "latestOffset": "offsets asked for",
    "queryPlanning": "planning",
    "walCommit": "offset log written",
    "addBatch": "tasks, and what is around them",
    "commitOffsets": "commit log written",
}
"""The parts of a micro-batch by Spark's own clock."""


class Stopwatch:
    """Seconds by part.

    >>> watch = Stopwatch()
    >>> with watch("read"):
    ...     pass
    >>> list(watch.took)
    ['read']
    """

    def __init__(self) -> None:
        self.took: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Count the time of a block for a part."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.took[part] += time.perf_counter() - began

    def each(self, part: str, items: Iterable[T]) -> Iterator[T]:
        """The items, counting the time that each takes to come for a part."""
        iterator, end = iter(items), object()
        while True:
            with self(part):
                item = next(iterator, end)
            if item is end:
                return
            yield item  # type: ignore[misc]


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch: rows of Spark's own progress, and the metrics of our record of it."""

    seconds: Mapping[str, float]
    """By Spark's names, and the whole as "triggerExecution"."""
    metrics: Mapping[str, Any]

    @staticmethod
    def of(progress: Mapping[str, Any], record: Mapping[str, Any]) -> MicroBatch:
        """What Spark and our commit record say of it."""
        durations = {name: each / 1000 for name, each in progress["durationMs"].items()}
        return MicroBatch(durations, record.get("metrics", {}))


def profile(batches: Sequence[MicroBatch]) -> dict[str, Any]:
    """Means over micro-batches, as plain data."""
    counted = batches[1:] or batches

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(counted)

    took = [each.metrics.get("took", {}) for each in counted]
    state = [each.metrics.get("state", {}) for each in counted]
    return {
        "batches": len(counted),
        "first": batches[0].seconds.get("triggerExecution", 0.0),
        "seconds": mean(each.seconds.get("triggerExecution", 0.0) for each in counted),
        "spark": {name: mean(each.seconds.get(name, 0.0) for each in counted) for name in SPARK},
        "tasks": {part: mean(each.get(part, 0.0) for each in took) for part in PARTS},
        "state": {
            name: mean(each.get(name, 0) for each in state)
            for name in ("reads", "bytes_read", "writes", "bytes_written")
        },
    }


def profile_lines(found: Mapping[str, Any]) -> list[str]:
    """A profile in words, one line per part."""
    state = found["state"]
    calls = {
        "open": f"{state['reads']:,.0f} reads, {state['bytes_read'] / 1024:,.0f} KiB",
        "save": f"{state['writes']:,.0f} writes, {state['bytes_written'] / 1024:,.0f} KiB",
    }
    ours = sum(found["tasks"].values())
    lines = [
        f"a micro-batch took {found['seconds']:.3f} s (mean of {found['batches']}; the first {found['first']:.1f} s)",
        "  by Spark's clock:",
        *(f"    {found['spark'][name]:7.3f} s  {what}" for name, what in SPARK.items()),
        f"  our own work in these tasks, all tasks together: {ours:.3f} s",
    ]
    for part, what in PARTS.items():
        more = f" ({calls[part]})" if part in calls else ""
        lines.append(f"    {found['tasks'][part]:7.3f} s  {what}{more}")
    return lines
