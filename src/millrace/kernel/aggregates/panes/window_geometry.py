"""Which windows a row is in: times to panes, panes to windows, windows to their bounds.

Rules:
- A row falls into one pane, and a window is a sequence of panes: the cost of a row does not depend on how many windows
  hold it.
- Panes and windows are numbered in order of time, and a later window never ends earlier.
- Times are microseconds or sequence numbers: it makes no difference here.
- Bounds may be as far away as `NO_BOUND` and `END_OF_TIME`; numbers of panes and windows always fit 64 bits.
"""

from __future__ import annotations

import math

import numpy as np

from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times

FAR = 2**62
"""Further from 1970 than any row, and far from the ends of 64 bits."""


class WindowGeometry:
    """Windows `[start, start + range)`, start a multiple of `slide` from `origin` on."""

    has_bounds = True
    """True if results say where their window begins and ends."""

    def __init__(self, range: int, slide: int, origin: int = 0) -> None:
        self.range = range
        self.slide = slide
        self.origin = origin
        self.width = math.gcd(range, slide)

    @property
    def tumbling(self) -> bool:
        """True if a window is a pane."""
        return self.range == self.slide

    @property
    def overlap(self) -> int:
        """How many windows hold a row, at most."""
        return -(-self.range // self.slide)

    def panes(self, times: Times) -> Integers:
        """The pane of each time."""
        return np.floor_divide(times - self.origin, self.width)

    def covered(self, panes: Integers) -> Mask | None:
        """Which panes are in some window; None when all are."""
        if self.slide <= self.range:
            return None
        mask: Mask = (panes * self.width) % self.slide < self.range
        return mask

    def last_instants(self, panes: Integers) -> Times:
        """The last instant of each pane."""
        instants: Times = (panes + 1) * self.width + self.origin - 1
        return instants

    def last_closed(self, until: Microseconds) -> int:
        """The last window that ends at or before a bound."""
        return (_near(until) - self.origin - self.range) // self.slide

    def closed_by(self, until: Times) -> Integers:
        """The last window that ends at or before each bound."""
        return (np.clip(until, -FAR, FAR) - self.origin - self.range) // self.slide

    def newest_starts(self, times: Times) -> Times:
        """Where the newest window starts that holds each time, if one does.

        >>> windows = WindowGeometry(range=10, slide=5)
        >>> [each(np.array([12])).tolist() for each in (windows.newest_starts, windows.oldest_starts)]
        [[10], [5]]
        """
        starts: Times = times - (times - self.origin) % self.slide
        return starts

    def oldest_starts(self, times: Times) -> Times:
        """Where the oldest window starts that holds each time, if one does."""
        return self.newest_starts(times - self.range) + self.slide

    def closed_starts(self, until: Times) -> Times:
        """Where the newest window starts that ends at or before each bound."""
        return self.newest_starts(np.clip(until, -FAR, FAR) - self.range)

    def usable(self, until: Microseconds) -> Microseconds:
        """The greatest end of a window up to a bound."""
        if until == END_OF_TIME:
            return until
        since = (until - self.origin - self.range) % self.slide
        return max(until - since, NO_BOUND)

    def end(self, window: int) -> Microseconds:
        """Where a window ends."""
        return window * self.slide + self.range + self.origin

    def bounds(self, windows: Integers) -> tuple[Times, Times]:
        """Where windows begin and end."""
        starts = windows * self.slide + self.origin
        return starts, starts + self.range

    def panes_of(self, window: int) -> tuple[int, int]:
        """The first and the last pane of a window."""
        first = window * (self.slide // self.width)
        return first, first + self.range // self.width - 1

    def pane_spans(self, windows: Integers) -> tuple[Integers, Integers]:
        """The first pane of each window, and the first after it."""
        starts = windows * (self.slide // self.width)
        return starts, starts + self.range // self.width

    def first_window(self, pane: int) -> int:
        """The first window that holds a pane."""
        return (pane * self.width - self.range) // self.slide + 1

    def windows_of(self, panes: Integers) -> tuple[Integers, Integers]:
        """The first and the last window that hold each pane."""
        return (panes * self.width - self.range) // self.slide + 1, panes * self.width // self.slide

    def windows_holding(self, panes: Integers, first: int, last: int) -> Integers:
        """The windows from `first` to `last` that hold one of some panes; both in order."""
        lowest, highest = self.windows_of(panes)
        lowest, highest = np.maximum(lowest, first), np.minimum(highest, last)
        # Panes are in order, so a pane brings only the windows after those of the pane before it.
        lowest[1:] = np.maximum(lowest[1:], highest[:-1] + 1)
        return ranges(lowest, np.maximum(highest - lowest + 1, 0))


class Instants(WindowGeometry):
    """Every instant is a window of its own, without bounds to be reported."""

    has_bounds = False

    def __init__(self) -> None:
        super().__init__(1, 1)


class IrregularWindows(WindowGeometry):
    """Windows that follow each other and differ in length; a window is a pane."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def starts(self, windows: Integers) -> Times:
        """Where windows begin."""
        raise AssertionError("irregular windows say where they begin")

    def last_instants(self, panes: Integers) -> Times:
        return self.starts(panes + 1) - 1

    def last_closed(self, until: Microseconds) -> int:
        return int(self.closed_by(np.array([_near(until)]))[0])

    def closed_by(self, until: Times) -> Integers:
        return self.panes(np.clip(until, -FAR, FAR)) - 1

    def usable(self, until: Microseconds) -> Microseconds:
        return until if abs(until) >= FAR else self.end(self.last_closed(until))

    def end(self, window: int) -> Microseconds:
        return int(self.starts(np.array([window + 1]))[0])

    def bounds(self, windows: Integers) -> tuple[Times, Times]:
        return self.starts(windows), self.starts(windows + 1)


class CalendarWindows(IrregularWindows):
    """Windows of some months each, from January 1970 on; UTC."""

    def __init__(self, months: int) -> None:
        super().__init__()
        self.months = months

    def panes(self, times: Times) -> Integers:
        months = times.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return np.floor_divide(months, self.months)

    def starts(self, windows: Integers) -> Times:
        months = (windows * self.months).astype("datetime64[M]")
        starts: Times = months.astype("datetime64[us]").astype(np.int64)
        return starts


class DividedWindows(IrregularWindows):
    """Windows of `ticks div count`, which rounds towards zero: the one around the origin is nearly twice as long."""

    def __init__(self, tick: int, count: int, origin: Microseconds = 0) -> None:
        super().__init__()
        self.tick = tick
        self.count = count
        self.origin = origin

    def panes(self, times: Times) -> Integers:
        ticks = np.floor_divide(times - self.origin, self.tick)
        return np.sign(ticks) * (np.abs(ticks) // self.count)

    def starts(self, windows: Integers) -> Times:
        ticks = windows * self.count
        return np.where(windows > 0, ticks, ticks - self.count + 1) * self.tick + self.origin


def _near(until: Microseconds) -> Microseconds:
    """A bound, limited to where numbers fit; no row is beyond."""
    return min(max(until, -FAR), FAR)
