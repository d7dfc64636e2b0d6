"""Files that are moved into the links' folders when they are due, for both systems to see at the same moment."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread

import numpy as np

from millrace.experiments.demo.links import SECOND, Feed, Shipment, write_rows

_AHEAD = 2.0
"""Seconds between the writing of the files and the first that is due."""
_AFTER_WARM_UP = 1_000
"""File numbers: what is fed sorts after all warm-up rows."""


class Feeder:
    """Feeds the links from a thread, at the speed of the wall clock."""

    def __init__(self, feed: Feed, files: list[Shipment], folder: Path) -> None:
        self.feed = feed
        self.start = 0.0
        """When event time began, in seconds since the epoch."""
        self.fed = 0
        """Rows that have been fed."""
        self.lateness = 0.0
        """By how much a file came later than it was due, at worst."""
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
        """Write all files aside, and let them in from the next full window on."""
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
        """Feed no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _feed(self) -> None:
        for number, file in enumerate(self._files):
            if self._stop.wait(max(0.0, file.due - self.elapsed())):
                return
            self._staged(number).replace(self._final(file.link.name, _AFTER_WARM_UP + number))
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
