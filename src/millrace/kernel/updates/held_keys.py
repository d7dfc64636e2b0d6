"""What an update queue holds: the newest row of each key that waits (002 section 4.1), in a location (section 7.1).

Rules:
- A row that waits is the newest of its key, with one exception: where an append queue has shed a newer one, the key's
  cell remembers when that arrived, `newer`, until a row comes that is newer than both. From then on the row is stale.
- A location is a place in preallocated arrays, by page and place in the page. It holds the entry of one row (see
  row_blocks.py); the key's cell holds the location, which is -1 for none.
- A row that finds one of its key waiting takes its location, else it gets one. The location is released when the row
  leaves, and a page with its last one.
- The naive manager, a baseline, releases nothing: a key keeps the location that it got first.
- What is `allocated` is counted in the pages, not by the rows that wait: a location that is never given back shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Microseconds
from millrace.kernel.updates.frequency import Frequency
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.pages import Pages
from millrace.kernel.updates.policies.key_order import KeyOrder
from millrace.kernel.updates.staleness import RowStaleness
from millrace.kernel.updates.update_batch import UpdateBatch

_NOWHERE = -1


class Locations:
    """The entries of waiting rows by key.

    >>> cells = KeyCells()
    >>> locations = Locations(cells, KeyCells(), page=16)
    >>> cells.grow(3)
    >>> locations.put(np.array([2, 0]), np.array([7, 8]))
    >>> locations.entries(np.array([0, 1, 2])).tolist() == [8, NONE, 7]
    True
    >>> locations.free(np.array([2])).tolist(), locations.allocated
    ([7], 1)
    """

    def __init__(self, cells: KeyCells, slots: KeyCells, page: int, *, naive: bool = False) -> None:
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

    def entries(self, keys: Integers) -> Integers:
        """The entry of each key's row; NONE if none waits."""
        places = self._cells["location"][keys]
        return np.where(places < 0, NONE, self._slots["entry"][places])

    def entry(self, key: int) -> int:
        """The entry of a key's row; NONE if none waits."""
        place = self._cells["location"][key]
        return int(self._slots["entry"][place]) if place >= 0 else NONE

    def put(self, keys: Integers, entries: Integers) -> None:
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

    def free(self, keys: Integers) -> Integers:
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
        """Nothing waits any more, and no key has a location."""
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


class HeldKeys:
    """One row per key, in a location; an order says which key is next."""

    def __init__(
        self, cells: KeyCells, staleness: RowStaleness, frequency: Frequency, order: KeyOrder, locations: Locations
    ) -> None:
        self._cells = cells
        self._staleness = staleness
        self._frequency = frequency
        self.order = order
        self._locations = locations
        cells.add("newer")

    def __len__(self) -> int:
        return len(self.order)

    @property
    def allocated(self) -> int:
        """How many locations have been handed out."""
        return self._locations.allocated

    def entry(self, key: int) -> int:
        """The entry of a key's row; NONE if none waits."""
        return self._locations.entry(key)

    def replace(self, updates: UpdateBatch) -> tuple[Integers, Integers, Integers]:
        """Which rows are to be kept, whose keys' old rows go, and the entries of these."""
        entries = self._locations.entries(updates.distinct)
        waits = entries != NONE
        return np.sort(updates.last), updates.distinct[waits], entries[waits]

    def enter(self, updates: UpdateBatch, kept: Integers, entries: Integers, cost: float | None) -> None:
        """Put in the last row of each key: the updates at `kept`, under `entries`."""
        cells, keys = self._cells, updates.distinct
        fresh = self._locations.entries(keys) == NONE
        self._locations.put(updates.keys[kept], entries)
        cells["newer"][keys] = NONE
        new = keys[fresh]
        arrived = updates.arrived[updates.first]
        self._staleness.arrive(keys, arrived)
        self._staleness.wait(new, 1, arrived[fresh])
        intervals = self._frequency.intervals(updates) if self.order.wants_intervals else None
        self._frequency.count(updates)
        self.order.enter(updates, fresh, intervals, cost)

    def enter_one(self, key: int, arrived: Microseconds, entry: int, cost: float | None) -> None:
        """Put one row in, which takes the place of what its key has."""
        cells = self._cells
        fresh = self._locations.entry(key) == NONE
        self._locations.put_one(key, entry)
        cells["newer"][key] = NONE
        self._staleness.arrive_one(key, arrived)
        if fresh:
            self._staleness.wait_one(key, arrived)
        interval = self._frequency.interval(key, arrived) if self.order.wants_intervals else 0.0
        self._frequency.count_one(key, arrived)
        self.order.enter_one(key, arrived, fresh, interval, cost)

    def take(self, count: int, now: Microseconds, cost: float | None) -> tuple[Integers, Integers]:
        """Release at most so many rows: their entries in order, and the inputs that they came by."""
        cells, keys = self._cells, self.order.take(count, now, cost)
        entries, newer = self._locations.free(keys), cells["newer"][keys]
        cells["newer"][keys] = NONE
        cells.touch(keys)
        if len(keys) == 1:
            self._staleness.leave_one(int(keys[0]), int(newer[0]), now)
        else:
            self._staleness.leave(keys, 1, newer if (newer != NONE).any() else None, now)
        return entries, cells["port"][keys]

    def entries(self) -> Integers:
        """The entries of all rows that wait."""
        entries = self._locations.entries(np.arange(self._cells.count))
        return entries[entries != NONE]

    def least(self) -> Microseconds:
        """The least time of the rows that wait; END_OF_TIME without any."""
        keys = self.order.waiting()
        return int(self._cells["last"][keys].min()) if len(keys) else END_OF_TIME

    def first(self) -> tuple[int, Microseconds]:
        """The key that has waited longest, or nearly, and since when; -1 if none waits."""
        key = self.order.first()
        return key, int(self._cells["queue_since"][key]) if key >= 0 else 0

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        """True if the next row should not wait until other queues have nothing to do."""
        return self.order.presses(now, cost)

    def adopt(self, keys: Integers, entries: Integers) -> None:
        """Go on with one waiting row of each key."""
        self._locations.put(keys, entries)
        self._cells.touch(keys)
        self.order.adopt(keys)

    def settle_in(self, make: Callable[[], Locations]) -> None:
        """Have the rows in other locations, which are made when the present ones are gone."""
        keys = self.order.waiting()
        entries = self._locations.entries(keys)
        self._locations.close()
        self._locations = make()
        self._locations.put(keys, entries)
        self._cells.touch(np.arange(self._cells.count))

    def reorder(self, make: Callable[[], KeyOrder]) -> None:
        """Let another order go on with the keys that wait; it is made when the present one has dropped its columns."""
        keys = self.order.waiting()
        self._cells["place"][keys] = NONE
        self._cells.touch(keys)
        self.order.close()
        self.order = make()
        self.order.adopt(keys)

    def close(self) -> tuple[Integers, Integers]:
        """Give all up: the keys in order, and their entries."""
        keys = self.order.waiting()
        entries = self._locations.entries(keys)
        self._cells["place"][keys] = NONE
        self.order.close()
        self._locations.close()
        self._cells.drop("place")
        return keys, entries

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the stores."""
        return {"order": self.order.note()}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the stores restored."""
        self.order.restore(note["order"])
        self._locations.restore()
