"""What closes windows, and what that means for their keys (002 section 6.2): LAZY and EAGER.

Rules:
- Windows close by the stream's bound, or by the key's own rows: one at t closes what ends at or before t + tick.
- A window newer than the delivered one that closes makes the application stale. One newer than the committed one is
  what will make it stale once that one is delivered; LAZY, it makes the key wait.
- LAZY: the newest closed window overwrites the closed one that has waited so far.
- A committed window that closes when all its rows have left is finished.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.aggregates.panes.window_geometry import FAR, WindowGeometry
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.windows.commitments import Commitments
from millrace.kernel.updates.windows.waiting_line import WaitingLine
from millrace.kernel.updates.windows.window_cells import OPEN, WindowCells
from millrace.kernel.updates.windows.window_rows import WindowRows


class WindowClosings:
    """The windows that are still to close; `tick` is None where the stream's bound closes them."""

    def __init__(
        self,
        geometry: WindowGeometry,
        cells: WindowCells,
        rows: WindowRows,
        line: WaitingLine,
        commitments: Commitments,
        *,
        eager: bool,
        tick: int | None,
    ) -> None:
        self.geometry = geometry
        self.eager = eager
        self.tick = tick
        self.bound = NO_BOUND
        self.least = END_OF_TIME
        """No bound below this closes anything."""
        self._cells = cells
        self._rows = rows
        self._line = line
        self._commitments = commitments

    @property
    def wanted(self) -> Microseconds | None:
        """The least bound of the stream that may close something."""
        return self.least if self.tick is None and self.least < FAR else None

    # Windows to come

    def note(self, keys: Integers, times: Times, newest: Times) -> None:
        """Note which windows hold a row first, after the committed, the delivered and the ready one."""
        cells, geometry, oldest = self._cells, self.geometry, self.geometry.oldest_starts(times)
        after = [(cells.ahead, cells.start), (cells.due, cells.delivered)]
        if not self.eager:
            after.append((cells.following, np.maximum(cells.ready, cells.start)))
        for first, base in after:
            later = newest > base[keys]
            ends = np.maximum(oldest, base[keys] + geometry.slide)[later] + geometry.range
            if len(ends):
                np.minimum.at(first, keys[later], ends)
                self.least = min(self.least, int(ends.min()))

    def note_one(self, key: int, time: int, newest: int) -> None:
        """The same for one row."""
        cells, geometry = self._cells, self.geometry
        oldest = newest - (geometry.range - 1 - (time - newest)) // geometry.slide * geometry.slide
        start = cells.start.item(key)
        after = [(cells.ahead, start), (cells.due, cells.delivered.item(key))]
        if not self.eager:
            after.append((cells.following, max(cells.ready.item(key), start)))
        for first, base in after:
            if newest > base:
                end = max(oldest, base + geometry.slide) + geometry.range
                first[key] = min(end, first.item(key))
                self.least = min(self.least, end)

    def closed(self, keys: Integers) -> Mask:
        """Of which keys the committed window has closed; the others are waited for."""
        ends = self._cells.end[keys]
        closed: Mask = ends <= self._bounds(keys)
        if not closed.all():
            self.least = min(self.least, int(ends[~closed].min()))
        return closed

    def _bounds(self, keys: Integers) -> Times:
        """Up to where the windows of each key are closed."""
        if self.tick is None or self.bound == END_OF_TIME:
            return np.full(len(keys), min(self.bound, FAR))
        return self._cells.last[keys] + self.tick

    # Closing

    def close(self, until: Microseconds, moment: Microseconds) -> None:
        """The bound of the stream has advanced; windows that close by it do so at a moment."""
        self.bound = until
        if (self.tick is not None and until != END_OF_TIME) or until < self.least:
            return
        cells, count, bound = self._cells, self._cells.count, min(until, FAR)
        due = np.flatnonzero((cells.due[:count] <= bound) & (cells.application_since[:count] == NONE))
        self._make_stale(due, np.full(len(due), moment))
        ahead = np.flatnonzero((cells.ahead[:count] <= bound) & (cells.ahead_since[:count] == NONE))
        self._pass(ahead, np.full(len(ahead), moment))
        following = np.flatnonzero(cells.following[:count] <= bound)
        self._arrive(following, np.full(len(following), bound))
        self._commitments.finish(np.flatnonzero(self._commitments.idle(slice(count)) & (cells.end[:count] <= bound)))
        self._look_ahead()

    def close_own(self, keys: Integers, reached: Times, arrivals: Times) -> None:
        """The rows of keys close their windows, each at its arrival."""
        cells = self._cells
        due = firsts(keys, np.flatnonzero((reached >= cells.due[keys]) & (cells.application_since[keys] == NONE)))
        self._make_stale(keys[due], arrivals[due])
        ahead = firsts(keys, np.flatnonzero((reached >= cells.ahead[keys]) & (cells.ahead_since[keys] == NONE)))
        self._pass(keys[ahead], arrivals[ahead])
        owners = keys[::-1][firsts(keys[::-1], np.arange(len(keys)))][::-1]
        bounds = self._bounds(owners)
        arrived = cells.following[owners] <= bounds
        self._arrive(owners[arrived], bounds[arrived])
        idle = self._commitments.idle(keys)
        self._commitments.finish(keys[firsts(keys, np.flatnonzero(idle & (cells.end[keys] <= reached)))])

    def close_one(self, key: int, reached: int, arrival: Microseconds) -> None:
        """The row of a key closes its windows, if any."""
        cells, closes = self._cells, False
        for first, since in ((cells.due, cells.application_since), (cells.ahead, cells.ahead_since)):
            closes = closes or (reached >= first.item(key) and since.item(key) == NONE)
        ends = reached >= cells.end.item(key) and cells.opened[key] == OPEN
        if closes or ends or reached >= cells.following.item(key):
            self.close_own(np.array([key]), np.array([reached]), np.array([arrival]))

    def _make_stale(self, keys: Integers, moments: Times) -> None:
        """A window newer than the delivered one has closed."""
        self._cells.application_since[keys] = moments
        self._cells.touch(keys)

    def _pass(self, keys: Integers, moments: Times) -> None:
        """A window newer than the committed one has closed."""
        self._cells.ahead_since[keys] = moments
        self._cells.touch(keys)
        if not self.eager:
            self._line.wait(keys, moments)

    def _arrive(self, keys: Integers, bounds: Times) -> None:
        """LAZY: the newest closed window overwrites the one that is ready."""
        if not len(keys):
            return
        cells, geometry = self._cells, self.geometry
        cells.touch(keys)
        if self._line.policy == "update_fifo":
            self._line.renew(keys)
        held, last = self._rows.buffers.held(keys), geometry.closed_starts(bounds)
        newest = np.full(len(keys), NO_BOUND)
        before = held.times < (last + geometry.range)[held.places]
        np.maximum.at(newest, held.places[before], held.times[before])
        cells.ready[keys] = cells.floor[keys] = np.minimum(last, geometry.newest_starts(newest))
        base = cells.ready[keys] + geometry.slide
        first = np.full(len(keys), END_OF_TIME)
        after = held.times >= base[held.places]
        np.minimum.at(first, held.places[after], held.times[after])
        ends = np.maximum(geometry.oldest_starts(first), base) + geometry.range
        cells.following[keys] = np.where(first == END_OF_TIME, END_OF_TIME, ends)
        self._rows.sweep(keys, held)

    def _look_ahead(self) -> None:
        cells, some = self._cells, slice(self._cells.count)
        ends = [
            cells.due[some][cells.application_since[some] == NONE],
            cells.ahead[some][cells.ahead_since[some] == NONE],
            cells.following[some],
            cells.end[some][self._commitments.idle(some)],
        ]
        self.least = min([int(each.min()) for each in ends if len(each)], default=END_OF_TIME)


def firsts(keys: Integers, places: Integers) -> Integers:
    """The first of some places of each key, in order."""
    if len(places) < 2:
        return places
    return places[np.sort(np.unique(keys[places], return_index=True)[1])]
