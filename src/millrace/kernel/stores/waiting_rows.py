"""Rows that wait for a bound: gathered as they come, and sorted by time when somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.aggregates.span_folds import in_panes
from millrace.kernel.columns.hashing import hashes_of
from millrace.kernel.elements import END_OF_TIME, Batch, Microseconds, concat, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.keyed_runs import HASH
from millrace.kernel.stores.sorted_runs import SortedRuns

_FEW = 2**16
"""Rows are gathered up to this number before they are sorted, so that single rows cost little."""


class WaitingRows:
    """What partials are made of, by time: the columns they read, the time as pane, the hash of the keys.

    `further` names columns that are kept too.
    """

    def __init__(self, partials: Partials, further: Sequence[str] = ()) -> None:
        self.partials = partials
        self.further = tuple(further)
        self._runs = SortedRuns(PANE, concat_tables)
        self._gathered: list[Batch] = []
        self._rows = 0

    def __len__(self) -> int:
        return len(self._runs) + self._rows

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return self._runs.nbytes + sum(int(batch.rows.nbytes) for batch in self._gathered)

    def add(self, batch: Batch) -> None:
        """Keep rows."""
        self._gathered.append(batch)
        self._rows += len(batch)
        if self._rows >= _FEW:
            self._settle()

    def between(self, first: Microseconds | None, last: Microseconds) -> list[pa.Table]:
        """The rows with first <= time <= last (first None: from the least on), a table a run."""
        self._settle()
        return self._runs.between(first, last)

    def drop(self, last: Microseconds) -> None:
        """Let go of the rows with time <= last, all of which have been looked at."""
        self._runs.drop(last)

    def least(self, first: Microseconds) -> Microseconds | None:
        """The least time from `first` on."""
        self._settle()
        found = [table.column(PANE)[0].as_py() for table in self._runs.between(first, END_OF_TIME)]
        return min(found, default=None)

    def changes(self) -> Changes:
        """What changed since the last save."""
        self._settle()
        return self._runs.changes()

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments and the note of the last save."""
        self._runs.restore(changes)

    def _settle(self) -> None:
        """Keep what has been gathered as one sorted run."""
        if self._gathered:
            self._runs.add(self._kept(concat(self._gathered)))
            self._gathered, self._rows = [], 0

    def _kept(self, batch: Batch) -> pa.Table:
        rows = in_panes(pa.Table.from_batches([self.partials.tagged(batch)]), batch.times)
        for name in self.further:
            if name not in rows.schema.names:
                rows = rows.append_column(name, batch.rows.column(name))
        return rows.append_column(HASH, pa.array(hashes_of(rows, self.partials.keys)))
