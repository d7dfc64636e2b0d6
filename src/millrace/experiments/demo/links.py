"""The generated links of the demonstration, and the feeder that moves their files into place when they are due.

Two links are busy, and one of them lags; the third, a control link, is sparse.

Rules:
- Event time runs at the speed of the wall clock: a row arrives its link's `lag` after its own time, in a file that
  holds the rows of `span` seconds. Without that an enabling timestamp would mean nothing.
- Times are seconds or microseconds since the start of the feed, which is a multiple of the window.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from millrace.kernel.elements import TIMESTAMP

SECOND = 1_000_000
_HOSTS = 50
_SEED = 4
_AHEAD = 2.0
"""Seconds between the writing of the files and the first that is due."""
FIRST_FILE = 1_000
"""The first file number of the feed: it sorts after all warm-up files."""

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Link:
    """A link: rows per second, seconds of rows per file, and how many seconds after its time a row arrives."""

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
class LinkFile:
    """One file of a link: when it is due, and the times of its rows."""

    link: Link
    due: float
    offsets: Offsets


def link_files(feed: Feed) -> list[LinkFile]:
    """All files of a feed in the order in which they are due; the same files every time."""
    random = np.random.default_rng(_SEED)
    found = [each for link in feed.links for each in _files(link, _times(link, feed, random))]
    return sorted(found, key=lambda each: each.due)


def _times(link: Link, feed: Feed, random: np.random.Generator) -> Offsets:
    """The times of a link's rows: evenly spaced, each moved at random, but kept in order."""
    count = int(feed.seconds * link.rate)
    seconds = (np.arange(count) + random.uniform(0.0, 0.9, count)) / link.rate
    if link.name == "control":
        begin, end = feed.silence
        seconds = seconds[(seconds < begin) | (seconds >= end)]
    offsets: Offsets = (seconds * SECOND).astype(np.int64)
    return offsets


def _files(link: Link, offsets: Offsets) -> list[LinkFile]:
    numbers = offsets // int(link.span * SECOND)
    return [
        LinkFile(link, float(number + 1) * link.span + link.lag, offsets[numbers == number])
        for number in np.unique(numbers)
    ]


def true_counts(files: Iterable[LinkFile], window: int) -> dict[int, int]:
    """The number of rows of each window, by its place after the start."""
    counts: Counter[int] = Counter()
    for file in files:
        numbers, found = np.unique(file.offsets // (window * SECOND), return_counts=True)
        counts.update(dict(zip(numbers.tolist(), found.tolist(), strict=True)))
    return dict(sorted(counts.items()))


def link_rows(times: Offsets) -> pa.Table:
    """A link's rows at these times (microseconds since the epoch)."""
    hosts = pa.array([f"10.0.0.{number}" for number in range(_HOSTS)])
    return pa.table(
        {
            "srcIP": hosts.take(pa.array(times % _HOSTS)),
            "destIP": hosts.take(pa.array((times // 7) % _HOSTS)),
            "len": pa.array((times % 1_400 + 60).astype(np.int32)),
            "ts": pa.array(times).cast(TIMESTAMP),
        }
    )


def write_rows(path: Path, times: Offsets) -> None:
    """A parquet file of a link's rows at these times."""
    pq.write_table(link_rows(times), path)


class Feeder:
    """Moves files into the folders of their links from a thread, so that all systems see them at the same moment."""

    def __init__(self, feed: Feed, files: list[LinkFile], folder: Path) -> None:
        self.feed = feed
        self.start = 0.0
        """When event time began, in seconds since the epoch."""
        self.fed = 0
        """Rows that have been fed."""
        self.lateness = 0.0
        """Seconds that a file came later than it was due, at worst."""
        self._files = files
        self._folder = folder
        self._staging = folder / "staging"
        self._stop = Event()
        self._thread = Thread(target=self._feed, name="feeder", daemon=True)
        self._warm_ups = 0
        for each in [self._staging, *map(self.folder, [link.name for link in feed.links])]:
            each.mkdir(parents=True, exist_ok=True)

    def folder(self, link: str) -> Path:
        """Where the files of a link arrive."""
        return self._folder / link

    def warm_up(self) -> None:
        """One row on every link, with its link's lag: before the start, so that no counted window holds it."""
        for link in self.feed.links:
            moment = time.time() - link.span - link.lag
            self._place(link.name, self._warm_ups, np.array([int(moment * SECOND)]))
        self._warm_ups += 1

    def begin(self) -> None:
        """Write all files to a staging folder, and move them into place from the next full window on."""
        window = self.feed.window
        self.start = float((time.time() + _AHEAD) // window * window + window)
        origin = int(self.start) * SECOND
        for number, file in enumerate(self._files):
            write_rows(self._staged(number), file.offsets + origin)
        self._thread.start()

    def elapsed(self) -> float:
        """Seconds since the start; negative before it."""
        return time.time() - self.start

    def stop(self) -> None:
        """End the feed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _feed(self) -> None:
        for number, file in enumerate(self._files):
            if self._stop.wait(max(0.0, file.due - self.elapsed())):
                return
            self._staged(number).replace(self._final(file.link.name, FIRST_FILE + number))
            self.lateness = max(self.lateness, self.elapsed() - file.due)
            self.fed += len(file.offsets)

    def _place(self, link: str, number: int, times: np.ndarray) -> None:
        staged = self._staging / f"{link}.parquet"
        write_rows(staged, times)
        staged.replace(self._final(link, number))

    def _staged(self, number: int) -> Path:
        return self._staging / f"{number:06d}.parquet"

    def _final(self, link: str, number: int) -> Path:
        return self.folder(link) / f"{number:06d}.parquet"
