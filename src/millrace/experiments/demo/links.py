"""The generated links of the demonstration: two busy ones, skewed against each other, and a sparse control link.

Rules:
- Event time runs at the speed of the wall clock: a row arrives its link's `lag` after its own time, in a file that
  holds the rows of `span` seconds. Without that an enabling timestamp would mean nothing.
- All times here are seconds or microseconds since the start of the feed, which is a multiple of the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from millrace.plan.nodes.endpoints import TIMESTAMP

SECOND = 1_000_000
_HOSTS = 50

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Link:
    """A link: rows a second, seconds of rows in a file, and how long after its time a row arrives."""

    name: str
    rate: float
    span: float
    lag: float


LINKS = (
    Link("control", rate=0.5, span=0.1, lag=0.2),
    Link("main1", rate=1_000, span=0.5, lag=0.0),
    Link("main2", rate=800, span=0.5, lag=1.5),
)


@dataclass(frozen=True)
class Feed:
    """What is fed: for how long, counted in windows of which length, and when the control link is silent."""

    seconds: float = 45.0
    window: int = 5
    links: Sequence[Link] = LINKS

    @property
    def silence(self) -> tuple[float, float]:
        """From when to when the control link sends nothing: more than half of the time."""
        begin = round(self.seconds / 4)
        return begin, begin + round(self.seconds * 0.68)

    @property
    def windows(self) -> int:
        """How many windows are fed."""
        return int(np.ceil(self.seconds / self.window))


@dataclass(frozen=True)
class Shipment:
    """One file of a link: when it is due, and the times of its rows."""

    link: Link
    due: float
    offsets: Offsets


def shipments(feed: Feed, seed: int = 4) -> list[Shipment]:
    """All files of a feed in the order they are due; the same for a seed."""
    random = np.random.default_rng(seed)
    found = [each for link in feed.links for each in _files(link, _times(link, feed, random))]
    return sorted(found, key=lambda each: each.due)


def _times(link: Link, feed: Feed, random: np.random.Generator) -> Offsets:
    """The times of a link's rows: evenly spaced, each shaken within its own space, so that they stay in order."""
    count = int(feed.seconds * link.rate)
    seconds = (np.arange(count) + random.uniform(0.0, 0.9, count)) / link.rate
    if link.name == "control":
        begin, end = feed.silence
        seconds = seconds[(seconds < begin) | (seconds >= end)]
    offsets: Offsets = (seconds * SECOND).astype(np.int64)
    return offsets


def _files(link: Link, offsets: Offsets) -> list[Shipment]:
    numbers = offsets // int(link.span * SECOND)
    return [
        Shipment(link, float(number + 1) * link.span + link.lag, offsets[numbers == number])
        for number in np.unique(numbers)
    ]


def true_counts(files: Iterable[Shipment], window: int) -> dict[int, int]:
    """The number of rows of each window, by its place after the start."""
    counts: Counter[int] = Counter()
    for file in files:
        numbers, found = np.unique(file.offsets // (window * SECOND), return_counts=True)
        counts.update(dict(zip(numbers.tolist(), found.tolist(), strict=True)))
    return dict(sorted(counts.items()))


def write_rows(path: Path, times: Offsets) -> None:
    """A parquet file of a link's rows at these times (microseconds since the epoch)."""
    hosts = pa.array([f"10.0.0.{number}" for number in range(_HOSTS)])
    table = pa.table(
        {
            "srcIP": hosts.take(pa.array(times % _HOSTS)),
            "destIP": hosts.take(pa.array((times // 7) % _HOSTS)),
            "len": pa.array((times % 1_400 + 60).astype(np.int32)),
            "ts": pa.array(times).cast(TIMESTAMP),
        }
    )
    pq.write_table(table, path)
