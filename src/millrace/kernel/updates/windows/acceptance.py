"""Which rows of a key a queue of windows accepts.

Rules:
- A row that is in no window is not accepted.
- Windows that close by the stream's bound: every row from the bound on is accepted, out of order or not, since each
  window that it is in is still open. What a key reports of a window is all that came of it.
- Windows that close by the key's own rows: a row is accepted if it is not older than the newest one of its key, and in
  no window that this one has closed. A row at t closes the windows that end at or before t + tick.
- Of several inputs, the one that gave the newest row of a key goes on as if it were alone. Another one takes over with
  a newer row, or, if it is the source of truth, with one of the same time, before which the others' rows of that time
  make room if none of them has left. Its older rows are not accepted. A row in no window takes over nothing.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.aggregates.panes.window_geometry import FAR, WindowGeometry
from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.elements import Mask, Microseconds, Times
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.update_batch import reached_times
from millrace.kernel.updates.windows.window_cells import WindowCells


class Acceptance:
    """Decides row by row, in whole columns; `tick` is None where the stream's bound closes windows."""

    def __init__(self, geometry: WindowGeometry, tick: int | None, inputs: int) -> None:
        self.geometry = geometry
        self.tick = tick
        self.inputs = inputs

    def accepted(
        self, cells: WindowCells, keys: Integers, times: Times, port: int, bound: Microseconds, yields: Mask | None
    ) -> Mask:
        """Which rows of one input are accepted, the rows before them being known to the cells.

        `yields` says for which rows the newest of their key can make room, if they are of the source of truth.
        """
        mask: Mask = np.ones(len(keys), np.bool_)
        if self.geometry.slide > self.geometry.range:
            mask = self.geometry.oldest_starts(times) <= self.geometry.newest_starts(times)
        if self.inputs > 1:
            mask &= self._from(cells, keys, times, port, yields, mask)
        if self.tick is None:
            return mask & (times >= bound)
        mask[mask] = self._in_order(cells.last[keys[mask]], keys[mask], times[mask])
        return mask

    def _from(
        self, cells: WindowCells, keys: Integers, times: Times, port: int, yields: Mask | None, within: Mask
    ) -> Mask:
        """Where the input is the one that the key listens to; rows that are not `within` a window change nothing."""
        own: Mask = np.isin(cells.port[keys], (NONE, port))
        if own.all():
            return own
        last = cells.last[keys]
        newer = times > last
        if yields is not None:
            newer |= (times == last) & yields
        # From the first row that takes over on, the input has the newest row. A newer one that will be refused for its
        # time makes no difference: so will be all that are not newer, too.
        return own | _from_the_first(newer & within, keys)

    def _in_order(self, last: Times, keys: Integers, times: Times) -> Mask:
        """Which rows are in no window that an earlier row of their key has closed, and not older than it."""
        assert self.tick is not None
        if len(keys) == 1:
            return self._keeps_order(last, times)
        order = np.argsort(keys, kind="stable")
        last, times, begins = last[order], times[order], starts(keys[order])
        newest = np.maximum(_before(times, begins), last)
        mask = self._keeps_order(newest, times)
        # A newer row that is not accepted is in a closed window. As if accepted it would close another one only where
        # windows end less than a tick apart.
        if self.tick > self.geometry.slide and bool((~mask & (times > newest)).any()):
            mask = self._by_leaps(last, times, begins)
        found = np.empty_like(mask)
        found[order] = mask
        return found

    def _keeps_order(self, newest: Times, times: Times) -> Mask:
        keeps: Mask = times >= self._open_from(newest)
        return keeps

    def _open_from(self, newest: Times) -> Times:
        """The least time that is accepted after the newest one of a key."""
        assert self.tick is not None
        closed = self.geometry.closed_starts(np.maximum(newest, -FAR) + self.tick) + self.geometry.range
        return np.where(newest < -FAR, newest, np.maximum(newest, closed))

    def _by_leaps(self, last: Times, times: Times, begins: Mask) -> Mask:
        """The same where each row closes windows beyond itself: from a row accepted to the next that is in none."""
        distinct, reached = reached_times(times, begins)
        firsts = np.flatnonzero(begins)
        ends = np.append(firsts[1:], len(times))
        groups, least = np.arange(len(firsts)), self._open_from(last[firsts])
        found = np.zeros(len(times), np.bool_)
        while len(groups):
            places = np.searchsorted(reached, groups * len(distinct) + np.searchsorted(distinct, least))
            inside = places < ends[groups]
            groups, places = groups[inside], places[inside]
            found[places] = True
            least = self._open_from(times[places])
        return found


def _from_the_first(found: Mask, keys: Integers) -> Mask:
    """Which rows are one of those found, or come after one of their key."""
    owners, places = np.unique(keys, return_inverse=True)
    firsts = np.full(len(owners), len(keys))
    np.minimum.at(firsts, places[found], np.flatnonzero(found))
    since: Mask = np.arange(len(keys)) >= firsts[places]
    return since


def _before(times: Times, begins: Mask) -> Times:
    """The greatest time before each row of its group; the groups follow each other, and begin where it says."""
    distinct, reached = reached_times(times, begins)
    before = np.full(len(times), np.iinfo(np.int64).min)
    before[1:] = distinct[reached[:-1] % max(len(distinct), 1)]
    before[begins] = np.iinfo(np.int64).min
    return before
