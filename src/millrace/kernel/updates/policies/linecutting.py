"""LINECUTTING that measures what it does: keys wait the shorter the more seldom they are updated.

Let a key that is updated at random with rate u be released each time it has waited for W. Its mean staleness is then
(W² / 2) / (W + 1/u), and it takes r = 1 / (W + 1/u) of the service. A little more service gains most where
W² / 2 + W/u is greatest: that is the index by which keys are served. Of keys that are updated alike the one that has
waited longest is first, which is IN-PLACE; one that is updated seldom passes the others soon after it came, since to
let it wait saves no service; none starves, because the index grows without end. 002 lets slow keys cut by a threshold
instead, which the printed rule (`LinecuttingAsPrinted`) sets so high that the others may never be served.

How much 1/u counts is a `strength` that a `Guard` chooses by measurement, down to 0, which is IN-PLACE.
Keys stand in one line in place, and in a line for each class of rates, half a power of two wide; the index is compared
between the heads of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask, Microseconds
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.key_order import KeyOrder, Lengths, Line
from millrace.kernel.updates.policies.linecutting_guard import Area, Guard, Shadow
from millrace.kernel.updates.update_batch import UpdateBatch

_LEAST = 2.0**-4
_HALF = 0.5**0.5
_WORTHWHILE = 0.95
"""Cutting is tried where staleness is expected to become this part of what it is in place, or less."""
_KNOWN = 8
"""How many updates of a key there must have been on average before their rates are known."""
_LITTLE, _LONG = 0.985, 100
"""Once a run has had so many updates of a key on average, what a trial costs is little, and so may be its gain."""
_COLUMNS = ("line", "shadow_place", "shadow_since")
_HALVINGS = 50
_FAR = 1e6
"""How often the span that a root is in is halved, and how far it reaches."""


class Linecutting(KeyOrder):
    """Keys by their waiting time and how seldom they are updated, as far as that is measured to help."""

    wants_intervals = True

    def __init__(self, cells: KeyCells) -> None:
        super().__init__(cells)
        cells.add("line", 0)
        self._lines: dict[int, Line] = {}
        self._hopeful = False
        self._served = 0
        self._looked: Microseconds | None = None
        """True if cutting was expected to help when last looked at; how many have left since, and when that was."""
        self._real = Area()
        self._shadow = Shadow(cells)
        self._guard = Guard()

    # Rows

    def enter(self, updates: UpdateBatch, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        assert intervals is not None
        first = np.sort(updates.first[fresh])
        keys = updates.keys[first]
        self._stand(keys, classes(intervals[first]))
        seen = np.sort(updates.first)
        self._shadow.enter(updates.keys[seen], updates.arrived[seen])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        if fresh:
            mantissa, exponent = math.frexp(max(interval, _LEAST))
            line = 2 * exponent + (mantissa >= _HALF)
            self._real.enter_one(int(self._cells["queue_since"][key]))
            self._cells["line"][key] = line
            self._lines.setdefault(line, Line(self._cells)).push_one(key, self._next)
            self._push_one(key)
        self._shadow.enter_one(key, arrived)

    def _stand(self, keys: Integers, lines: Integers) -> None:
        """Put keys at the end of the line, and of the lines of their classes."""
        if not len(keys):
            return
        self._real.enter(self._cells["queue_since"][keys])
        places = self._push(keys)
        self._cells["line"][keys] = lines
        self._sort_in(keys, lines, places)

    def _sort_in(self, keys: Integers, lines: Integers, places: Integers) -> None:
        for line in np.unique(lines).tolist():
            own = lines == line
            self._lines.setdefault(line, Line(self._cells)).push(keys[own], places[own])

    def take(self, count: int, now: Microseconds, cost: float | None) -> Integers:
        count = min(count, self._waiting)
        self._real.advance(now)
        self._shadow.area.advance(now)
        shadow = self._shadow.take(count)
        keys = self._chosen(count, now, shadow)
        self._real.leave(self._cells["queue_since"][keys])
        self._left(keys)
        self._served += count
        self._looked = now if self._looked is None else self._looked
        following = self._guard.follow > 0
        self._guard.follow -= count if following else 0
        areas, all_keys = (self._real.area, self._shadow.area.area), self._cells.count
        ended = self._guard.count(count, self._waiting, all_keys, *areas, lambda: self._worthwhile(now))
        if not self._waiting or (following and self._guard.follow <= 0 and not ended):
            self._align()
        return keys

    def _chosen(self, count: int, now: Microseconds, shadow: Integers) -> Integers:
        if self._guard.strength:
            return self._best_one(now) if count == 1 else self._best(count, now)
        if self._guard.follow <= 0:
            return self._line.pop(count)
        followed = shadow[self._cells["place"][shadow] != NONE]
        self._cells["place"][followed] = NONE
        return np.concatenate([followed, self._line.pop(count - len(followed))])

    def _best_one(self, now: Microseconds) -> Integers:
        """The key with the greatest index, as `_best` finds several; with arrays a row alone would cost half more."""
        since, strength = self._cells["queue_since"], self._guard.strength
        best, found = -1.0, -1
        for line in sorted(self._lines):
            key = self._lines[line].first()
            if key >= 0:
                waited = float(now - since[key]) + 1
                index = waited * (waited + 2 * strength * 2.0 ** (line / 2 - 0.75))
                if index > best:
                    best, found = index, key
            else:
                del self._lines[line]
        return np.array([found])

    def _best(self, count: int, now: Microseconds) -> Integers:
        """The keys with the greatest indices, in order; none before one that stands before it in its line."""
        found, indices = [], []
        for line in sorted(self._lines):
            keys = self._lines[line].peek(count)
            waited = (now - self._cells["queue_since"][keys]).astype(np.float64) + 1
            index = waited * (waited + 2 * self._guard.strength * 2.0 ** (line / 2 - 0.75))
            found.append(keys)
            indices.append(np.minimum.accumulate(index))
        order = np.argsort(-np.concatenate(indices), kind="stable")[:count]
        return np.concatenate(found)[order]

    def _worthwhile(self, now: Microseconds) -> bool:
        """True if cutting is expected to help; looked at when a quarter of the keys has left."""
        cells, count = self._cells, self._cells.count
        if self._looked is not None and self._served > count // 4 and now > self._looked:
            lines, keys = np.unique(cells["line"][:count], return_counts=True)
            gain = cutting_gain(2.0 ** (lines / 2 - 0.75), keys.astype(np.float64), self._served / (now - self._looked))
            updates = int(cells["updates"][:count].sum())
            self._hopeful = updates >= _KNOWN * count and gain < (_WORTHWHILE if updates < _LONG * count else _LITTLE)
            self._served, self._looked = 0, now
        return self._hopeful

    def _align(self) -> None:
        """Let the shadow go on from the keys that wait."""
        keys = self._line.all()
        self._shadow.clear()
        self._shadow.enter(keys, self._cells["queue_since"][keys])

    # All keys

    def adopt(self, keys: Integers) -> None:
        self._stand(keys, self._cells["line"][keys])
        self._align()

    def close(self) -> None:
        for name in _COLUMNS:
            self._cells.drop(name)

    def note(self) -> dict[str, Any]:
        notes = {"real": self._real.note(), "shadow": self._shadow.note(), "guard": self._guard.note()}
        return {**super().note(), **notes, "hopeful": [self._hopeful, self._served, self._looked]}

    def restore(self, note: Mapping[str, Any]) -> None:
        super().restore(note)
        keys = self._line.all()
        self._sort_in(keys, self._cells["line"][keys], self._cells["place"][keys])
        self._hopeful, self._served, self._looked = note["hopeful"]
        self._real.restore(note["real"])
        self._shadow.restore(note["shadow"])
        self._guard.restore(note["guard"])


def classes(intervals: Lengths) -> Integers:
    """The class of each mean time between updates: half a power of two, found without rounding."""
    mantissas, exponents = np.frexp(np.maximum(intervals, _LEAST))
    found: Integers = 2 * exponents.astype(np.int64) + (mantissas >= _HALF)
    return found


def cutting_gain(intervals: Lengths, keys: Lengths, served: float) -> float:
    """The least staleness that cutting can reach over that of IN-PLACE, at most 1.

    `keys` says how many keys are updated at each of the mean `intervals`; `served` keys leave in a unit of time. In
    place all keys wait for the same W; at best W² / 2 + W/u is the same for all. Either is found from the service.

    >>> alike, seldom = np.array([2.0]), np.array([2.0, 200.0])
    >>> round(cutting_gain(alike, np.array([10.0]), 1.0), 3), round(cutting_gain(seldom, np.array([2.0, 8.0]), 0.2), 3)
    (1.0, 0.823)
    """
    if float((keys / intervals).sum()) <= served:
        return 1.0
    most = _FAR * float(keys.sum()) / served
    wait = _root(lambda wait: float((keys / (wait + intervals)).sum()) - served, most)
    price = _root(lambda price: float((keys / np.sqrt(intervals**2 + 2 * price)).sum()) - served, most**2)
    waits = np.sqrt(intervals**2 + 2 * price) - intervals
    in_place, best = (float((keys * (each**2 / 2) / (each + intervals)).sum()) for each in (wait, waits))
    return best / in_place if in_place > 0 else 1.0


def _root(falls: Callable[[float], float], high: float) -> float:
    """Where a function that falls is 0, from 0 to `high`, to a few parts of a million."""
    low = high / _FAR**3
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return low
