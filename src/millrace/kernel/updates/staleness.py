"""Staleness: for how long the answer of a key has been behind its updates (002 sections 3.3 and 5.1, papers 20).

Rules:
- Queue staleness of a key is the time since the first accepted row that is newer than the last one let go, as long as
  one waits; application staleness the time since the first one that is newer than what has been delivered. That row
  counts even if it has been overwritten or shed since.
- A row is delivered when all work on it is done, whatever became of it there; or later, if that is when others can see
  its result. Until then a key is stale since another moment for the application than for the queue, and only then: so
  which keys are under way need not be saved.
- The average of a key is its integral over time, by the time since its first arrival; that of a queue is the mean over
  its keys.

While a key is stale since `s` its staleness at t is t - s, and the integral up to t grows to (t - s)² / 2. So an area
is kept of what ended alone: when `s` moves to `r` at time t, it grows by ((t - s)² - (t - r)²) / 2, and what goes on is
added when somebody asks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millrace.kernel.elements import Microseconds, Times
from millrace.kernel.updates.policies.key_cells import NONE, Cells, Numbers

Lengths = npt.NDArray[np.float64]


class Staleness:
    """How stale the keys of a queue are; in columns of its cells."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        cells.add("first")
        cells.add("queue_since")
        cells.add("application_since")
        cells.add("waits", 0)
        cells.add("left")
        cells.add("delivered")
        cells.add("queue_area", 0, np.float64)
        cells.add("application_area", 0, np.float64)
        self._under_way: list[Numbers] = []

    # What happens

    def arrive(self, keys: Numbers, arrived: Times) -> None:
        """Accepted rows have come: their keys, each once, and when the first one of each arrived."""
        cells = self._cells
        _fill(cells["first"], keys, arrived)
        _fill(cells["queue_since"], keys, arrived)
        keys, arrived = _fill(cells["application_since"], keys, arrived)
        # A row may have arrived while the one before it was worked on, and enter only now.
        self._not_before("application_area", keys, arrived, cells["delivered"][keys])

    def wait(self, keys: Numbers, counts: Numbers | int, arrived: Times) -> None:
        """Accepted rows wait from now on: so many more of each key, the first of them arrived then."""
        waits, since = self._cells["waits"], self._cells["queue_since"]
        fresh = waits[keys] == 0
        waits[keys] += counts
        if not fresh.all():
            keys, arrived = keys[fresh], arrived[fresh]
        stale = since[keys]
        # What was shed before this row came makes the key staler than the row's own wait, from its arrival on.
        self._not_before("queue_area", keys, stale, np.maximum(arrived, self._cells["left"][keys]))

    def leave(self, keys: Numbers, counts: Numbers | int, newer: Times | None, now: Microseconds) -> None:
        """Accepted rows are let go: so many of each key, the last of them older than one that arrived at `newer`."""
        cells = self._cells
        waits, since = cells["waits"], cells["queue_since"]
        self._under_way.append(keys)
        cells["left"][keys] = now
        before = since[keys]
        waits[keys] -= counts
        gained = _area(before, now)
        if newer is None:
            since[keys] = NONE
        else:
            since[keys] = newer
            stay = waits[keys] > 0
            gained -= np.where(stay, _area(np.where(stay, newer, now), now), 0)
        cells["queue_area"][keys] += gained

    def arrive_one(self, key: int, arrived: Microseconds) -> None:
        """One accepted row has come."""
        cells = self._cells
        if cells["first"][key] == NONE:
            cells["first"][key] = arrived
        if cells["queue_since"][key] == NONE:
            cells["queue_since"][key] = arrived
        if cells["application_since"][key] == NONE:
            cells["application_since"][key] = arrived
            late = max(int(cells["delivered"][key]) - arrived, 0)
            if late:
                cells["application_area"][key] -= late * late / 2

    def wait_one(self, key: int, arrived: Microseconds) -> None:
        """One accepted row waits from now on."""
        cells = self._cells
        cells["waits"][key] += 1
        if cells["waits"][key] == 1:
            since = int(cells["queue_since"][key])
            late = max(arrived, int(cells["left"][key])) - since
            if late > 0:
                cells["queue_area"][key] -= late * late / 2

    def leave_one(self, key: int, newer: Microseconds, now: Microseconds) -> None:
        """One accepted row is let go, older than one that arrived at `newer`, or than none."""
        cells = self._cells
        self._under_way.append(np.array([key]))
        cells["left"][key] = now
        cells["waits"][key] -= 1
        since = int(cells["queue_since"][key])
        area = (now - since) ** 2 / 2
        if cells["waits"][key]:
            area -= (now - newer) ** 2 / 2
        cells["queue_since"][key] = newer
        cells["queue_area"][key] += area

    def drop(self, keys: Numbers) -> None:
        """Of the waiting rows of each key all but one are gone."""
        self._cells["waits"][keys] = 1

    def rest(self, now: Microseconds) -> None:
        """All that has been let go is delivered."""
        if not self._under_way:
            return
        if len(self._under_way) == 1 and len(self._under_way[0]) == 1:
            self._rest_one(int(self._under_way.pop()[0]), now)
            return
        keys = self._under_way[0] if len(self._under_way) == 1 else np.unique(np.concatenate(self._under_way))
        self._under_way.clear()
        cells = self._cells
        cells.touch(keys)
        cells["delivered"][keys] = now
        before, after = cells["application_since"][keys], cells["queue_since"][keys]
        stay = after != NONE
        gained = _area(before, now) - np.where(stay, _area(np.where(stay, after, now), now), 0)
        cells["application_area"][keys] += gained
        cells["application_since"][keys] = after

    def _rest_one(self, key: int, now: Microseconds) -> None:
        cells = self._cells
        cells.touch(key)
        cells["delivered"][key] = now
        before, after = int(cells["application_since"][key]), int(cells["queue_since"][key])
        area = (now - before) ** 2 / 2
        if after != NONE:
            area -= (now - after) ** 2 / 2
        cells["application_since"][key] = after
        cells["application_area"][key] += area

    def _not_before(self, area: str, keys: Numbers, since: Times, begins: Times) -> None:
        """What is stale since a moment counts only from a later one on."""
        early = begins > since
        if early.any():
            self._cells[area][keys[early]] -= _area(since[early], begins[early])

    # What is known

    def present(self, now: Microseconds, count: int, *, delivered: bool = False) -> tuple[Lengths, Lengths]:
        """The queue and application staleness of the first `count` keys; also as if all let go had been delivered."""
        waits, left = self._cells["waits"][:count] > 0, self._cells["queue_since"][:count]
        application = left if delivered else self._cells["application_since"][:count]
        return _lengths(np.where(waits, left, NONE), now), _lengths(application, now)

    def means(self, now: Microseconds, count: int) -> tuple[Lengths, Lengths]:
        """The average queue and application staleness of the first `count` keys."""
        first = self._cells["first"][:count]
        lived = np.where(first == NONE, 0, now - np.where(first == NONE, now, first)).astype(np.float64)
        means = []
        for area, present in zip(("queue_area", "application_area"), self.present(now, count), strict=True):
            whole = self._cells[area][:count] + present * present / 2
            means.append(np.divide(whole, lived, out=np.zeros(count), where=lived > 0))
        return means[0], means[1]

    # Saving: all else is in the cells

    def restore(self) -> None:
        """Go on from restored cells."""
        count = self._cells.count
        queue, application = self._cells["queue_since"][:count], self._cells["application_since"][:count]
        under_way = np.flatnonzero(application != queue)
        self._under_way = [under_way] if len(under_way) else []


def _fill(column: Times, keys: Numbers, arrived: Times) -> tuple[Numbers, Times]:
    """Put times into the cells that have none; these cells, and the times."""
    empty = column[keys] == NONE
    if not empty.all():
        keys, arrived = keys[empty], arrived[empty]
    column[keys] = arrived
    return keys, arrived


def _lengths(since: Times, now: Microseconds) -> Lengths:
    """For how long each is stale; 0 where there is no moment since which it is."""
    lengths: Lengths = (now - np.where(since == NONE, now, since)).astype(np.float64)
    return lengths


def _area(since: Times, until: Times | Microseconds) -> Lengths:
    """The integral of what began at `since`, up to `until`."""
    lengths = (until - since).astype(np.float64)
    area: Lengths = lengths * lengths / 2
    return area
