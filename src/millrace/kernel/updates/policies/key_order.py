"""Orders of keys: which of the keys that wait leaves next (002 section 5).

Rules:
- A key waits if its cell has a `place`. Keys behind each other have growing places, which are never used again.
- A line is an array that is filled at its end and used up from its front; it is packed when it is full. What stands in
  it for a key under another place than the cell's is out of date, and is skipped.
- An order is told of all accepted rows, in the order of arrival, and asked for the keys that leave.
- An order of another kind can always go on with the keys that wait, as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask, Microseconds
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.update_batch import UpdateBatch

Lengths = npt.NDArray[np.float64]
_FIRST_ROOM = 64


class Line:
    """Keys in order of their places.

    >>> cells = KeyCells()
    >>> cells.add("place")
    >>> cells.grow(3)
    >>> cells["place"][:3] = 10, 11, 12
    >>> line = Line(cells)
    >>> line.push(np.array([0, 1, 2]), np.array([10, 11, 12]))
    >>> cells["place"][1] = 20
    >>> line.pop(2).tolist()
    [0, 2]
    """

    def __init__(self, cells: KeyCells, places: str = "place") -> None:
        self._cells = cells
        self._column = places
        self._keys = np.empty(_FIRST_ROOM, np.int64)
        self._places = np.empty(_FIRST_ROOM, np.int64)
        self._head = 0
        self._tail = 0

    def push(self, keys: Integers, places: Integers) -> None:
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

    def peek(self, count: int) -> Integers:
        """The keys at the front, at most `count` of them."""
        # Outdated keys at the front are skipped from now on, or every look would begin with all keys that have left.
        self.first()
        return self._keys[self._next(count)[0]]

    def pop(self, count: int) -> Integers:
        """The keys at the front, at most `count` of them, which leave the line."""
        found, after = self._next(count)
        self._head = after
        return self._keys[found]

    def drain(self) -> tuple[Integers, Integers]:
        """All keys and their places; none is left."""
        found, self._head = self._next(self._tail - self._head)
        return self._keys[found], self._places[found]

    def all(self) -> Integers:
        """All keys, from the front on."""
        return self.peek(self._tail - self._head)

    def _next(self, count: int) -> tuple[Integers, int]:
        """Where the next keys stand, and the place after the last of them."""
        found: list[Integers] = []
        at, reach = self._head, 2 * count
        while count > 0 and at < self._tail:
            stop, reach = min(at + reach, self._tail), 2 * reach
            standing = at + np.flatnonzero(self._standing(at, stop))[:count]
            count -= len(standing)
            found.append(standing)
            at = stop if count else int(standing[-1]) + 1
        return np.concatenate(found) if found else np.empty(0, np.int64), at

    def _standing(self, start: int, stop: int) -> Integers:
        column = self._cells[self._column]
        standing: Integers = column[self._keys[start:stop]] == self._places[start:stop]
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


class KeyOrder:
    """The keys that wait, in one line; by default each keeps its place until it leaves."""

    wants_intervals = False
    """True if it needs to know how often the keys of rows are updated."""

    def __init__(self, cells: KeyCells) -> None:
        self._cells = cells
        cells.add("place")
        self._line = Line(cells)
        self._next = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    # Rows

    def enter(self, updates: UpdateBatch, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        """Take rows into account; `fresh` says of each distinct key that it did not wait before.

        `intervals` is the mean time between updates as of each row, `cost` what a row takes downstream.
        """
        first = updates.first[fresh]
        self._push(updates.keys[np.sort(first)])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        """Take one row into account."""
        if fresh:
            self._push_one(key)

    def take(self, count: int, now: Microseconds, cost: float | None) -> Integers:
        """The keys that leave, at most `count` of them, in order."""
        return self._left(self._line.pop(count))

    # All keys

    def first(self) -> int:
        """The key that has waited longest, or nearly; -1 if none waits."""
        return self._line.first()

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        """True if keys should leave before other queues have nothing to do."""
        return True

    def waiting(self) -> Integers:
        """All keys that wait, in the order of the line."""
        return self._line.all()

    def adopt(self, keys: Integers) -> None:
        """Go on with keys that wait, in this order."""
        self._push(keys)

    def close(self) -> None:
        """Drop the columns that only this order has; it is not used any more."""

    # Saving: the order as it stands

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the cells."""
        return {"next": self._next}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the cells restored."""
        self._next = note["next"]
        keys = self.standing()
        self._waiting = len(keys)
        self._line.push(keys, self._cells["place"][keys])

    def standing(self) -> Integers:
        """The keys that wait by their cells, in order of their places."""
        places = self._cells["place"][: self._cells.count]
        keys = np.flatnonzero(places != NONE)
        return keys[np.argsort(places[keys])]

    # For subclasses

    def _push(self, keys: Integers) -> Integers:
        """Put keys at the end of the line; their places."""
        places = np.arange(self._next, self._next + len(keys))
        self._next += len(keys)
        column = self._cells["place"]
        self._waiting += int((column[keys] == NONE).sum())
        column[keys] = places
        self._line.push(keys, places)
        return places

    def _push_one(self, key: int) -> None:
        column, place = self._cells["place"], self._next
        self._next += 1
        self._waiting += int(column[key] == NONE)
        column[key] = place
        self._line.push_one(key, place)

    def _left(self, keys: Integers) -> Integers:
        self._cells["place"][keys] = NONE
        self._waiting -= len(keys)
        return keys


class InPlace(KeyOrder):
    """A key keeps the place that its first row took (002 Fig. 6c): of keys that are updated alike, the best order."""


class UpdateFifo(KeyOrder):
    """A key goes to the end of the line with each row (002 Fig. 6b)."""

    def enter(self, updates: UpdateBatch, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        self._push(updates.keys[np.sort(updates.last)])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        self._push_one(key)
