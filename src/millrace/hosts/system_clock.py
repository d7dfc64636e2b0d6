"""The clock of real time: the machine's, but never back.

Rules:
- A machine's clock may be set back. Bounds, wake-ups and silence are counted in this one, so it never goes back and
  never stands still: it goes on at half speed until the machine's has caught up.
- It is read some twenty times for every row that is pushed alone, so while all is right nothing but the machine's clock
  is looked at.
- Lengths of time are measured by `time.monotonic`, which nobody sets.
"""

from __future__ import annotations

import time
from threading import Event

from millrace.kernel.elements import Microseconds

_NOTICED = 2_000_000
"""Microseconds by which the machine's clock must be set back before `SetBack` says so."""


class SystemClock:
    """The machine's clock; work costs what it costs."""

    def __init__(self) -> None:
        self._shown: Microseconds = 0
        """The last time that was told."""
        self._anchor: tuple[Microseconds, Microseconds] | None = None
        """While the machine's clock is behind: a time that was told, and the monotonic clock then."""

    def now(self, least: Microseconds = 0) -> Microseconds:
        """Microseconds since the epoch, and after `least`."""
        wall = self.wall()
        if self._anchor is None and wall >= self._shown and wall >= least:
            self._shown = wall
        else:
            self._go_on(wall, least)
        return self._shown

    def _go_on(self, wall: Microseconds, least: Microseconds) -> None:
        """Go on at half speed, until the machine's clock is not behind any more."""
        elapsed = self.elapsed()
        shown, at = self._anchor or (self._shown, elapsed)
        going_on = shown + (elapsed - at) // 2
        if going_on < least:
            shown, at, going_on = least, elapsed, least
        self._shown = max(wall, going_on)
        self._anchor = None if wall >= going_on else (shown, at)

    def wall(self) -> Microseconds:
        """What the machine's clock shows."""
        return time.time_ns() // 1_000

    def elapsed(self) -> Microseconds:
        """Microseconds since some moment, whatever the machine's clock is set to."""
        return time.monotonic_ns() // 1_000

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.elapsed() / 1e6

    def wait(self, woken: Event, seconds: float) -> None:
        """Return when so many seconds have passed, or it is woken."""
        woken.wait(seconds)

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Nothing: real work takes real time."""

    def compare(self, node: str, pairs: int) -> None:
        """Nothing."""


class SetBack:
    """Notices that the machine's clock has been set back: what waits for a time of that clock would wait too long."""

    def __init__(self) -> None:
        self._ahead = _ahead()

    def noticed(self) -> bool:
        """True if it has been set back since this object was made, or since this was last true."""
        ahead, before = _ahead(), self._ahead
        back = ahead < before - _NOTICED
        self._ahead = ahead if back else max(ahead, before)
        return back


def _ahead() -> int:
    """By how much the machine's clock is ahead of the monotonic one."""
    return (time.time_ns() - time.monotonic_ns()) // 1_000
