"""What a window aggregate holds, by pane, and how windows are made of panes when a bound closes them.

Rules:
- A window that is a pane is read off as it is; all that close together are one table.
- Windows that overlap share panes. Where panes are small, each row is written once for every window that holds it, and
  all windows are grouped at once. Where they are large, windows are combined of shared heads and tails (see
  shared_panes.py), which are kept from one bound to the next but never saved.
- A table of windows has the window's number as its pane.
- Rows and partials may stand side by side: then each window is made of both. So an aggregate can go on with the other
  when windows have been closed, and what it has is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.pane_meter import PaneMeter
from millrace.kernel.aggregates.panes.shared_panes import SharedPanes, as_window
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds, concat_tables
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.sorted_runs import SortedRuns

_PAIRS = 2**18
"""Rows times windows that are grouped at once."""
_SEVERAL = 8
"""Windows that must overlap for sharing to be worth while."""
_SHARED_ROWS = 2**25
"""Rows in the windows that share panes at once; what is kept of them has far fewer, unless groups hardly recur."""


class Panes:
    """Partial aggregates by pane and keys; or, `buffered`, the rows themselves (004 section 4.1).

    If it `adapts`, `buffered` says how it begins; it goes on with the form that it has measured to be smaller.
    """

    def __init__(self, partials: Partials, *, buffered: bool = False, adapts: bool = False) -> None:
        self.partials = partials
        self.geometry = partials.geometry
        self.buffered = buffered
        self.switches = 0
        """How often it went on with the other."""
        self._meter = PaneMeter() if adapts else None
        self._measured = NO_BOUND
        """The last pane that has been measured."""
        self._runs = SortedRuns(PANE, partials.merged)
        self._rows = SortedRuns(PANE, concat_tables)
        self._shared: SharedPanes | None = None
        self._closed = NO_BOUND
        """The last bound: every window that ends at or before it has been reported."""

    def __len__(self) -> int:
        return len(self._runs) + len(self._rows)

    @property
    def nbytes(self) -> int:
        """The memory of all segments, and of shared panes."""
        return self._runs.nbytes + self._rows.nbytes + (0 if self._shared is None else self._shared.nbytes)

    def add(self, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> None:
        """Keep tagged rows, and partials that a lower level made."""
        if self.buffered and rows:
            self._rows.add(pa.Table.from_batches(rows).combine_chunks())
            rows = []
        if rows or made:
            self._runs.add(partials_together(self.partials, rows, made))
        if self._meter is not None:
            self._meter.saw_rows(rows)

    def next_end(self, gathered: int | None) -> Microseconds | None:
        """The end of the first window that holds a row; a pane that has not been added yet counts."""
        held = [pane for pane in (self._runs.least(), self._rows.least(), gathered) if pane is not None]
        if not held:
            return None
        return self.geometry.end(max(self.geometry.first_window(min(held)), self._first_open()))

    def close(self, until: Microseconds) -> Iterator[pa.Table]:
        """The windows that end at or before a bound, each once."""
        last = self.geometry.last_closed(until)
        yield from self._tumbled(last) if self.geometry.tumbling else self._slid(last)
        # A pane is done with when the last window that holds it has been closed.
        if self._meter is not None:
            self._measure(self._meter, self.geometry.panes_of(last)[1])
        done = self.geometry.panes_of(last + 1)[0] - 1
        self._runs.drop(done)
        self._rows.drop(done)
        if self._shared is not None and last + 1 not in self._shared:
            self._shared = None

    def _measure(self, meter: PaneMeter, complete: int) -> None:
        """Measure the panes that a window has reached, and change over if the other takes less.

        Large windows are made of partials, whatever these take.
        """
        span, self._measured = (self._measured + 1, complete), max(complete, self._measured)
        if self.buffered:
            meter.saw_both(self._rows.between(*span), self.partials)
        else:
            meter.saw_partials(self._runs.between(*span))
        better = meter.smaller_as_rows(self.buffered)
        if better is None:
            return
        size = len(self._rows) + len(self._runs) * max(1.0, meter.rows / meter.partials)
        better = better and (size * _SEVERAL <= _PAIRS or self.geometry.overlap < _SEVERAL)
        self.switches += better != self.buffered
        if self.buffered and not better:
            kept = self._rows.between(None, END_OF_TIME)
            self._rows.clear()
            self.buffered = False
            self.add([batch for table in kept for batch in table.to_batches()], [])
        if better:
            # Shared panes know nothing of rows.
            self._shared = None
        self.buffered = better
        meter.clear()

    def passed(self, until: Microseconds) -> None:
        """Every window up to a bound has been reported."""
        self._closed = until

    def changes(self) -> Changes:
        """What changed since the last save."""
        meter = None if self._meter is None else [self._measured, *self._meter.numbers]
        note = {"closed": self._closed, "buffered": self.buffered, "meter": meter, "switches": self.switches}
        return combined([self._runs.changes(), self._rows.changes()], note)

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        runs, rows = separated(changes)
        self._runs.restore(runs)
        self._rows.restore(rows)
        self._closed, self.buffered = changes.note["closed"], changes.note["buffered"]
        self.switches = changes.note.get("switches", 0)
        if self._meter is not None and changes.note["meter"] is not None:
            self._measured, *self._meter.numbers = changes.note["meter"]

    def _first_open(self) -> int:
        return self.geometry.last_closed(self._closed) + 1

    def _tumbled(self, last: int) -> Iterator[pa.Table]:
        made, rows = self._runs.between(None, last), self._rows.between(None, last)
        if made or rows:
            yield self._grouped(made, rows)

    def _slid(self, last: int) -> Iterator[pa.Table]:
        panes, counts = _together(self._runs.counts(), self._rows.counts())
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
        return size * _SEVERAL > _PAIRS and self.geometry.overlap >= _SEVERAL and not len(self._rows)

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
        span = self.geometry.panes_of(first)[0], self.geometry.panes_of(last)[1]
        made, rows = (
            [
                as_window(each, first) if first == last else self._written(each, first, last)
                for each in runs.between(*span)
            ]
            for runs in (self._runs, self._rows)
        )
        return self._grouped(made, rows)

    def _written(self, table: pa.Table, first: int, last: int) -> pa.Table:
        lowest, highest = self.geometry.windows_of(table.column(PANE).to_numpy())
        return for_windows(table, np.maximum(lowest, first), np.minimum(highest, last))

    def _grouped(self, made: list[pa.Table], rows: list[pa.Table]) -> pa.Table:
        """Partials and rows of the same windows as one."""
        if rows:
            made = [*made, self.partials.of_rows([batch for table in rows for batch in table.to_batches()])]
        return made[0] if rows and len(made) == 1 else self.partials.merged(made)


def _together(first: tuple[Integers, Integers], second: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    """Panes in order with how many rows each has, of two such counts."""
    if not len(second[0]):
        return first
    panes, places = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
    counts = np.zeros(len(panes), np.int64)
    np.add.at(counts, places, np.concatenate([first[1], second[1]]))
    return panes, counts


def partials_together(partials: Partials, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> pa.Table:
    """The partials of tagged rows, and of partials that a lower level made, as one table."""
    tables = [*made, partials.of_rows(rows)] if rows else list(made)
    return tables[0] if len(tables) == 1 else partials.merged(tables)


def for_windows(table: pa.Table, lowest: Integers, highest: Integers) -> pa.Table:
    """Each row once for every window from its lowest to its highest, under the window's number."""
    counts = np.maximum(highest - lowest + 1, 0)
    rows = table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    return rows.set_column(rows.schema.get_field_index(PANE), PANE, pa.array(ranges(lowest, counts)))
