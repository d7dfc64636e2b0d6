"""What a window aggregate holds, by pane, and how windows are made of panes when a bound closes them.

Rules:
- A window that is a pane is read off as it is; all that close together are one table.
- Windows that overlap share panes. Where panes are small, each row is written once for every window that holds it, and
  all windows are grouped at once. Where they are large, windows are combined of shared heads and tails (see
  shared_panes.py), which are kept from one bound to the next but never saved.
- A table of windows has the window's number as its pane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.shared_panes import SharedPanes, numbered
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import NO_BOUND, Microseconds, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_PAIRS = 2**18
"""Rows times windows that are grouped at once."""
_SEVERAL = 8
"""Windows that must overlap for sharing to be worth while."""
_SHARED_ROWS = 2**25
"""Rows in the windows that share panes at once; what is kept of them has far fewer, unless groups hardly recur."""


class Panes:
    """Partial aggregates by pane and keys; or, `buffered`, the rows themselves (004 section 4.1)."""

    def __init__(self, partials: Partials, *, buffered: bool = False) -> None:
        self.partials = partials
        self.geometry = partials.geometry
        self.buffered = buffered
        self._runs = SortedRuns(PANE, concat_tables if buffered else partials.merged)
        self._shared: SharedPanes | None = None
        self._closed = NO_BOUND
        """The last bound: every window that ends at or before it has been reported."""

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        """The memory of all segments, and of shared panes."""
        return self._runs.nbytes + (0 if self._shared is None else self._shared.nbytes)

    def add(self, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> None:
        """Keep tagged rows, and partials that a lower level made."""
        if self.buffered:
            assert not made, "a buffered aggregate takes rows alone"
            self._runs.add(pa.Table.from_batches(rows).combine_chunks())
            return
        self._runs.add(partials_of(self.partials, rows, made))

    def next_end(self, gathered: int | None) -> Microseconds | None:
        """The end of the first window that holds a row; a pane that has not been added yet counts."""
        held = [pane for pane in (self._runs.least(), gathered) if pane is not None]
        if not held:
            return None
        return self.geometry.end(max(self.geometry.first_window(min(held)), self._first_open()))

    def close(self, until: Microseconds) -> Iterator[pa.Table]:
        """The windows that end at or before a bound, each once."""
        last = self.geometry.last_closed(until)
        yield from self._tumbled(last) if self.geometry.tumbling else self._slid(last)
        # A pane is done with when the last window that holds it has been closed.
        self._runs.drop(self.geometry.panes_of(last + 1)[0] - 1)
        if self._shared is not None and last + 1 not in self._shared:
            self._shared = None

    def passed(self, until: Microseconds) -> None:
        """Every window up to a bound has been reported."""
        self._closed = until

    def changes(self) -> Changes:
        """What changed since the last save."""
        changes = self._runs.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "closed": self._closed})

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        self._runs.restore(changes)
        self._closed = changes.note["closed"]

    def _first_open(self) -> int:
        return self.geometry.last_closed(self._closed) + 1

    def _tumbled(self, last: int) -> Iterator[pa.Table]:
        tables = self._runs.between(None, last)
        if tables:
            yield self._grouped(tables)

    def _slid(self, last: int) -> Iterator[pa.Table]:
        panes, counts = self._runs.counts()
        windows = self.geometry.windows_holding(panes, self._first_open(), last)
        starts, ends = self.geometry.pane_spans(windows)
        before = np.concatenate([[0], np.cumsum(counts)])
        sizes = before[np.searchsorted(panes, ends)] - before[np.searchsorted(panes, starts)]
        total, place = np.cumsum(sizes), 0
        while place < len(windows):
            if self._heavy(int(windows[place]), int(sizes[place])):
                tables, count = self._combined(windows[place : place + self.geometry.overlap], int(sizes[place]))
                stop = place + count
                yield self.partials.merged(tables)
            else:
                fitting = int(np.searchsorted(total, total[place] - sizes[place] + _PAIRS, side="right"))
                stop = max(fitting, place + 1)
                yield self._expanded(windows[place:stop])
            place = stop

    def _heavy(self, window: int, size: int) -> bool:
        """True if shared panes of a window exist, or are worth making."""
        if self._shared is not None and window in self._shared:
            return True
        return size * _SEVERAL > _PAIRS and self.geometry.overlap >= _SEVERAL and not self.buffered

    def _combined(self, windows: Integers, size: int) -> tuple[list[pa.Table], int]:
        """The tables that make up the first of some windows, and how many windows these are."""
        if self._shared is None or int(windows[0]) not in self._shared:
            most = max(_SEVERAL, min(_SHARED_ROWS // size, self.geometry.overlap))
            self._shared = SharedPanes(self.partials, self._runs, int(windows[0]), most)
        found: list[pa.Table] = []
        for count, window in enumerate(windows.tolist()):
            if window not in self._shared or sum(table.num_rows for table in found) >= _PAIRS:
                return found, count
            found += self._shared.window(window)
        return found, len(windows)

    def _expanded(self, windows: Integers) -> pa.Table:
        """Some windows at once, each row written for every one it is in."""
        first, last = int(windows[0]), int(windows[-1])
        tables = self._runs.between(self.geometry.panes_of(first)[0], self.geometry.panes_of(last)[1])
        if first == last:
            return self._grouped([numbered(table, first) for table in tables])
        return self._grouped([self._written(table, first, last) for table in tables])

    def _written(self, table: pa.Table, first: int, last: int) -> pa.Table:
        lowest, highest = self.geometry.windows_of(table.column(PANE).to_numpy())
        return for_windows(table, np.maximum(lowest, first), np.minimum(highest, last))

    def _grouped(self, tables: list[pa.Table]) -> pa.Table:
        if self.buffered:
            return self.partials.of_rows([batch for table in tables for batch in table.to_batches()])
        return self.partials.merged(tables)


def partials_of(partials: Partials, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> pa.Table:
    """The partials of tagged rows, and of partials that a lower level made, as one table."""
    tables = [*made, partials.of_rows(rows)] if rows else list(made)
    return tables[0] if len(tables) == 1 else partials.merged(tables)


def for_windows(table: pa.Table, lowest: Integers, highest: Integers) -> pa.Table:
    """Each row once for every window from its lowest to its highest, under the window's number."""
    counts = np.maximum(highest - lowest + 1, 0)
    rows = table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    return rows.set_column(rows.schema.get_field_index(PANE), PANE, pa.array(ranges(lowest, counts)))
