"""How sliding windows share panes: each window is combined of two tables, however many panes it has.

Some windows that follow each other all reach the end of the first of them. Each consists of what lies before that
instant, its head, and what lies after it, its tail. The heads are made at once, each from the head of the next window;
the tail grows from window to window. All of it is made of panes that a bound has passed, so none of it can change.

    first window    [ head ........ )
    second window        [ head ... ) tail ]
    third window               [ hd ) tail ...... ]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.stores.sorted_runs import SortedRuns


class SharedPanes:
    """The heads and the tail of the windows from `first` on, at most `most` of them, over the panes in some runs."""

    def __init__(self, partials: Partials, runs: SortedRuns, first: int, most: int) -> None:
        self.partials = partials
        starts, ends = partials.geometry.pane_spans(np.arange(first, first + most))
        self._runs = runs
        self._end = int(ends[0])
        """How far the tail reaches."""
        self._tail: list[pa.Table] = []
        self._heads = self._made(first, starts[starts < self._end].tolist())

    def __contains__(self, window: int) -> bool:
        return window in self._heads

    @property
    def nbytes(self) -> int:
        """The memory of all heads and of the tail."""
        return sum(int(table.nbytes) for head in (*self._heads.values(), self._tail) for table in head)

    def window(self, window: int) -> list[pa.Table]:
        """The tables that make up a window, under its number; called in order, once per window."""
        stop = self.partials.geometry.panes_of(window)[1] + 1
        fresh = self._panes(self._end, stop)
        self._tail, self._end = self._folded([*self._tail, *fresh]) if fresh else self._tail, stop
        return [as_window(table, window) for table in (*self._heads.pop(window), *self._tail)]

    def _made(self, first: int, starts: list[int]) -> dict[int, list[pa.Table]]:
        heads: dict[int, list[pa.Table]] = {}
        head: list[pa.Table] = []
        stop = self._end
        for place, start in reversed(list(enumerate(starts))):
            head, stop = self._folded([*head, *self._panes(start, stop)]), start
            heads[first + place] = head
        return heads

    def _panes(self, start: int, stop: int) -> list[pa.Table]:
        """The partials of the panes from `start` up to `stop`, without their numbers."""
        return [table.drop_columns([PANE]) for table in self._runs.between(start, stop - 1)]

    def _folded(self, tables: list[pa.Table]) -> list[pa.Table]:
        """Partials of the same keys as one table; none if there are none."""
        return [self.partials.over_panes(tables)] if tables else []


def as_window(table: pa.Table, window: int) -> pa.Table:
    """All rows under one window's number."""
    numbers = pa.array(np.full(table.num_rows, window))
    place = table.schema.get_field_index(PANE)
    return table.add_column(0, PANE, numbers) if place < 0 else table.set_column(place, PANE, numbers)
