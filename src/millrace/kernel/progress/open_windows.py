"""Rows behind their stream's bound that a window can still take: `LATE BY WINDOW`, as Flink and Spark have it.

Rules:
- Readers of such a stream have an outlet for their windows, which follow each other. Its bound is the greatest end of a
  window up to the stream's bound: all rows from there on are in windows that have not closed.
- So whether a row counts depends on the rows of its stream before it alone, as it does for the stream itself, and no
  row of an outlet is below the outlet's bound.
- A reader without windows takes every row, and is promised nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from millrace.kernel.aggregates.panes.clock_windows import clock_windows
from millrace.kernel.aggregates.panes.window_geometry import CalendarWindows, DividedWindows, WindowGeometry
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds, Times

_WINDOWS = "__windows"
ALWAYS = f"{_WINDOWS}:always"
"""The outlet of readers without windows."""


def outlet_of(kind: str, *numbers: int, zone: str = "") -> str:
    """The name of the outlet for windows: range (length, origin), clock (the same, and a zone), calendar or divided."""
    return ":".join([_WINDOWS, kind, *map(str, numbers), *([zone] if zone else [])])


class OpenWindows:
    """What an outlet takes: the rows whose window has not closed."""

    def __init__(self, geometry: WindowGeometry | None) -> None:
        self.geometry = geometry

    def reached(self, until: Microseconds) -> Microseconds:
        """The bound of the outlet while that of the stream is `until`."""
        if until in (NO_BOUND, END_OF_TIME):
            return until
        return NO_BOUND if self.geometry is None else self.geometry.usable(until)

    def floors(self, bounds: Times) -> Times:
        """The same for each of several bounds of the stream, none of them the end of time."""
        if self.geometry is None:
            return np.full(len(bounds), NO_BOUND, np.int64)
        return np.where(bounds == NO_BOUND, bounds, self.geometry.bounds(self.geometry.closed_by(bounds))[1])


@cache
def open_windows(outlet: str) -> OpenWindows | None:
    """What the outlet of a name takes; None if it is not one of these.

    >>> minutes = open_windows(outlet_of("range", 60, 0))
    >>> (minutes.reached(119), minutes.reached(120), open_windows("other_time"))
    (60, 120, None)
    """
    if not outlet.startswith(f"{_WINDOWS}:"):
        return None
    kind, *numbers = outlet.split(":", 5)[1:]
    if kind == "clock":
        size, start, in_months, zone = numbers
        return OpenWindows(clock_windows(int(size), int(size), int(start), zone, months=in_months == "1"))
    match kind, [int(each) for each in numbers]:
        case "range", [length, origin]:
            return OpenWindows(WindowGeometry(length, length, origin))
        case "calendar", [months]:
            return OpenWindows(CalendarWindows(months))
        case "divided", [tick, count, origin]:
            return OpenWindows(DividedWindows(tick, count, origin))
    return OpenWindows(None)
