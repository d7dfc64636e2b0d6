"""What keeps LINECUTTING from being worse than IN-PLACE: measurement.

Rules:
- A shadow is a queue without rows: it sees the same updates, releases as many keys at the same moments, and keeps them
  in place. So its staleness is what the real queue would have had.
- Time is cut into epochs of some rounds of the line. In each the keys cut in one strength, or not at all, and the ratio
  of the real staleness to the shadow's is what that strength is worth. The best one is used; a stronger and a weaker
  one are tried now and then, those that failed ever more seldom. A trial that goes badly is broken off, and none is
  made where cutting is expected to gain little (linecutting.py), for a trial takes some rounds, half of a short run.
- When cutting ends, the real queue follows the shadow for one round, and then the shadow goes on from the real queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds, Times
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.load import Noted
from millrace.kernel.updates.policies.key_order import Line

STRENGTHS = (1.0, 4.0, 16.0)
"""How much more the time between updates counts than it should for arrivals at random: regular ones are worth more."""
_ROUNDS = 3
"""How many rounds of the line an epoch has; the first is not measured, it belongs to what was before."""
_LEAST = 128
"""How many keys leave in an epoch at least; and as many as there are keys: where few wait, it takes all to tell."""
_GAIN = 0.99
"""Cutting must be better than not cutting by this."""
_BAD = 1.05
"""A trial as bad as this is broken off."""
_BEARABLE = 1.005
"""While nothing is known to help, a strength is tried only if the one below it did no more harm than this."""
_PAUSE = 4
"""How many epochs a strength that failed is not tried again, at first."""
_MOST_FAILURES = 8
_UNKNOWN = 1.0


class Area(Noted):
    """The integral over time of the staleness of a changing set of keys, all together."""

    def __init__(self) -> None:
        self.keys = 0
        self.sum = 0
        self.at: Microseconds = NONE
        self.area = 0.0

    def advance(self, now: Microseconds) -> None:
        """Bring the integral up to now."""
        if now > self.at:
            # Whole numbers until the end: these are small differences of large ones.
            self.area += (now - self.at) * (self.keys * (now + self.at) - 2 * self.sum) / 2
            self.at = now

    def enter(self, since: Times) -> None:
        """Keys are stale, since the moments given."""
        if not len(since):
            return
        if not self.keys:
            self.at = max(self.at, int(since[0]))
        base = self.at
        lengths = (base - since).astype(np.float64)
        self.area += float((lengths * lengths).sum()) / 2
        self.keys += len(since)
        self.sum += int((since - base).sum()) + base * len(since)

    def enter_one(self, since: Microseconds) -> None:
        """One key is stale, since the moment given."""
        if not self.keys:
            self.at = max(self.at, since)
        self.area += (self.at - since) ** 2 / 2
        self.keys += 1
        self.sum += since

    def leave(self, since: Times) -> None:
        """Keys are no longer stale; to be called at the moment it was advanced to."""
        base = self.at
        self.keys -= len(since)
        self.sum -= int((since - base).sum()) + base * len(since)


class Shadow:
    """The same keys in place, without their rows."""

    def __init__(self, cells: KeyCells) -> None:
        self._cells = cells
        cells.add("shadow_place")
        cells.add("shadow_since")
        self._line = Line(cells, "shadow_place")
        self._next = 0
        self.area = Area()

    def __len__(self) -> int:
        return self.area.keys

    def enter(self, keys: Integers, arrived: Times) -> None:
        """Rows have come for these keys, each named once, in this order."""
        column = self._cells["shadow_place"]
        fresh = column[keys] == NONE
        keys, arrived = keys[fresh], arrived[fresh]
        places = np.arange(self._next, self._next + len(keys))
        self._next += len(keys)
        column[keys] = places
        self._cells["shadow_since"][keys] = arrived
        self._cells.touch(keys)
        self._line.push(keys, places)
        self.area.enter(arrived)

    def enter_one(self, key: int, arrived: Microseconds) -> None:
        """A row has come for a key."""
        column = self._cells["shadow_place"]
        if column[key] == NONE:
            column[key] = self._next
            self._cells["shadow_since"][key] = arrived
            self._line.push_one(key, self._next)
            self._next += 1
            self.area.enter_one(arrived)

    def take(self, count: int) -> Integers:
        """Release keys."""
        keys = self._line.pop(count)
        self._forget(keys)
        return keys

    def clear(self) -> None:
        """Release all keys."""
        self._forget(self._line.pop(len(self)))

    def _forget(self, keys: Integers) -> None:
        self.area.leave(self._cells["shadow_since"][keys])
        self._cells["shadow_place"][keys] = NONE
        self._cells.touch(keys)

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the cells."""
        return {"next": self._next, "area": self.area.note()}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the cells restored."""
        self._next = note["next"]
        self.area.restore(note["area"])
        places = self._cells["shadow_place"][: self._cells.count]
        keys = np.flatnonzero(places != NONE)
        keys = keys[np.argsort(places[keys])]
        self._line.push(keys, places[keys])


class Guard(Noted):
    """Which strength is worth using, by what each was measured to be worth."""

    def __init__(self) -> None:
        self.at = -1
        """The strength in use, by its number; -1: no key cuts."""
        self.follow = 0
        """How many more keys leave in the order of the shadow."""
        self._best = -1
        self._worth = [_UNKNOWN] * len(STRENGTHS)
        self._failures = [0] * len(STRENGTHS)
        self._due = [1] * len(STRENGTHS)
        """The epoch in which each may be tried."""
        self._epoch = 0
        self._left = _LEAST
        self._unmeasured = 0
        self._unsure = _LEAST
        """How many keys must have left before a trial can be broken off."""
        self._from = [0.0, 0.0]
        """The areas of the real queue and the shadow where measurement began."""

    @property
    def strength(self) -> float:
        """How strongly the time between updates counts; 0: not at all."""
        return STRENGTHS[self.at] if self.at >= 0 else 0.0

    def count(
        self, keys: int, waiting: int, all_keys: int, real: float, shadow: float, worthwhile: Callable[[], bool]
    ) -> bool:
        """Count keys that leave, with the areas so far; True if cutting has ended with it.

        `worthwhile` is True if cutting is expected to help; it is asked at the end of an epoch.
        """
        self._left -= keys
        self._unsure -= keys
        if self._unmeasured > 0:
            self._unmeasured -= keys
            if self._unmeasured <= 0:
                self._from = [real, shadow]
            return False
        ratio = self._ratio(real, shadow)
        if self._left > 0 and (self.at < 0 or self._unsure > 0 or ratio < _BAD):
            return False
        cut = self.at >= 0
        self._judge(ratio)
        self._epoch += 1
        self.at = self._best if self._best < 0 and not worthwhile() else self._choice()
        self._left = max(_ROUNDS * waiting, all_keys, _LEAST)
        self._unmeasured = self._left // _ROUNDS
        self._unsure = self._left // 2
        self._from = [real, shadow]
        ended = cut and self.at < 0
        self.follow = waiting if ended else 0
        return ended

    def _ratio(self, real: float, shadow: float) -> float:
        gained = shadow - self._from[1]
        return (real - self._from[0]) / gained if gained > 0 else 1.0

    def _judge(self, ratio: float) -> None:
        """Remember what the strength in use was worth, and find the best one."""
        at = self.at
        if at < 0:
            return
        known = self._worth[at]
        self._worth[at] = ratio if known == _UNKNOWN or ratio > _BAD else (known + ratio) / 2
        best = min(range(len(STRENGTHS)), key=self._worth.__getitem__)
        best = best if self._worth[best] < _GAIN else -1
        if best != at:
            self._failures[at] = min(self._failures[at] + (3 if ratio > _BAD else 1), _MOST_FAILURES)
            self._due[at] = self._epoch + _PAUSE * 2 ** self._failures[at]
        elif self._best != at:
            # Around a new best one everything is worth a look.
            self._failures = [0] * len(STRENGTHS)
            self._due = [self._epoch + 1] * len(STRENGTHS)
        self._best = best

    def _choice(self) -> int:
        """The strength of the next epoch: a neighbour of the best one if it may be tried, else the best one."""
        tries = (self._best + 1, self._best - 1) if self._best >= 0 else range(self._bearable())
        for each in tries:
            if 0 <= each < len(STRENGTHS) and self._due[each] <= self._epoch:
                return each
        return self._best

    def _bearable(self) -> int:
        """How many strengths may be tried while none is known to help: those above one that did harm may not."""
        for at, worth in enumerate(self._worth[:-1]):
            if worth == _UNKNOWN or worth > _BEARABLE:
                return at + 1
        return len(STRENGTHS)
