"""What decides that a row is late, from the future, or admitted.

Rules:
- A row below its stream's bound is late: it is counted and returned, never mixed in. With promises for single groups
  it is late below the promise of its own group; with several progressing columns, below the bound of any of them.
- A row without a time is quarantined, and so is a row from the future: further ahead than the future skew. A live
  stream is measured by the clock, any other by its own greatest time, and then only if a skew is declared.
- A quarantined row moves nothing.
- With `LATE BY WINDOW` a row below the bound is late only if no reader's window is open for it (see open_windows.py).
- The decision depends on the rows before a row alone, not on how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Mask, Microseconds, Times, concat
from millrace.kernel.progress.open_windows import OpenWindows
from millrace.kernel.progress.order import plus
from millrace.kernel.progress.quarantine import Aside
from millrace.kernel.progress.time_contract import TimeContract

FUTURE_SKEW: Microseconds = 300_000_000
"""How far a row of a live stream may be ahead of the clock where nothing else is declared."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of some rows: the admitted ones, and the late ones.

    `bounds` are the stream's bounds after each admitted row, up to the next one; the last is the stream's bound now.
    `behind` are rows below the stream's bound that some open window takes, each with that bound in `floors`. `aside`
    are the quarantined rows, by their positions among all that came.
    """

    admitted: Batch
    late: Batch
    bounds: Times | tuple[Microseconds, ...] = ()
    behind: Batch | None = None
    floors: Times | tuple[Microseconds, ...] = ()
    aside: tuple[Aside, ...] = ()

    def through(self, windows: OpenWindows) -> Batch:
        """The rows that an outlet takes whose windows have not closed."""
        if self.behind is None:
            return self.admitted
        taken = self.behind.times >= windows.floors(np.asarray(self.floors))
        return concat([self.behind.where(taken), self.admitted]) if taken.any() else self.admitted


def on_time(times: Times, bound: Microseconds, bounds: Times, floors: Times | None) -> Mask:
    """True where a row is not late.

    `bound` is the stream's bound before the rows, `bounds` its bound after each of them, `floors` what the group of
    each row had promised before it.
    """
    found: Mask = times >= np.concatenate([[bound], bounds[:-1]])
    if floors is not None:
        found &= times >= floors
    return found


def sorted_out(admission: Admission, floors: Times, windows: Sequence[OpenWindows]) -> Admission:
    """The same, with those of the late rows apart that some window takes; `floors` are the bounds before late rows."""
    late = admission.late
    taken = np.logical_or.reduce([late.times >= each.floors(floors) for each in windows])
    if not taken.any():
        return admission
    return replace(admission, late=late.where(~taken), behind=late.where(taken), floors=floors[taken])


def by_lateness(batch: Batch, on_time: Mask, bounds: Times) -> Admission:
    """The rows on time and the late ones."""
    if on_time.all():
        return Admission(batch, batch.slice(0, 0), bounds)
    # What late rows add to the bound belongs to the row before them.
    places = np.flatnonzero(on_time)
    ends = np.append(places[1:] - 1, len(bounds) - 1)[: len(places)]
    return Admission(batch.where(on_time), batch.where(~on_time), bounds[ends])


class FutureGuard:
    """Keeps rows and promises from the future out of one stream; `skew` is None where nothing is guarded."""

    def __init__(self, contract: TimeContract, live: bool) -> None:
        self.live = live
        self.skew: Microseconds | None = None
        if contract.kind == "external" and contract.unit == "time":
            declared = contract.max_future_skew
            self.skew = FUTURE_SKEW if declared is None and live else declared

    def passes(self, time: Microseconds, now: Microseconds) -> bool:
        """True if it is plain from the clock that a row is not from the future."""
        return self.skew is None or (self.live and time <= now + self.skew)

    def passing(self, times: Times, greatest: Microseconds, now: Microseconds) -> Mask | None:
        """True for rows that are not from the future; `greatest` is the greatest time of the stream before them.

        None where nothing is guarded.
        """
        skew = self.skew
        if skew is None or not len(times):
            return None
        if self.live:
            return times <= min(now + skew, END_OF_TIME)
        start = int(times[0]) if greatest == NO_BOUND else greatest
        before = np.maximum(np.concatenate([[start], np.maximum.accumulate(times)[:-1]]), start)
        if (times > plus(before, skew)).any():
            # Only the rows that pass move the limit, so the decision on a row needs the one on the row before it.
            passed = accumulate(
                times.tolist(), lambda last, time: max(last, time) if time <= last + skew else last, initial=start
            )
            before = np.array(list(passed)[:-1], np.int64)
        passing: Mask = times <= plus(before, skew)
        return passing

    def promise_limits(self, greatest: Times, now: Microseconds) -> Times | None:
        """For each row the greatest promise that is believed; `greatest` is the greatest time up to the row."""
        if self.skew is None:
            return None
        if self.live:
            return np.full(len(greatest), min(now + self.skew, END_OF_TIME), np.int64)
        return plus(greatest, self.skew)
