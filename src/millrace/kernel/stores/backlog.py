"""A backlog: rows gathered as they come, and released by time once a bound has passed them.

Rows of equal time are released in the order they came: runs are sorted stably and merged in order of age.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import TIME, Microseconds, column_times, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_FEW = 2**16
"""Rows are gathered up to this number before they are sorted, so that single rows cost little."""


class Backlog:
    """Rows with a column `__time`, in sorted runs."""

    def __init__(self) -> None:
        self._runs = SortedRuns(TIME, concat_tables)
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0
        self._least: Microseconds = 0
        """Rows that have not been sorted yet: how many, and their least time."""

    def __len__(self) -> int:
        return len(self._runs) + self._rows

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._runs.nbytes + sum(int(rows.nbytes) for rows in self._gathered)

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep rows, of which there are some."""
        least = int(column_times(rows, TIME).min())
        self._least = min(self._least, least) if self._gathered else least
        self._gathered.append(rows)
        self._rows += rows.num_rows
        if self._rows >= _FEW:
            self._settle()

    def release(self, until: Microseconds) -> pa.RecordBatch | None:
        """The rows before a bound, sorted by time; None when there are none."""
        least = self.least()
        if least is None or least >= until:
            return None
        self._settle()
        found = concat_tables(self._runs.between(None, until - 1))
        self._runs.drop(until - 1)
        order = np.argsort(found.column(TIME).to_numpy(), kind="stable")
        return found.take(pa.array(order)).combine_chunks().to_batches()[0]

    def least(self) -> Microseconds | None:
        """The least time that waits."""
        kept = self._runs.least()
        if not self._gathered:
            return kept
        return self._least if kept is None else min(self._least, kept)

    def least_after(self, count: int) -> Microseconds | None:
        """The least time that waits when `count` rows have been released; None when none does."""
        self._settle()
        return self._runs.least_after(count)

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        return self._runs.changes()

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        self._runs.restore(changes)

    def _settle(self) -> None:
        if self._gathered:
            self._runs.add(pa.Table.from_batches(self._gathered).combine_chunks())
            self._gathered, self._rows = [], 0
