"""What an update queue holds: the newest row of each key that waits (002 section 4.1).

Rules:
- A row that waits is the newest of its key, with one exception: where an append queue has shed a newer one, the key's
  cell remembers when that arrived, `newer`, until a row comes that is newer than both. From then on the row is stale.
- The key's cell holds the entry of its row in the row blocks (see row_blocks.py), which is released when the row leaves
  or is replaced.
- With naive memory, a baseline (002 section 7.1), it is not released when the row leaves: the key keeps it, and the
  memory of the row, until its next row comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Microseconds
from millrace.kernel.updates.frequency import Frequency
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.key_order import KeyOrder
from millrace.kernel.updates.staleness import RowStaleness
from millrace.kernel.updates.update_batch import UpdateBatch


class HeldKeys:
    """One row per key; an order says which key is next. With `keeps`, memory is naive: rows that left stay."""

    def __init__(
        self, cells: KeyCells, staleness: RowStaleness, frequency: Frequency, order: KeyOrder, *, keeps: bool = False
    ) -> None:
        self._cells = cells
        self._staleness = staleness
        self._frequency = frequency
        self.order = order
        self.keeps = keeps
        cells.add("newer")
        cells.add("entry")
        if keeps:
            cells.add("kept")

    def __len__(self) -> int:
        return len(self.order)

    def entry(self, key: int) -> int:
        """The entry of a key's row; NONE if none waits."""
        return int(self._cells["entry"][key])

    def replace(self, updates: UpdateBatch) -> tuple[Integers, Integers, Integers]:
        """Which rows are to be kept, whose keys' old rows go, and the entries to release."""
        entries = self._cells["entry"][updates.distinct]
        waits = entries != NONE
        released = np.concatenate([entries[waits], self.forget(updates.distinct)])
        return np.sort(updates.last), updates.distinct[waits], released

    def forget(self, keys: Integers) -> Integers:
        """The entries that keys have kept of rows that left, which they give up."""
        if not self.keeps:
            return np.empty(0, np.int64)
        kept = self._cells["kept"][keys]
        self._cells["kept"][keys] = NONE
        return kept[kept != NONE]

    def enter(self, updates: UpdateBatch, kept: Integers, entries: Integers, cost: float | None) -> None:
        """Put in the last row of each key: the updates at `kept`, under `entries`."""
        cells, keys = self._cells, updates.distinct
        fresh = cells["entry"][keys] == NONE
        cells["entry"][updates.keys[kept]] = entries
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
        fresh = self.entry(key) == NONE
        cells["entry"][key] = entry
        cells["newer"][key] = NONE
        self._staleness.arrive_one(key, arrived)
        if fresh:
            self._staleness.wait_one(key, arrived)
        interval = self._frequency.interval(key, arrived) if self.order.wants_intervals else 0.0
        self._frequency.count_one(key, arrived)
        self.order.enter_one(key, arrived, fresh, interval, cost)

    def take(self, count: int, now: Microseconds, cost: float | None) -> tuple[Integers, Integers]:
        """Release at most `count` rows: their entries in order, and the inputs that they came by."""
        cells, keys = self._cells, self.order.take(count, now, cost)
        entries, newer = cells["entry"][keys], cells["newer"][keys]
        cells["entry"][keys] = cells["newer"][keys] = NONE
        if self.keeps:
            cells["kept"][keys] = entries
        cells.touch(keys)
        if len(keys) == 1:
            # With arrays a row would cost 13 % more on its way through the query.
            self._staleness.leave_one(int(keys[0]), int(newer[0]), now)
        else:
            self._staleness.leave(keys, 1, newer if (newer != NONE).any() else None, now)
        return entries, cells["port"][keys]

    def entries(self) -> Integers:
        """The entries of all rows that wait, and of those that are kept."""
        names = ("entry", "kept") if self.keeps else ("entry",)
        entries = np.concatenate([self._cells[name][: self._cells.count] for name in names])
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
        self._cells["entry"][keys] = entries
        self._cells.touch(keys)
        self.order.adopt(keys)

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
        entries = self._cells["entry"][keys]
        self._cells["place"][keys] = NONE
        self.order.close()
        for name in ("place", "entry", *(["kept"] if self.keeps else [])):
            self._cells.drop(name)
        return keys, entries

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the stores."""
        return {"order": self.order.note()}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the stores restored."""
        self.order.restore(note["order"])
