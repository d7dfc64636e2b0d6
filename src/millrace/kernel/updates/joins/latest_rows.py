"""The latest row of each key of an input, kept by the number of the key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, grown
from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Mask, Microseconds, Times
from millrace.kernel.progress.order import plus
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_blocks import ENTRY, RowBlocks

NUMBER = "__number"
"""The column of kept rows that holds the number of their key."""
NONE = -1
_LOOK = 64
"""A bound pays for a look at so many rows, and a row for a look at two."""


class LatestRows:
    """The latest row of each key of one input, by the number of the key.

    Rows of other inputs match one up to `within` after it.
    """

    def __init__(self, schema: pa.Schema, within: int | None) -> None:
        self.within = within
        self.rows = RowBlocks()
        reserved = [pa.field(name, pa.int64()) for name in (TIME, ARRIVED, NUMBER)]
        self._schema = pa.schema([*schema, *reserved])
        self._entries: Integers = np.empty(0, np.int64)
        """The entry of each key's row; -1 for none."""
        self._times: Times = np.empty(0, np.int64)
        self._paid = 0
        """A look at how many rows has been paid for."""

    @property
    def nbytes(self) -> int:
        """The memory of the rows and of what finds them."""
        return self.rows.nbytes + int(self._entries.nbytes + self._times.nbytes)

    def entries_of(self, numbers: Integers) -> Integers:
        """The entries of some keys; -1 for none."""
        self._make_room(numbers)
        return self._entries[numbers]

    def rows_of(self, numbers: Integers) -> pa.RecordBatch:
        """The rows of some keys, of those that have one."""
        entries = self.entries_of(numbers)
        found = entries[entries != NONE]
        return self.rows.take(found) if len(found) else pa.RecordBatch.from_pylist([], schema=self._schema)

    def update(self, batch: Batch, numbers: Integers) -> pa.RecordBatch:
        """Keep the latest row of each key; gives the rows of the batch that are now the latest, as they are kept."""
        self._make_room(numbers)
        times = batch.times
        # Of equal times the one that came last stands last.
        order = np.lexsort((times, numbers))
        last = np.append(numbers[order[1:]] != numbers[order[:-1]], True)
        places = np.sort(order[last])
        places = places[times[places] >= self._times[numbers[places]]]
        numbers = numbers[places]
        chosen = batch.rows if len(places) == len(batch) else batch.rows.take(pa.array(places))
        rows = self.as_kept(chosen, numbers)
        before = self._entries[numbers]
        self._entries[numbers] = self.rows.add(rows)
        self._times[numbers] = times[places]
        self.rows.release(before[before != NONE])
        self._paid += 2 * len(places)
        return rows

    def as_kept(self, rows: pa.RecordBatch, numbers: Integers) -> pa.RecordBatch:
        """Rows with the columns of all rows that are kept, whether they say when they arrived or not."""
        count = rows.num_rows
        arrived = rows.column(ARRIVED) if ARRIVED in rows.schema.names else pa.array(np.full(count, NO_BOUND))
        columns = [*map(rows.column, self._schema.names[:-2]), arrived, pa.array(numbers)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def expire(self, own: Microseconds, other: Microseconds, *, at_once: bool) -> None:
        """Drop rows that are not needed at the bounds of their own and the other inputs.

        If not `at_once`, only when enough has come in since the last look to pay for another.
        """
        self._paid += _LOOK
        if not len(self.rows) or (not at_once and self._paid < len(self._entries)):
            return
        passed = (self._entries != NONE) & self._passed(self._times, own, other)
        self.rows.release(self._entries[passed])
        self._entries[passed], self._times[passed] = NONE, NO_BOUND
        self._paid = 0

    def _passed(self, times: Times, own: Microseconds, other: Microseconds) -> Mask:
        """True for rows that no future row can match, and that are not needed to know that other rows are older."""
        if other == END_OF_TIME:
            return times < own
        if self.within is None:
            return np.zeros(len(times), np.bool_)
        return (times < own) & (shifted(times, self.within) < other)

    def restore(self, changes: Changes, own: Microseconds, other: Microseconds) -> None:
        """Go on from saved segments: of each key the row that came last, if it is still needed."""
        saved = [table.select([ENTRY, NUMBER, TIME]) for table in changes.added.values()]
        entries, numbers, times = (
            np.concatenate([np.empty(0, np.int64), *(table.column(name).to_numpy() for table in saved)])
            for name in (ENTRY, NUMBER, TIME)
        )
        order = np.lexsort((entries, numbers))
        last = order[np.append(numbers[order[1:]] != numbers[order[:-1]], True)[: len(order)]]
        last = last[~self._passed(times[last], own, other)]
        self.rows.restore(changes, entries[last])
        self._make_room(numbers[last])
        self._entries[numbers[last]], self._times[numbers[last]] = entries[last], times[last]

    def _make_room(self, numbers: Integers) -> None:
        wanted = int(numbers.max(initial=-1)) + 1
        self._entries, self._times = grown(self._entries, wanted, NONE), grown(self._times, wanted, NO_BOUND)


def shifted(times: Times, length: int) -> Times:
    """Times moved by a length: later, or earlier if it is negative."""
    return plus(times, length) if length >= 0 else times + length
