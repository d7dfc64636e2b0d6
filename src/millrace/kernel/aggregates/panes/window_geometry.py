"""Which windows a row is in: times to panes, panes to windows, windows to their bounds.

Rules:
- A row falls into one pane, a window is a row of panes: the cost of a row does not depend on how many windows hold it.
- Panes and windows are numbered in order of time, and a later window never ends earlier.
- Times are microseconds or sequence numbers: it makes no difference here.
- Bounds may be as far away as `NO_BOUND` and `END_OF_TIME`; numbers of panes and windows always fit 64 bits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times

Numbers = npt.NDArray[np.int64]

_FAR = 2**62
"""Further from 1970 than any row, with room to count on."""


class Frames:
    """Windows `[start, start + range)`, start a multiple of `slide` from `origin` on."""

    has_bounds = True
    """Whether results say where their window begins and ends."""

    def __init__(self, range: int, slide: int, origin: int = 0) -> None:
        self.range = range
        self.slide = slide
        self.origin = origin
        self.width = math.gcd(range, slide)

    @property
    def tumbling(self) -> bool:
        """Whether a window is a pane."""
        return self.range == self.slide

    @property
    def overlap(self) -> int:
        """How many windows hold a row, at most."""
        return -(-self.range // self.slide)

    def panes(self, times: Times) -> Numbers:
        """The pane of each time."""
        return np.floor_divide(times - self.origin, self.width)

    def covered(self, panes: Numbers) -> Mask | None:
        """Which panes are in some window; None when all are."""
        if self.slide <= self.range:
            return None
        mask: Mask = (panes * self.width) % self.slide < self.range
        return mask

    def last_instants(self, panes: Numbers) -> Times:
        """The last instant of each pane."""
        instants: Times = (panes + 1) * self.width + self.origin - 1
        return instants

    def last_closed(self, until: Microseconds) -> int:
        """The last window that ends at or before a bound."""
        return (_near(until) - self.origin - self.range) // self.slide

    def closed_by(self, until: Times) -> Numbers:
        """The last window that ends at or before each bound."""
        return (np.clip(until, -_FAR, _FAR) - self.origin - self.range) // self.slide

    def usable(self, until: Microseconds) -> Microseconds:
        """The greatest end of a window up to a bound."""
        if until == END_OF_TIME:
            return until
        since = (until - self.origin - self.range) % self.slide
        return max(until - since, NO_BOUND)

    def end(self, window: int) -> Microseconds:
        """Where a window ends."""
        return window * self.slide + self.range + self.origin

    def bounds(self, windows: Numbers) -> tuple[Times, Times]:
        """Where windows begin and end."""
        starts = windows * self.slide + self.origin
        return starts, starts + self.range

    def panes_of(self, window: int) -> tuple[int, int]:
        """The first and the last pane of a window."""
        first = window * (self.slide // self.width)
        return first, first + self.range // self.width - 1

    def first_window(self, pane: int) -> int:
        """The first window that holds a pane."""
        return (pane * self.width - self.range) // self.slide + 1

    def windows_of(self, panes: Numbers) -> tuple[Numbers, Numbers]:
        """The first and the last window that hold each pane."""
        return (panes * self.width - self.range) // self.slide + 1, panes * self.width // self.slide


class Instants(Frames):
    """Every instant is a window of its own, without bounds to be reported."""

    has_bounds = False

    def __init__(self) -> None:
        super().__init__(1, 1)


class Irregular(Frames):
    """Windows that follow each other and differ in length; a window is a pane."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def starts(self, windows: Numbers) -> Times:
        """Where windows begin."""
        raise AssertionError("irregular windows say where they begin")

    def last_instants(self, panes: Numbers) -> Times:
        return self.starts(panes + 1) - 1

    def last_closed(self, until: Microseconds) -> int:
        return int(self.closed_by(np.array([_near(until)]))[0])

    def closed_by(self, until: Times) -> Numbers:
        return self.panes(np.clip(until, -_FAR, _FAR)) - 1

    def usable(self, until: Microseconds) -> Microseconds:
        return until if abs(until) >= _FAR else self.end(self.last_closed(until))

    def end(self, window: int) -> Microseconds:
        return int(self.starts(np.array([window + 1]))[0])

    def bounds(self, windows: Numbers) -> tuple[Times, Times]:
        return self.starts(windows), self.starts(windows + 1)


class Calendar(Irregular):
    """Windows of some months each, from January 1970 on; UTC."""

    def __init__(self, months: int) -> None:
        super().__init__()
        self.months = months

    def panes(self, times: Times) -> Numbers:
        months = times.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return np.floor_divide(months, self.months)

    def starts(self, windows: Numbers) -> Times:
        months = (windows * self.months).astype("datetime64[M]")
        starts: Times = months.astype("datetime64[us]").astype(np.int64)
        return starts


class Divided(Irregular):
    """Windows of `ticks div count`, which rounds towards zero: the one around 1970 is nearly twice as long."""

    def __init__(self, tick: int, count: int) -> None:
        super().__init__()
        self.tick = tick
        self.count = count

    def panes(self, times: Times) -> Numbers:
        ticks = np.floor_divide(times, self.tick)
        return np.sign(ticks) * (np.abs(ticks) // self.count)

    def starts(self, windows: Numbers) -> Times:
        ticks = windows * self.count
        return np.where(windows > 0, ticks, ticks - self.count + 1) * self.tick


def _near(until: Microseconds) -> Microseconds:
    """A bound, brought to where numbers fit; no row is beyond."""
    return min(max(until, -_FAR), _FAR)
