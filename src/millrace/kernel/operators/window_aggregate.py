"""Window aggregate by window id, over shared panes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.elements import (
    ARRIVED,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    Microseconds,
    Punctuation,
    concat,
)
from millrace.kernel.operators.operator import Operator
from millrace.kernel.partials import PANE, Partials
from millrace.kernel.runs import SortedRuns
from millrace.kernel.state import Changes

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_FEW = 2**18
"""Rows are gathered up to this number before they are aggregated, so that single rows cost little."""

_SMALL = 256
"""Batches of fewer rows than this, on average, are put together before they are aggregated."""

_LONG_AGO = -(2**62)
"""A window number before any that a row can be in, with room to count on."""

Numbers = npt.NDArray[np.int64]


class WindowAggregate(Operator):
    """Aggregate rows, or partials that a `PreAggregate` made of rows, by window id and keys (004 Fig. A-3).

    State: partial aggregates by pane and keys, in sorted runs. Punctuations: a bound closes every window that ends
    at or before it, and is passed on: the time of a result is the last instant of its window. In order (the baseline
    of 001 section 6) it is passed on at the ends of windows only, unless it is an ETS.
    """

    label = "window aggregate"
    holds = True
    senses_bounds = True

    def __init__(self, partials: Partials, *, in_order: bool = False) -> None:
        self.partials = partials
        self.in_order = in_order
        self.frames = partials.frames
        self._panes = SortedRuns(PANE, partials.merged)
        self._rows: list[Batch] = []
        self._made: list[pa.Table] = []
        """Rows, and partials made by a lower level, that have been gathered but not settled."""
        self._gathered = 0
        self._least_gathered: int | None = None
        self._timed = False
        """Whether rows carry their arrival: then results have the column too, so that both can meet in a union."""
        self._closed = NO_BOUND
        """The last bound: every window that ends at or before it has been reported."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if PANE in batch.block.rows.schema.names:
            made = pa.Table.from_batches([batch.rows.drop_columns([TIME])])
            self._made.append(made)
            self._gather(made.column(PANE).to_numpy())
            return iter(())
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        panes = self.frames.panes(batch.times)
        covered = self.frames.covered(panes)
        if covered is not None:
            batch, panes = batch.where(covered), panes[covered]
        if len(panes):
            self._rows.append(batch)
            self._gather(panes)
        return iter(())

    def _gather(self, panes: Numbers) -> None:
        if len(panes):
            least = int(panes[0]) if len(panes) == 1 else int(panes.min())
            self._least_gathered = least if self._least_gathered is None else min(least, self._least_gathered)
            self._gathered += len(panes)
        if self._gathered >= _FEW:
            self._settle()

    def _settle(self) -> None:
        """Keep what has been gathered as one run of partials."""
        if self._gathered:
            rows = self._rows if self._gathered >= _SMALL * len(self._rows) else [concat(self._rows)]
            of_rows = [self.partials.of_rows([self.partials.tagged(batch) for batch in rows])] if rows else []
            made = [*self._made, *of_rows]
            self._panes.add(made[0] if len(made) == 1 else self.partials.merged(made))
        self._rows, self._made, self._gathered, self._least_gathered = [], [], 0, None

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        wanted = self.wanted()
        if wanted is not None and wanted <= until:
            self._settle()
            yield from self._closing(until)
        self._closed = until
        yield Punctuation(self.usable(until)) if self.in_order and not punctuation.ets else punctuation

    def usable(self, until: Microseconds) -> Microseconds:
        return self.frames.usable(until)

    def _closing(self, until: Microseconds) -> Iterator[Element]:
        last = self.frames.last_closed(until)
        closing = self._tumbled(last) if self.frames.tumbling else self._slid(last)
        for numbers, partials in closing:
            yield self._results(numbers, partials)
        # A pane is done with when the last window that holds it has been closed.
        self._panes.drop(self.frames.panes_of(last + 1)[0] - 1)

    def _tumbled(self, last: int) -> Iterator[tuple[Numbers, pa.Table]]:
        """The windows up to number `last` that hold a row, all at once: a window is a pane."""
        panes = self._panes.between(None, last)
        if panes:
            merged = self.partials.merged(panes)
            yield merged.column(PANE).to_numpy(), merged

    def _slid(self, last: int) -> Iterator[tuple[Numbers, pa.Table]]:
        """The windows up to number `last` that hold a row, one after another."""
        lowest, highest = self.frames.windows_of(self._panes.keys())
        for number in _numbers(np.maximum(lowest, self._first_open()), np.minimum(highest, last)):
            merged = self.partials.over_panes(self._panes.between(*self.frames.panes_of(number)))
            yield np.full(merged.num_rows, number), merged

    def _first_open(self) -> int:
        return max(self.frames.last_closed(self._closed) + 1, _LONG_AGO)

    def _results(self, numbers: Numbers, partials: pa.Table) -> Batch:
        starts, ends = self.frames.bounds(numbers)
        keys, values = map(partials.column, self.partials.keys), self.partials.results(partials)
        columns = [*keys, *values, pa.array(ends - 1)]
        names = [*self.partials.keys, *(each.name for each in self.partials.aggregations), TIME]
        if self.frames.has_bounds:
            columns = [pa.array(starts).cast(_TIMESTAMP), pa.array(ends).cast(_TIMESTAMP), *columns]
            names = ["window_start", "window_end", *names]
        if self._timed:
            columns.append(pa.array(np.full(len(numbers), NO_BOUND)))
            names.append(ARRIVED)
        return Batch(pa.table(columns, names=names).combine_chunks().to_batches()[0])

    def wanted(self) -> Microseconds | None:
        held = [pane for pane in (self._panes.least(), self._least_gathered) if pane is not None]
        if not held:
            return None
        return self.frames.end(max(self.frames.first_window(min(held)), self._first_open()))

    @property
    def held(self) -> int:
        return len(self._panes) + self._gathered

    @property
    def state_bytes(self) -> int:
        return (
            self._panes.nbytes
            + sum(int(each.nbytes) for each in self._made)
            + sum(int(batch.rows.nbytes) for batch in self._rows)
        )

    def changes(self) -> Changes:
        self._settle()
        changes = self._panes.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "closed": self._closed, "timed": self._timed})

    def restore(self, changes: Changes) -> None:
        self._panes.restore(changes)
        self._closed, self._timed = changes.note["closed"], changes.note["timed"]


def _numbers(lowest: Numbers, highest: Numbers) -> list[int]:
    """The window numbers in some of the spans, in order."""
    found = [np.arange(low, high + 1) for low, high in zip(lowest, highest, strict=True) if low <= high]
    return [int(number) for number in np.unique(np.concatenate(found))] if found else []
