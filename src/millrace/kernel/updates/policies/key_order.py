"""Orders of keys: which of the keys that wait leaves next (002 section 5).

Rules:
- A key waits if its cell has a `place`. Keys behind each other have growing places.
- An order is told of all accepted rows, in the order of arrival, and asked for keys to let go.
- Whatever the order, an order of another kind can go on with the keys that wait, as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from millrace.kernel.elements import Mask, Microseconds
from millrace.kernel.updates.policies.key_cells import NONE, Cells, Numbers
from millrace.kernel.updates.policies.line import Line
from millrace.kernel.updates.policies.update_batch import Updates

Lengths = npt.NDArray[np.float64]


class KeyOrder:
    """The keys that wait, in one line; by default each keeps its place until it leaves."""

    wants_intervals = False
    """Whether it wants to know how often the keys of rows are updated."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        cells.add("place")
        self._line = Line(cells)
        self._next = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    # Rows

    def enter(self, updates: Updates, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        """Take rows into account; `fresh` says of each distinct key that it did not wait before.

        `intervals` is the mean time between updates as of each row, `cost` what a row takes downstream.
        """
        first = updates.first[fresh]
        self._push(updates.keys[np.sort(first)])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        """Take one row into account."""
        if fresh:
            self._push_one(key)

    def take(self, count: int, now: Microseconds, cost: float | None) -> Numbers:
        """The keys that leave, at most so many, in order."""
        return self._left(self._line.pop(count))

    # All keys

    def first(self) -> int:
        """The key that has waited longest, or nearly; -1 if none waits."""
        return self._line.first()

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        """Whether keys are to be let go before other queues have nothing to do."""
        return True

    def waiting(self) -> Numbers:
        """All keys that wait, in the order of the line."""
        return self._line.all()

    def adopt(self, keys: Numbers) -> None:
        """Go on with keys that wait, in this order."""
        self._push(keys)

    def close(self) -> None:
        """Nobody asks any more: the columns that only this order has can go."""

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

    def standing(self) -> Numbers:
        """The keys that wait by their cells, in order of their places."""
        places = self._cells["place"][: self._cells.count]
        keys = np.flatnonzero(places != NONE)
        return keys[np.argsort(places[keys])]

    # For subclasses

    def _push(self, keys: Numbers) -> Numbers:
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

    def _left(self, keys: Numbers) -> Numbers:
        self._cells["place"][keys] = NONE
        self._waiting -= len(keys)
        return keys


class InPlace(KeyOrder):
    """A key keeps the place that its first row took (002 Fig. 6c): of keys that are updated alike, the best order."""


class UpdateFifo(KeyOrder):
    """A key goes to the end of the line with each row (002 Fig. 6b)."""

    def enter(self, updates: Updates, fresh: Mask, intervals: Lengths | None, cost: float | None) -> None:
        self._push(updates.keys[np.sort(updates.last)])

    def enter_one(self, key: int, arrived: Microseconds, fresh: bool, interval: float, cost: float | None) -> None:
        self._push_one(key)
