"""The statistics monitor: how often each key is updated (002 section 4.2).

A key's updates are counted, and the arrival of every 32nd is remembered. The mean time between updates is taken over
the last 32 to 63 of them. Before a key has 32, and if all of these arrived at once, the mean is taken
since the first row of the queue. So a key that has been seen once in a long time counts as slow, not as unknown.
What it says of a row depends on the rows before it, never on how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds, Times
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.update_batch import UpdateBatch

Lengths = npt.NDArray[np.float64]

EACH = 32
"""Every so many updates the arrival is remembered."""


class Frequency:
    """Counts updates by key; in columns of the queue's cells."""

    def __init__(self, cells: KeyCells) -> None:
        self._cells = cells
        cells.add("updates", 0)
        cells.add("mark")
        cells.add("mark_before")
        self._begun: Microseconds = NONE
        """The first arrival of all."""

    def count(self, updates: UpdateBatch) -> None:
        """Take accepted rows into account."""
        if self._begun == NONE:
            self._begun = int(updates.arrived[0])
        cells, keys = self._cells, updates.distinct
        known = cells["updates"][keys]
        reached = known + updates.counts
        passed = reached // EACH > known // EACH
        if passed.any():
            begins, latest = updates.begins[passed], reached[passed] // EACH * EACH
            keys, known = keys[passed], known[passed]
            before = self._arrival(updates, keys, begins, known, latest - EACH)
            cells["mark"][keys] = self._arrival(updates, keys, begins, known, latest)
            cells["mark_before"][keys] = before
        cells["updates"][updates.distinct] = reached

    def intervals(self, updates: UpdateBatch) -> Lengths:
        """The mean time between updates of its key, as of each row and before it is counted, in their order."""
        begun = int(updates.arrived[0]) if self._begun == NONE else self._begun
        groups = np.repeat(np.arange(len(updates.begins)), updates.counts)
        known = self._cells["updates"][updates.distinct][groups]
        number = known + updates.nth + 1
        since = (number // EACH - 1) * EACH
        whole = since >= EACH
        arrived = updates.arrived[updates.order]
        began = np.full(len(arrived), begun)
        if whole.any():
            keys, begins = updates.keys[updates.order][whole], updates.begins[groups][whole]
            began[whole] = self._arrival(updates, keys, begins, known[whole], since[whole])
            whole &= began < arrived
            began[~whole] = begun
        intervals = np.empty(len(arrived))
        intervals[updates.order] = (arrived - began) / (number - np.where(whole, since, 0))
        return intervals

    def _arrival(
        self, updates: UpdateBatch, keys: Integers, begins: Integers, known: Integers, number: Integers
    ) -> Times:
        """When the rows of keys with these numbers arrived: a row of the batch, or one that is remembered."""
        cells = self._cells
        remembered = np.where(number == known // EACH * EACH, cells["mark"][keys], cells["mark_before"][keys])
        inside = number > known
        if inside.any():
            places = begins[inside] + (number - known)[inside] - 1
            remembered[inside] = updates.arrived[updates.order[places]]
        return remembered

    def count_one(self, key: int, arrived: Microseconds) -> None:
        """Take one row into account."""
        if self._begun == NONE:
            self._begun = arrived
        cells = self._cells
        updates = int(cells["updates"][key]) + 1
        cells["updates"][key] = updates
        if updates % EACH == 0:
            cells["mark_before"][key] = cells["mark"][key]
            cells["mark"][key] = arrived

    def interval(self, key: int, arrived: Microseconds) -> float:
        """The mean time between updates of a key, if the one that arrived then is the next."""
        number = int(self._cells["updates"][key]) + 1
        # The row itself may be the one with which the marks move.
        return self._mean("mark" if number % EACH == 0 else "mark_before", key, number, arrived)

    def mean_interval(self, key: int, now: Microseconds) -> float:
        """The mean time between updates of a key so far."""
        return self._mean("mark_before", key, max(int(self._cells["updates"][key]), 1), now)

    def _mean(self, mark: str, key: int, number: int, now: Microseconds) -> float:
        """The mean time between updates up to the one with this number, since a mark or since the first row of all."""
        since = (number // EACH - 1) * EACH
        if since >= EACH and (began := int(self._cells[mark][key])) < now:
            return (now - began) / (number - since)
        return (now - self._begun) / number if self._begun != NONE else 0.0

    def per_second(self, now: Microseconds, count: int) -> Lengths:
        """How often each of the first `count` keys has been updated lately."""
        cells = self._cells
        number = cells["updates"][:count]
        since = (number // EACH - 1) * EACH
        whole = (since >= EACH) & (cells["mark_before"][:count] < now)
        began = np.where(whole, cells["mark_before"][:count], now if self._begun == NONE else self._begun)
        lengths = (now - began).astype(np.float64)
        many = (number - np.where(whole, since, 0)) * 1e6
        return np.divide(many, lengths, out=np.zeros(count), where=lengths > 0)

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the cells."""
        return {"begun": self._begun}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the cells restored."""
        self._begun = note["begun"]
