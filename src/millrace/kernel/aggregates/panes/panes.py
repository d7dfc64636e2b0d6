"""What a window aggregate holds, by pane, and how windows are made of panes when a bound closes them.

Rules:
- A window that is a pane is read off as it stands; all that close together are one table.
- Windows that overlap share work. Where panes are light, each row is written once for every window it is in, and all
  windows are grouped at once. Where they are heavy, windows are put together of parts, which are kept from one bound to
  the next but never saved.
- A table of windows has the window's number as its pane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.shared_panes import Parts, numbered, spans
from millrace.kernel.aggregates.panes.window_geometry import Frames, Numbers
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.integers import ranges
from millrace.kernel.elements import NO_BOUND, Microseconds, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_PAIRS = 2**18
"""Rows times windows that are grouped at once."""
_SEVERAL = 8
"""Windows that must overlap for their parts to be worth keeping."""
_PARTS = 2**25
"""Rows in windows whose parts are kept at once; the parts have far fewer, unless groups hardly come twice."""


class Panes:
    """Partial aggregates by pane and keys; or, `buffered`, the rows themselves (004 section 4.1)."""

    def __init__(self, partials: Partials, *, buffered: bool = False) -> None:
        self.partials = partials
        self.frames = partials.frames
        self.buffered = buffered
        self._runs = SortedRuns(PANE, concat_tables if buffered else partials.merged)
        self._parts: Parts | None = None
        self._closed = NO_BOUND
        """The last bound: every window that ends at or before it has been reported."""

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        """The memory of all segments, and of parts of windows."""
        return self._runs.nbytes + (0 if self._parts is None else self._parts.nbytes)

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
        return self.frames.end(max(self.frames.first_window(min(held)), self._first_open()))

    def close(self, until: Microseconds) -> Iterator[pa.Table]:
        """The windows that end at or before a bound, each once."""
        last = self.frames.last_closed(until)
        yield from self._tumbled(last) if self.frames.tumbling else self._slid(last)
        # A pane is done with when the last window that holds it has been closed.
        self._runs.drop(self.frames.panes_of(last + 1)[0] - 1)
        if self._parts is not None and last + 1 not in self._parts:
            self._parts = None

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
        return self.frames.last_closed(self._closed) + 1

    def _tumbled(self, last: int) -> Iterator[pa.Table]:
        tables = self._runs.between(None, last)
        if tables:
            yield self._grouped(tables)

    def _slid(self, last: int) -> Iterator[pa.Table]:
        panes, counts = self._runs.counts()
        windows = _holding(self.frames, panes, self._first_open(), last)
        starts, ends = spans(self.frames, windows)
        before = np.concatenate([[0], np.cumsum(counts)])
        sizes = before[np.searchsorted(panes, ends)] - before[np.searchsorted(panes, starts)]
        total, place = np.cumsum(sizes), 0
        while place < len(windows):
            if self._heavy(int(windows[place]), int(sizes[place])):
                tables, count = self._shared(windows[place : place + self.frames.overlap], int(sizes[place]))
                stop = place + count
                yield self.partials.merged(tables)
            else:
                fitting = int(np.searchsorted(total, total[place] - sizes[place] + _PAIRS, side="right"))
                stop = max(fitting, place + 1)
                yield self._expanded(windows[place:stop])
            place = stop

    def _heavy(self, window: int, size: int) -> bool:
        """Whether parts of a window are at hand, or worth making."""
        if self._parts is not None and window in self._parts:
            return True
        return size * _SEVERAL > _PAIRS and self.frames.overlap >= _SEVERAL and not self.buffered

    def _shared(self, windows: Numbers, size: int) -> tuple[list[pa.Table], int]:
        """Parts that make up the first of some windows, and how many windows these are."""
        if self._parts is None or int(windows[0]) not in self._parts:
            most = max(_SEVERAL, min(_PARTS // size, self.frames.overlap))
            self._parts = Parts(self.partials, self._runs, int(windows[0]), most)
        found: list[pa.Table] = []
        for count, window in enumerate(windows.tolist()):
            if window not in self._parts or sum(table.num_rows for table in found) >= _PAIRS:
                return found, count
            found += self._parts.window(window)
        return found, len(windows)

    def _expanded(self, windows: Numbers) -> pa.Table:
        """Some windows at once, each row written for every one it is in."""
        first, last = int(windows[0]), int(windows[-1])
        tables = self._runs.between(self.frames.panes_of(first)[0], self.frames.panes_of(last)[1])
        if first == last:
            return self._grouped([numbered(table, first) for table in tables])
        return self._grouped([self._written(table, first, last) for table in tables])

    def _written(self, table: pa.Table, first: int, last: int) -> pa.Table:
        lowest, highest = self.frames.windows_of(table.column(PANE).to_numpy())
        return for_windows(table, np.maximum(lowest, first), np.minimum(highest, last))

    def _grouped(self, tables: list[pa.Table]) -> pa.Table:
        if self.buffered:
            return self.partials.of_rows([batch for table in tables for batch in table.to_batches()])
        return self.partials.merged(tables)


def partials_of(partials: Partials, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> pa.Table:
    """The partials of tagged rows, and of partials that a lower level made, as one table."""
    tables = [*made, partials.of_rows(rows)] if rows else list(made)
    return tables[0] if len(tables) == 1 else partials.merged(tables)


def for_windows(table: pa.Table, lowest: Numbers, highest: Numbers) -> pa.Table:
    """Each row once for every window from its lowest to its highest, under the window's number."""
    counts = np.maximum(highest - lowest + 1, 0)
    rows = table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    return rows.set_column(rows.schema.get_field_index(PANE), PANE, pa.array(ranges(lowest, counts)))


def _holding(frames: Frames, panes: Numbers, first: int, last: int) -> Numbers:
    """The windows from `first` to `last` that hold one of some panes, in order."""
    lowest, highest = frames.windows_of(panes)
    lowest, highest = np.maximum(lowest, first), np.minimum(highest, last)
    # Panes are in order, so a pane brings only the windows after those of the pane before it.
    lowest[1:] = np.maximum(lowest[1:], highest[:-1] + 1)
    return ranges(lowest, np.maximum(highest - lowest + 1, 0))
