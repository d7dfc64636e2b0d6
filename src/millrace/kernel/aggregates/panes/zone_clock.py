"""The clock of a time zone, as a scale that never goes back: which time it has shown, and when it first did.

Rules:
- When summer time ends the clock repeats an hour. What it *has shown* stays where it was meanwhile.
- When summer time begins the clock skips an hour. It shows the skipped times all at once, at the change.
- So "has shown L at t" is the same as "t is at or after the first instant of L", and both ways are exact.
- Around a time at most one change is looked for: no zone has two within two days.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from millrace.kernel.columns.functions.time_zones import offsets_of
from millrace.kernel.elements import Mask, Times

_NEAR = 26 * 3_600_000_000
"""No clock is set by more than this."""
_CALM = 20 * 86_400_000_000
"""Zones that leave summer time for a while (Ramadan in Morocco) do so for longer."""
_FIRST, _LAST = -62_000_000_000_000_000, 253_000_000_000_000_000
"""The years for which Arrow knows zones, nearly; before and after, the clock goes on evenly."""


class Scale(Protocol):
    """Whole numbers that grow with the time."""

    def numbers(self, times: Times) -> Times:
        """The number that is reached at each time."""
        ...

    def instants(self, numbers: Times) -> Times:
        """The first time at which each number is reached."""
        ...


class ZoneClock:
    """What the clock of a zone shows, in microseconds since its own 1970.

    >>> berlin = ZoneClock("Europe/Berlin")
    >>> midnight = np.array([np.datetime64("2024-03-31T00:00", "us").astype(np.int64)])
    >>> berlin.instants(midnight).astype("datetime64[us]").tolist()
    [datetime.datetime(2024, 3, 30, 23, 0)]
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone

    def numbers(self, times: Times) -> Times:
        """The latest time that the clock has shown up to each time."""
        if not len(times):
            return times
        even = self._even_offset(int(times.min()), int(times.max()))
        if even is not None:
            return times + even
        now, before = self._offsets(times), self._offsets(times - _NEAR)
        shown: Times = times + now
        back: Mask = now < before
        if back.any():
            changes = self._changes(times[back] - _NEAR, times[back])
            shown[back] = np.maximum(shown[back], changes - 1 + before[back])
        return shown

    def instants(self, numbers: Times) -> Times:
        """The first time at which the clock has shown each time."""
        if len(numbers) <= 1:
            # The end of the next window is asked for at every step, and it is nearly always the one of the step before.
            return np.array([_instant(self.zone, number) for number in numbers.tolist()], np.int64)
        return self._instants(numbers)

    def _instants(self, numbers: Times) -> Times:
        near = numbers - self._offsets(numbers)
        before, after = self._offsets(near - _NEAR), self._offsets(near + _NEAR)
        found: Times = numbers - before
        changed: Mask = before != after
        if changed.any():
            changes = self._changes(near[changed] - _NEAR, near[changed] + _NEAR)
            later = np.maximum(changes, (numbers - after)[changed])
            found[changed] = np.where(found[changed] < changes, found[changed], later)
        return found

    def _even_offset(self, first: int, last: int) -> int | None:
        """The one offset of a span of time and of the day before; None where there may be several."""
        if last - first > _CALM:
            return None
        ends = self._offsets(np.array([first - _NEAR, last], np.int64))
        return int(ends[0]) if ends[0] == ends[1] else None

    def _offsets(self, times: Times) -> Times:
        offsets: Times = offsets_of(np.clip(times, _FIRST, _LAST), self.zone)
        return offsets

    def _changes(self, first: Times, last: Times) -> Times:
        """The instant between two times at which the offset becomes that of the later one."""
        wanted = self._offsets(last)
        while bool((last - first > 1).any()):
            middle = first + (last - first) // 2
            is_after = self._offsets(middle) == wanted
            first, last = np.where(is_after, first, middle), np.where(is_after, middle, last)
        return last


@lru_cache(maxsize=1024)
def _instant(zone: str, number: int) -> int:
    return int(ZoneClock(zone)._instants(np.array([number], np.int64))[0])


class MonthCount:
    """The months that have begun by the clock of a zone, each `shift` after midnight of its first day.

    Month 0 is January 1970.
    """

    def __init__(self, clock: ZoneClock, shift: int = 0) -> None:
        self.clock = clock
        self.shift = shift

    def numbers(self, times: Times) -> Times:
        shown = self.clock.numbers(times) - self.shift
        months: Times = shown.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return months

    def instants(self, numbers: Times) -> Times:
        begun: Times = numbers.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
        return self.clock.instants(begun + self.shift)
