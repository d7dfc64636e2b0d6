"""Lines: keys one behind the other, with places that are never used again.

Rules:
- A key stands where the `place` of its cell says. What else stands in a line for it is out of date, and is skipped.
- A line is an array that is filled at its end and used up from its front; it is packed when it is full.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.updates.policies.key_cells import Cells, Numbers

_FIRST_ROOM = 64


class Line:
    """Keys in order of their places.

    >>> cells = Cells()
    >>> cells.add("place")
    >>> cells.grow(3)
    >>> cells["place"][:3] = 10, 11, 12
    >>> line = Line(cells)
    >>> line.push(np.array([0, 1, 2]), np.array([10, 11, 12]))
    >>> cells["place"][1] = 20
    >>> line.pop(2).tolist()
    [0, 2]
    """

    def __init__(self, cells: Cells, places: str = "place") -> None:
        self._cells = cells
        self._column = places
        self._keys = np.empty(_FIRST_ROOM, np.int64)
        self._places = np.empty(_FIRST_ROOM, np.int64)
        self._head = 0
        self._tail = 0

    def push(self, keys: Numbers, places: Numbers) -> None:
        """Put keys at the end, under places above all that are in the line."""
        if self._tail + len(keys) > len(self._keys):
            self._pack(len(keys))
        stop = self._tail + len(keys)
        self._keys[self._tail : stop] = keys
        self._places[self._tail : stop] = places
        self._tail = stop

    def push_one(self, key: int, place: int) -> None:
        """Put one key at the end."""
        if self._tail == len(self._keys):
            self._pack(1)
        self._keys[self._tail] = key
        self._places[self._tail] = place
        self._tail += 1

    def first(self) -> int:
        """The key at the front; -1 if none is in the line."""
        column = self._cells[self._column]
        while self._head < self._tail:
            key = int(self._keys[self._head])
            if column[key] == self._places[self._head]:
                return key
            self._head += 1
        return -1

    def peek(self, count: int) -> Numbers:
        """The keys at the front, at most so many."""
        # What is out of date at the front is passed for good, or every look would begin with all that has left.
        self.first()
        return self._keys[self._next(count)[0]]

    def pop(self, count: int) -> Numbers:
        """The keys at the front, at most so many, which leave the line."""
        if count == 1:
            first = self.first()
            self._head += first >= 0
            return np.array([first] if first >= 0 else [], np.int64)
        found, after = self._next(count)
        self._head = after
        return self._keys[found]

    def drain(self) -> tuple[Numbers, Numbers]:
        """All keys and their places; none is left."""
        found, self._head = self._next(self._tail - self._head)
        return self._keys[found], self._places[found]

    def all(self) -> Numbers:
        """All keys, from the front on."""
        return self.peek(self._tail - self._head)

    def _next(self, count: int) -> tuple[Numbers, int]:
        """Where the next keys stand, and the place after the last of them."""
        found: list[Numbers] = []
        at, reach = self._head, 2 * count
        while count > 0 and at < self._tail:
            stop, reach = min(at + reach, self._tail), 2 * reach
            standing = at + np.flatnonzero(self._standing(at, stop))[:count]
            count -= len(standing)
            found.append(standing)
            at = stop if count else int(standing[-1]) + 1
        return np.concatenate(found) if found else np.empty(0, np.int64), at

    def _standing(self, start: int, stop: int) -> Numbers:
        column = self._cells[self._column]
        standing: Numbers = column[self._keys[start:stop]] == self._places[start:stop]
        return standing

    def _pack(self, more: int) -> None:
        """Make room: without what is out of date, and in a larger array if that is not much."""
        kept = self._head + np.flatnonzero(self._standing(self._head, self._tail))
        room = len(self._keys)
        while room < 2 * (len(kept) + more):
            room *= 2
        keys, places = np.empty(room, np.int64), np.empty(room, np.int64)
        keys[: len(kept)] = self._keys[kept]
        places[: len(kept)] = self._places[kept]
        self._keys, self._places, self._head, self._tail = keys, places, 0, len(kept)


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

    def pop(self, count: int) -> Numbers:
        found, after = self._next(count)
        self._tail = after
        return self._keys[found]

    def _next(self, count: int) -> tuple[Numbers, int]:
        """Where the next keys stand, and how much of the stack is left without them."""
        found: list[Numbers] = []
        stop, reach = self._tail, 2 * count
        while count > 0 and stop > 0:
            start, reach = max(stop - reach, 0), 2 * reach
            standing = start + np.flatnonzero(self._standing(start, stop))[::-1][:count]
            count -= len(standing)
            found.append(standing)
            stop = start if count else int(standing[-1])
        return np.concatenate(found) if found else np.empty(0, np.int64), stop
