"""Windows by the clock or the calendar of a time zone, whose lengths differ."""

from __future__ import annotations

import numpy as np

from millrace.kernel.aggregates.panes.window_geometry import FAR, WindowGeometry
from millrace.kernel.aggregates.panes.zone_clock import MonthCount, Scale, ZoneClock
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds, Times


class ClockWindows(WindowGeometry):
    """Windows that are even on a scale: of what a clock shows, or of months.

    A window begins when its start is first reached on the scale. Panes and windows are numbered on the scale, times are
    turned into its numbers, and bounds of windows back into times.

    >>> days = clock_windows(86_400_000_000, 86_400_000_000, 0, "Europe/Berlin", months=False)
    >>> rows = np.array(["2024-03-30T22:59", "2024-03-30T23:00", "2024-03-31T22:00"], "datetime64[us]").astype(np.int64)
    >>> starts, ends = days.bounds(days.panes(rows))
    >>> ((ends - starts) // 3_600_000_000).tolist()
    [24, 23, 24]
    """

    def __init__(self, scale: Scale, range: int, slide: int, origin: int = 0) -> None:
        super().__init__(range, slide, origin)
        self.scale = scale

    def panes(self, times: Times) -> Integers:
        return super().panes(self.scale.numbers(times))

    def last_instants(self, panes: Integers) -> Times:
        return self.scale.instants((panes + 1) * self.width + self.origin) - 1

    def last_closed(self, until: Microseconds) -> int:
        return int(self.closed_by(np.array([min(max(until, -FAR), FAR)]))[0])

    def closed_by(self, until: Times) -> Integers:
        return super().closed_by(self.scale.numbers(np.clip(until, -FAR, FAR)))

    def usable(self, until: Microseconds) -> Microseconds:
        return until if abs(until) >= FAR else self.end(self.last_closed(until))

    def end(self, window: int) -> Microseconds:
        return int(self.bounds(np.array([window]))[1][0])

    def bounds(self, windows: Integers) -> tuple[Times, Times]:
        starts, ends = super().bounds(windows)
        return self.scale.instants(starts), self.scale.instants(ends)


def clock_windows(range: int, slide: int, origin: int, zone: str, *, months: bool) -> ClockWindows:
    """Windows by the clock of a zone, of `range` microseconds or, with `months`, of `range` months.

    They begin at `origin`, in microseconds.
    """
    clock = ZoneClock(zone)
    if months:
        return ClockWindows(MonthCount(clock, origin), range, slide)
    return ClockWindows(clock, range, slide, origin)
