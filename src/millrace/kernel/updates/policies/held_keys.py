"""What an update queue holds: the newest row of each key that waits (002 section 4.1).

Rules:
- A row that waits is the newest of its key, with one exception: where an append queue has shed a newer one, the key's
  cell remembers when that arrived, `newer`, until a row comes that is newer than both. From then on the row is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from millrace.kernel.elements import END_OF_TIME, Microseconds
from millrace.kernel.updates.frequency import Frequency
from millrace.kernel.updates.policies.held import Held, Taken
from millrace.kernel.updates.policies.key_cells import NONE, Cells, Numbers
from millrace.kernel.updates.policies.key_order import KeyOrder
from millrace.kernel.updates.policies.locations import Locations
from millrace.kernel.updates.policies.update_batch import Updates
from millrace.kernel.updates.staleness import Staleness


class HeldKeys(Held):
    """A row a key, in a location; an order says which key is next."""

    def __init__(
        self, cells: Cells, staleness: Staleness, frequency: Frequency, order: KeyOrder, locations: Locations
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
        return self._locations.allocated

    def entry(self, key: int) -> int:
        """The entry of a key's row; NONE if none waits."""
        return self._locations.entry(key)

    def replace(self, updates: Updates) -> tuple[Numbers, Numbers, Numbers]:
        """Which rows are to be kept, whose keys' old rows go, and the entries of these."""
        entries = self._locations.entries(updates.distinct)
        waits = entries != NONE
        return np.sort(updates.last), updates.distinct[waits], entries[waits]

    def enter(self, updates: Updates, kept: Numbers, entries: Numbers, cost: float | None) -> None:
        """Put the last row of each key in; `kept` of the updates, under `entries`."""
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

    def take(self, count: int, now: Microseconds, cost: float | None) -> Taken:
        cells, keys = self._cells, self.order.take(count, now, cost)
        entries, newer = self._locations.free(keys), cells["newer"][keys]
        cells["newer"][keys] = NONE
        cells.touch(keys)
        if len(keys) == 1:
            self._staleness.leave_one(int(keys[0]), int(newer[0]), now)
        else:
            self._staleness.leave(keys, 1, newer if (newer != NONE).any() else None, now)
        return Taken(entries, cells["port"][keys])

    def entries(self) -> Numbers:
        entries = self._locations.entries(np.arange(self._cells.count))
        return entries[entries != NONE]

    def least(self) -> Microseconds:
        keys = self.order.waiting()
        return int(self._cells["last"][keys].min()) if len(keys) else END_OF_TIME

    def first(self) -> tuple[int, Microseconds]:
        key = self.order.first()
        return key, int(self._cells["queue_since"][key]) if key >= 0 else 0

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        return self.order.presses(now, cost)

    def adopt(self, keys: Numbers, entries: Numbers) -> None:
        """Go on with one waiting row of each key."""
        self._locations.put(keys, entries)
        self._cells.touch(keys)
        self.order.adopt(keys)

    def settle_in(self, make: Callable[[], Locations]) -> None:
        """Have the rows in other locations; these are made when nobody has any."""
        keys = self.order.waiting()
        entries = self._locations.entries(keys)
        self._locations.close()
        self._locations = make()
        self._locations.put(keys, entries)
        self._cells.touch(np.arange(self._cells.count))

    def reorder(self, make: Callable[[], KeyOrder]) -> None:
        """Let another order go on with the keys that wait; it is made when the present one has let go of its cells."""
        keys = self.order.waiting()
        self._cells["place"][keys] = NONE
        self._cells.touch(keys)
        self.order.close()
        self.order = make()
        self.order.adopt(keys)

    def close(self) -> tuple[Numbers, Numbers]:
        """Give all up: the keys in order, and their entries."""
        keys = self.order.waiting()
        entries = self._locations.entries(keys)
        self._cells["place"][keys] = NONE
        self.order.close()
        self._locations.close()
        self._cells.drop("place")
        return keys, entries

    def note(self) -> dict[str, Any]:
        return {"order": self.order.note()}

    def restore(self, note: Mapping[str, Any]) -> None:
        self.order.restore(note["order"])
        self._locations.restore()
