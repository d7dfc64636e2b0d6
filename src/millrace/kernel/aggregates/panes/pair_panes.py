"""What an aggregate by pairs of times holds, and how promises about pairs close them (004 section 7).

Rules:
- The pane of a pair is the later of its two times, so a bound on it closes pairs from the front of the sorted runs.
- A promise about pairs closes pairs anywhere in the runs. Their partials stay where they are, and the last promise
  tells that they have left, until runs are merged or until they are more than the others: a save writes what changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.panes import Panes
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

Pair = tuple[Microseconds, Microseconds]

_SPARE = 2**8
"""Partials of pairs that have left, up to which runs are not compacted."""


class PairPanes(Panes):
    """Partial aggregates by keys, of which the columns `first` and `second` are times; null is below no bound."""

    def __init__(self, partials: Partials, first: str, second: str) -> None:
        super().__init__(partials)
        self.columns = (first, second)
        self._runs = SortedRuns(PANE, self._merged)
        self._left: Pair = (NO_BOUND, NO_BOUND)
        """Pairs that are below it in both times have left."""
        self._seen: tuple[int, int | None] | None = None
        """How many partials are of pairs that have left, and the least pane of the others; None: not known."""

    def __len__(self) -> int:
        return len(self._runs) - self._looked()[0]

    def add(self, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> None:
        super().add(rows, made)
        self._seen = None

    def next_end(self, gathered: int | None) -> Microseconds | None:
        held = [pane for pane in (self._looked()[1], gathered) if pane is not None]
        return self.geometry.end(min(held)) if held else None

    def close(self, until: Microseconds) -> Iterator[pa.Table]:
        yield from super().close(until)
        self._seen = None

    def close_pairs(self, until: Pair) -> Iterator[pa.Table]:
        """The pairs that are below a promise in both times, each once."""
        if until == self._left or until[0] < self._left[0] or until[1] < self._left[1]:
            return  # What it says of pairs is known, or too little to be kept beside what is.
        tables = self._runs.between(None, max(until) - 1)
        closed = [
            table.filter(pa.array(self._below(table, until) & ~self._below(table, self._left))) for table in tables
        ]
        closed = [table for table in closed if table.num_rows]
        self._left, self._seen = until, None
        if closed:
            yield self.partials.merged(closed)
            self._compact()

    def passed(self, until: Microseconds) -> None:
        super().passed(until)
        least = self._runs.least()
        if least is not None and least < until:
            # All that is left below the bound are pairs that have left.
            self._runs.drop(until - 1)
            self._seen = None

    def changes(self) -> Changes:
        changes = super().changes()
        return Changes(changes.added, changes.removed, {**changes.note, "left": list(self._left)})

    def restore(self, changes: Changes) -> None:
        super().restore(changes)
        first, second = changes.note["left"]
        self._left, self._seen = (first, second), None

    def _tumbled(self, last: int) -> Iterator[pa.Table]:
        tables = self._open(self._runs.between(None, last))
        if tables:
            yield self.partials.merged(tables)

    def _merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Partials of the same pair and keys as one, without pairs that have left; a run is never empty."""
        return self.partials.merged(self._open(tables) or tables)

    def _open(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """The partials of pairs that have not left, without empty tables."""
        tables = [table.filter(pa.array(~self._below(table, self._left))) for table in tables]
        return [table for table in tables if table.num_rows]

    def _compact(self) -> None:
        """Compact the runs if most of their partials are of pairs that have left."""
        gone = self._looked()[0]
        if 2 * gone > len(self._runs) + _SPARE:
            tables = self._open(self._runs.between(None, END_OF_TIME))
            self._runs.clear()
            if tables:
                self._runs.add(self.partials.merged(tables))
            self._seen = None

    def _looked(self) -> tuple[int, int | None]:
        """How many partials are of pairs that have left, and the least pane of the others."""
        if self._seen is None:
            # Later panes than the greater of the two have not left.
            reach = max(self._left)
            masks = [(table, self._below(table, self._left)) for table in self._runs.between(None, reach)]
            panes = [int(table.column(PANE)[int(np.argmin(mask))].as_py()) for table, mask in masks if not mask.all()]
            panes += [int(table.column(PANE)[0].as_py()) for table in self._runs.between(reach, END_OF_TIME)]
            self._seen = sum(int(mask.sum()) for _, mask in masks), min(panes, default=None)
        return self._seen

    def _below(self, table: pa.Table, until: Pair) -> Mask:
        """Which pairs are below a promise in both times."""
        first, second = (
            table.column(name).cast(pa.int64()).fill_null(END_OF_TIME).to_numpy() < bound
            for name, bound in zip(self.columns, until, strict=True)
        )
        mask: Mask = first & second
        return mask
