"""Locations: where the waiting row of each key stands (002 section 7.1).

Rules:
- A location is a place in preallocated arrays, by page and place in the page. It holds the entry of one row (see
  row_blocks.py); the key's cell holds the location, which is -1 for none.
- A row that finds one of its key waiting takes its location, else it gets one. The location is released when the row
  leaves, and a page with its last one.
- The naive manager releases nothing: a key keeps the location that it got first.
- What is `allocated` is counted in the pages, not by the rows that wait: a location that nobody gives back shows.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.updates.pages import Pages
from millrace.kernel.updates.policies.key_cells import NONE, Cells, Numbers

_NOWHERE = -1


class Locations:
    """The entries of waiting rows by key.

    >>> cells = Cells()
    >>> locations = Locations(cells, Cells(), page=16)
    >>> cells.grow(3)
    >>> locations.put(np.array([2, 0]), np.array([7, 8]))
    >>> locations.entries(np.array([0, 1, 2])).tolist() == [8, NONE, 7]
    True
    >>> locations.free(np.array([2])).tolist(), locations.allocated
    ([7], 1)
    """

    def __init__(self, cells: Cells, slots: Cells, page: int, *, naive: bool = False) -> None:
        self._cells = cells
        self._slots = slots
        """A cell a location."""
        self._naive = naive
        self._pages = Pages(page)
        cells.add("location", _NOWHERE)
        slots.add("entry")

    @property
    def allocated(self) -> int:
        """How many locations have been handed out and not been given back."""
        return self._pages.allocated

    def entries(self, keys: Numbers) -> Numbers:
        """The entry of each key's row; NONE if none waits."""
        places = self._cells["location"][keys]
        return np.where(places < 0, NONE, self._slots["entry"][places])

    def entry(self, key: int) -> int:
        """The entry of a key's row; NONE if none waits."""
        place = self._cells["location"][key]
        return int(self._slots["entry"][place]) if place >= 0 else NONE

    def put(self, keys: Numbers, entries: Numbers) -> None:
        """Rows wait, one of each key, in place of what waits for it."""
        column = self._cells["location"]
        without = keys[column[keys] < 0]
        if len(without):
            column[without] = new = self._pages.allocate(len(without))
            self._slots.grow(int(new.max()) + 1)
        self._slots["entry"][column[keys]] = entries
        self._slots.touch(column[keys])

    def put_one(self, key: int, entry: int) -> None:
        """One row waits."""
        place = int(self._cells["location"][key])
        if place < 0:
            place = self._cells["location"][key] = int(self._pages.allocate(1)[0])
            self._slots.grow(place + 1)
        self._slots["entry"][place] = entry
        self._slots.touch(place)

    def free(self, keys: Numbers) -> Numbers:
        """The entries of the rows of some keys, each named once, which leave."""
        column, slots = self._cells["location"], self._slots["entry"]
        places = column[keys]
        entries = slots[places]
        slots[places] = NONE
        if self._naive:
            self._slots.touch(places)
        else:
            column[keys] = _NOWHERE
            self._pages.release(places)
        return entries

    def close(self) -> None:
        """Nothing waits any more, and nobody has a location."""
        self._cells.drop("location")
        self._slots.clear()

    def restore(self) -> None:
        """Go on from restored cells; what only the naive manager keeps is released if this is another one."""
        column = self._cells["location"][: self._cells.count]
        if not self._naive:
            left = np.flatnonzero((column >= 0) & (self.entries(np.arange(len(column))) == NONE))
            column[left] = _NOWHERE
            self._cells.touch(left)
        self._pages.restore(column[column >= 0])
