"""Windows by where they start: which of them hold a time, and which a bound has closed."""

from __future__ import annotations

import numpy as np

from millrace.kernel.elements import Times
from millrace.kernel.updates.windows.window_cells import FAR


class Spans:
    """Windows `[start, start + range)`, start a multiple of `slide` from `origin` on.

    >>> spans = Spans(range=10, slide=5)
    >>> (
    ...     spans.oldest(np.array([12])).tolist(),
    ...     spans.newest(np.array([12])).tolist(),
    ...     spans.closed(np.array([19])).tolist(),
    ... )
    ([5], [10], [5])
    """

    def __init__(self, range: int, slide: int, origin: int = 0) -> None:
        self.range = range
        self.slide = slide
        self.origin = origin

    @property
    def overlap(self) -> int:
        """How many windows hold a row, at most."""
        return -(-self.range // self.slide)

    def newest(self, times: Times) -> Times:
        """Where the newest window starts that holds each time, if one does."""
        starts: Times = times - (times - self.origin) % self.slide
        return starts

    def oldest(self, times: Times) -> Times:
        """Where the oldest window starts that holds each time, if one does."""
        return self.newest(times - self.range) + self.slide

    def closed(self, bounds: Times) -> Times:
        """Where the newest window starts that ends at or before each bound."""
        return self.newest(np.clip(bounds, -FAR, FAR) - self.range)
