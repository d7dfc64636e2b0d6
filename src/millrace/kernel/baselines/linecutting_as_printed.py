"""LINECUTTING as printed (002 section 5.3): keys that are updated seldom go to the front of the line.

A key cuts if u < 1 / (c n): between two of its updates all that wait could be processed. Nothing keeps keys that are
updated often from starving when those that cut take all the time there is (papers 22); `Linecutting` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask, Microseconds
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.key_order import KeyOrder, Lengths, Line
from millrace.kernel.updates.update_batch import UpdateBatch


class Stack(Line):
    """Keys of which the last one pushed is the first."""

    def first(self) -> int:
        column = self._cells[self._column]
        while self._tail > 0:
            key = int(self._keys[self._tail - 1])
            if column[key] == self._places[self._tail - 1]:
                return key
            self._tail -= 1
        return -1

    def pop(self, count: int) -> Integers:
        found, after = self._next(count)
        self._tail = after
        return self._keys[found]

    def _next(self, count: int) -> tuple[Integers, int]:
        """Where the next keys stand, and how much of the stack is left without them."""
        found: list[Integers] = []
        stop, reach = self._tail, 2 * count
        while count > 0 and stop > 0:
            start, reach = max(stop - reach, 0), 2 * reach
            standing = start + np.flatnonzero(self._standing(start, stop))[::-1][:count]
            count -= len(standing)
            found.append(standing)
            stop = start if count else int(standing[-1])
        return np.concatenate(found) if found else np.empty(0, np.int64), stop


class LinecuttingAsPrinted(KeyOrder):
    """In place, but a key whose row finds it slow goes to the front, before those that did so earlier.

    Places at the front are below 0, and fall.
    """

    wants_intervals = True

    def __init__(self, cells: KeyCells) -> None:
        super().__init__(cells)
        self._front = Stack(cells)
        self._first = -1

    def enter(self, updates: UpdateBatch, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        first = updates.first[fresh]
        if cost is None or intervals is None:
            self._push(updates.keys[np.sort(first)])
            return
        comes = np.zeros(len(updates), np.int64)
        comes[first] = 1
        found = self._waiting + np.cumsum(comes) - comes
        cuts = np.flatnonzero(intervals > cost * found)
        behind = np.ones(self._cells.count, np.bool_)
        behind[updates.keys[cuts]] = False
        keys = updates.keys[np.sort(first)]
        self._push(keys[behind[keys]])
        # A key that cuts several times stands where the last time has put it.
        ahead, nth = np.unique(updates.keys[cuts][::-1], return_index=True)
        self._cut(ahead[np.argsort(-nth)])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        if cost is not None and interval > cost * self._waiting:
            self._cut(np.array([key]))
        elif fresh:
            self._push_one(key)

    def _cut(self, keys: Integers) -> None:
        """Put keys at the front, the last of them first."""
        column = self._cells["place"]
        places = self._first - np.arange(len(keys))
        self._first -= len(keys)
        self._waiting += int((column[keys] == NONE).sum())
        column[keys] = places
        self._front.push(keys, places)

    def take(self, count: int, now: Microseconds, cost: float | None) -> Integers:
        ahead = self._front.pop(count)
        if len(ahead) < count:
            ahead = np.concatenate([ahead, self._line.pop(count - len(ahead))])
        return self._left(ahead)

    def first(self) -> int:
        found = self._line.first()
        return found if found >= 0 else self._front.first()

    def waiting(self) -> Integers:
        return np.concatenate([self._front.all(), self._line.all()])

    def note(self) -> dict[str, Any]:
        return {**super().note(), "first": self._first}

    def restore(self, note: Mapping[str, Any]) -> None:
        self._next, self._first = note["next"], note["first"]
        keys = self.standing()
        places = self._cells["place"][keys]
        self._waiting = len(keys)
        ahead = places < 0
        self._front.push(keys[ahead][::-1], places[ahead][::-1])
        self._line.push(keys[~ahead], places[~ahead])
