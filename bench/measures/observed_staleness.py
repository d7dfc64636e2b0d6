"""Staleness by key, as a reader of the results observes it, and as the queue measures it.

Rules:
- A quote comes when it is due: at the moment of the first, and then as its time says, at the speed of the replay.
- A key is stale from the arrival of the first quote that is newer than the newest result, until a result is as new.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.hosts.local.pace import PacedInput
from millrace.hosts.report import Report
from millrace.hosts.system_clock import SystemClock

Numbers = npt.NDArray[np.int64]
Key = tuple[str, str]
"""Venue and symbol."""


class Run(Protocol):
    """A run that has ended."""

    def staleness(self, query: str) -> pa.Table:
        """How stale each key is."""

    def report(self) -> Report:
        """What became of the rows."""


@dataclass(frozen=True)
class Valued:
    """Milliseconds of staleness by key, observed from outside and by the queue; quotes per second; rows in and out.

    On Spark also the seconds from one commit to the next.
    """

    seen: dict[Key, float]
    by_queue: dict[Key, float]
    per_second: dict[Key, float]
    entered: int
    let_go: int
    batches: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Over all keys, as seen from outside."""
        return sum(self.seen.values()) / len(self.seen)

    def text(self) -> str:
        """What it comes to."""
        by_queue = sum(self.by_queue.values()) / max(1, len(self.by_queue))
        text = (
            f"{self.mean:,.1f} ms stale ({by_queue:,.1f} by the queue), {self.let_go:,} of {self.entered:,} rows valued"
        )
        return f"{text}, a micro-batch {median(self.batches):.2f} s" if self.batches else text

    def data(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "entered": self.entered,
            "let_go": self.let_go,
            "stale_ms": {" ".join(key): round(value, 2) for key, value in self.seen.items()},
            "stale_ms_by_queue": {" ".join(key): round(value, 2) for key, value in self.by_queue.items()},
            **({"batch_seconds": [round(each, 3) for each in self.batches]} if self.batches else {}),
        }


class Seen:
    """Who is given the results of a run over quotes that are replayed at a speed."""

    def __init__(self, quotes: pa.Table, speed: float, clock: SystemClock | None = None) -> None:
        self.quotes = quotes
        self.first = quotes.column("ts")[0]
        self.results_so_far = 0
        self._speed = speed
        self._clock = clock or SystemClock()
        self._began: int | None = None
        self._given: list[tuple[int, pa.Table]] = []

    def begin(self, at: int | None = None) -> None:
        """The first quote comes now, or came at a moment."""
        self._began = self._clock.now() if at is None else at

    def paced(self, source: PacedInput) -> None:
        """The first quote came when the host's own pace says."""
        assert source.due is not None and source.first is not None, "the recording is longer than the run"
        self.begin(source.due - int((source.first - self.first.cast(pa.int64()).as_py()) / self._speed))

    def results(self, query: str, rows: pa.Table) -> None:
        """Take results, as a listener of the run."""
        self._given.append((self._clock.now(), rows))
        self.results_so_far += rows.num_rows

    def valued(self, run: Run, seconds: float) -> Valued:
        """How stale each key was in the first so many seconds."""
        assert self._began is not None
        began = self._began
        queue, stale = run.report().queues["worth"], run.staleness("worth")
        by_queue = {
            (row["venue"], row["symbol"]): row["application_mean"] / 1e3
            for row in stale.to_pylist()
            if row["venue"] != "warm-up"
        }
        seen, rates = {}, {}
        for key in sorted(by_queue):
            due, until = self._due(key, began), began + int(seconds * 1e6)
            seen[key] = stale_for(due[due < until], *self._answers(key), until) / 1e3
            rates[key] = float((due < until).sum()) / seconds
        return Valued(seen, by_queue, rates, queue.entered, queue.let_go)

    def _due(self, key: Key, began: int) -> Numbers:
        """When each quote of a key comes."""
        times = _micros(_of(self.quotes, key))
        due: Numbers = (began + (times - self.first.cast(pa.int64()).as_py()) / self._speed).astype(np.int64)
        return due

    def _answers(self, key: Key) -> tuple[Numbers, Numbers]:
        """When results of a key were given, and how many of its quotes are not newer than each."""
        own = [(moment, _micros(_of(rows, key))) for moment, rows in self._given]
        moments = np.array([moment for moment, times in own if len(times)], np.int64)
        newest = np.array([times.max() for _, times in own if len(times)], np.int64)
        return moments, _micros(_of(self.quotes, key)).searchsorted(newest, "right")


def stale_for(due: Numbers, moments: Numbers, reached: Numbers, until: int) -> float:
    """The mean staleness of a key from its first quote until a moment.

    `due` says when each of its quotes comes; at `moments` results were given that reach as many of them as `reached`.

    >>> stale_for(np.array([0, 10]), np.array([4, 20]), np.array([1, 2]), 40)
    1.45
    """
    shown = moments < until
    starts = np.concatenate([[due[0]], moments[shown]])
    ends = np.append(starts[1:], until)
    waits = np.append(due, until)[np.minimum(np.concatenate([[0], reached[shown]]), len(due))]
    late, early = np.maximum(ends - waits, 0).astype(float), np.maximum(starts - waits, 0).astype(float)
    return float((late**2 - early**2).sum() / 2 / (until - due[0]))


def _of(rows: pa.Table, key: Key) -> pa.ChunkedArray:
    venue, symbol = (pc.equal(rows.column(name), value) for name, value in zip(("venue", "symbol"), key, strict=True))
    return rows.filter(pc.and_(venue, symbol)).column("ts")


def _micros(times: pa.ChunkedArray) -> Numbers:
    micros: Numbers = times.cast(pa.int64()).to_numpy()
    return micros
