"""The clock a host lends the kernel: what time it is, and what work costs; and the clock of a replayed stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from millrace.kernel.elements import END_OF_TIME, Microseconds, Times


class Clock(Protocol):
    """Time as an argument: the kernel reads no other clock."""

    def now(self) -> Microseconds:
        """Microseconds since the epoch."""

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Called when an operator takes `rows` rows (0: a punctuation, or an ETS that came by an ETS arc)."""

    def compare(self, node: str, pairs: int) -> None:
        """Called when an operator has compared `pairs` pairs of rows."""


@dataclass(slots=True)
class StandingClock:
    """A clock that a host sets; work costs nothing."""

    time: Microseconds

    def now(self) -> Microseconds:
        """The time it was set to."""
        return self.time

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Nothing."""

    def compare(self, node: str, pairs: int) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class ReplayClock:
    """The time of a replay: it is `origin` when the clock of the host is `began`, and goes on at `speed`.

    >>> clock = ReplayClock(origin=100, began=5_000, speed=2.0)
    >>> clock.at(5_100), clock.when(300), clock.due(np.array([100, 300])).tolist()
    (300, 5100, [5000, 5100])
    """

    origin: Microseconds
    began: Microseconds
    speed: float = 1.0

    def at(self, now: Microseconds) -> Microseconds:
        """The replayed time: what arrives later is not due by the host's clock `now`."""
        time = self.origin + math.floor(min((now - self.began) * self.speed, END_OF_TIME))
        return min(time if self.when(time) <= now else time - 1, END_OF_TIME - 1)

    def all_at(self, clocks: Times) -> Times:
        """The same for many, rounded down."""
        elapsed = np.floor((clocks.astype(np.float64) - self.began) * self.speed)
        found: Times = self.origin + np.clip(elapsed, -(2.0**62), 2.0**61).astype(np.int64)
        return found

    def when(self, time: Microseconds) -> Microseconds:
        """The host's clock when the replayed time has come."""
        return self.began + math.ceil((time - self.origin) / self.speed)

    def due(self, times: Times) -> Times:
        """The same for many times."""
        found: Times = self.began + np.ceil((times - self.origin) / self.speed).astype(np.int64)
        return found
