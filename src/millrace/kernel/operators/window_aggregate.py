"""Window aggregate by window id, over shared panes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.aggregates import AGGREGATES, Partial
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, Microseconds, Punctuation
from millrace.kernel.grouping import Call, group
from millrace.kernel.operators.operator import Operator
from millrace.kernel.runs import SortedRuns
from millrace.kernel.state import Changes

PANE = "__pane"
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_FEW = 2**18
"""Rows are gathered up to this number before they are aggregated, so that single rows cost little."""

_LONG_AGO = -(2**62)
"""A window number before any that a row can be in, with room to count on."""

_PartialColumn = tuple[str, Partial, str | None]
"""A column of partials: its name, how it is made, and of which input column."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate: its output name, its function and its input column (None: `count(*)`)."""

    name: str
    function: str
    column: str | None


class WindowAggregate(Operator):
    """Aggregate rows by window id and keys (004 Fig. A-3, with the notes on it).

    A row falls into one pane, the greatest common divisor of range and slide; a window is a row of panes, so the
    cost of a row does not depend on how many windows it is in.
    State: partial aggregates by pane and keys, in sorted runs. Punctuations: a bound closes every window that ends
    at or before it; the bound that leaves speaks of `window_start`, which is the time of a result.
    """

    label = "window aggregate"
    bound_sensitive = True

    def __init__(self, range: int, slide: int, keys: Sequence[str], aggregations: Sequence[Aggregation]) -> None:
        self.range = range
        self.slide = slide
        self.width = math.gcd(range, slide)
        self.keys = list(keys)
        self.aggregations = tuple(aggregations)
        self._partials = _partial_columns(self.aggregations)
        self._panes = SortedRuns(PANE, self._merged)
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = 0
        self._least_gathered: int | None = None
        self._closed = NO_BOUND
        """The last bound: every window that ends at or before it has been reported."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        panes = np.floor_divide(batch.times, self.width)
        inputs = list(dict.fromkeys([*self.keys, *(each.column for each in self.aggregations if each.column)]))
        columns = [pa.array(panes), *(batch.rows.column(name) for name in inputs)]
        rows = pa.RecordBatch.from_arrays(columns, names=[PANE, *inputs])
        if self.slide > self.range:
            rows = rows.filter(pa.array((panes * self.width) % self.slide < self.range))
        if rows.num_rows:
            self._gather(rows)
        return iter(())

    def _gather(self, rows: pa.RecordBatch) -> None:
        least = int(pc.min(rows.column(PANE)).as_py())
        self._least_gathered = least if self._least_gathered is None else min(least, self._least_gathered)
        self._gathered.append(rows)
        self._gathered_rows += rows.num_rows
        if self._gathered_rows >= _FEW:
            self._settle()

    def _settle(self) -> None:
        """Turn the gathered rows into partials."""
        if self._gathered:
            self._panes.add(self._aggregated(pa.Table.from_batches(self._gathered)))
            self._gathered, self._gathered_rows, self._least_gathered = [], 0, None

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        wanted = self.wanted()
        if wanted is not None and wanted <= until:
            self._settle()
            yield from self._closing(until)
        self._closed = until
        yield Punctuation(self._promise(until))

    def _closing(self, until: Microseconds) -> Iterator[Element]:
        last = (until - self.range) // self.slide
        for windows in self._windows_ending(last):
            yield self._results(windows)
        # A pane is done with when the last window that holds it has been closed.
        self._panes.drop(((last + 1) * self.slide - 1) // self.width)

    def _windows_ending(self, last: int) -> Iterator[tuple[pa.Array | int, pa.Table]]:
        """The windows up to number `last` that hold a row: their number, and the partials of their panes."""
        per_slide = self.slide // self.width
        if self.range == self.slide:
            panes = self._panes.between(None, last)
            if panes:
                table = self._merged(panes)
                yield table.column(PANE), table
            return
        first = self._first_open()
        held = self._panes.keys()
        for number in _numbers(held, first, last, per_slide, self.range // self.width):
            begin = number * per_slide
            panes = self._panes.between(begin, begin + self.range // self.width - 1)
            yield number, self._merged([_without_pane(table) for table in panes])

    def _first_open(self) -> int:
        return max((self._closed - self.range) // self.slide + 1, _LONG_AGO)

    def _results(self, windows: tuple[pa.Array | int, pa.Table]) -> Batch:
        number, partials = windows
        numbers = np.full(partials.num_rows, number) if isinstance(number, int) else number.to_numpy()
        starts = pa.array(numbers * self.slide)
        ends = pa.array(numbers * self.slide + self.range)
        values = [self._result(partials, each) for each in self.aggregations]
        columns = [starts.cast(_TIMESTAMP), ends.cast(_TIMESTAMP), *map(partials.column, self.keys), *values, starts]
        names = ["window_start", "window_end", *self.keys, *(each.name for each in self.aggregations), TIME]
        return Batch(pa.table(columns, names=names).combine_chunks().to_batches()[0])

    def _result(self, partials: pa.Table, aggregation: Aggregation) -> pa.ChunkedArray:
        columns = [partials.column(name) for name, _, _ in self._partials[aggregation.name]]
        return AGGREGATES[aggregation.function].result(columns)

    def _promise(self, until: Microseconds) -> Microseconds:
        if until == END_OF_TIME:
            return until
        return max(((until - self.range) // self.slide + 1) * self.slide, NO_BOUND)

    def wanted(self) -> Microseconds | None:
        held = [pane for pane in (self._panes.least(), self._least_gathered) if pane is not None]
        if not held:
            return None
        first = (min(held) * self.width - self.range) // self.slide + 1
        return max(first, self._first_open()) * self.slide + self.range

    def required(self, until: Microseconds) -> Microseconds:
        return until - self.slide + self.range

    @property
    def held(self) -> int:
        return len(self._panes) + self._gathered_rows

    @property
    def state_bytes(self) -> int:
        return self._panes.nbytes + sum(int(rows.nbytes) for rows in self._gathered)

    def changes(self) -> Changes:
        self._settle()
        changes = self._panes.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "closed": self._closed})

    def restore(self, changes: Changes) -> None:
        self._panes.restore(changes)
        self._closed = changes.note["closed"]

    def _aggregated(self, rows: pa.Table) -> pa.Table:
        return self._grouped(rows, [(column, partial.from_rows) for _, partial, column in self._partial_list()])

    def _merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        calls: list[Call] = [(name, partial.merge) for name, partial, _ in self._partial_list()]
        return self._grouped(pa.concat_tables(tables), calls)

    def _grouped(self, rows: pa.Table, calls: list[Call]) -> pa.Table:
        by = [name for name in (PANE, *self.keys) if name in rows.schema.names]
        return group(rows, by, calls, [name for name, _, _ in self._partial_list()])

    def _partial_list(self) -> list[_PartialColumn]:
        return [column for columns in self._partials.values() for column in columns]


def _partial_columns(aggregations: Sequence[Aggregation]) -> dict[str, list[_PartialColumn]]:
    """The columns of each aggregate's partials."""
    return {
        each.name: [
            (f"__p{position}_{place}", partial, each.column)
            for place, partial in enumerate(AGGREGATES[each.function].partials)
        ]
        for position, each in enumerate(aggregations)
    }


def _numbers(panes: np.ndarray, first: int, last: int, per_slide: int, per_range: int) -> list[int]:
    """The window numbers from `first` to `last` that hold one of `panes`, in order."""
    lowest = np.maximum((panes - per_range) // per_slide + 1, first)
    highest = np.minimum(panes // per_slide, last)
    found = [np.arange(low, high + 1) for low, high in zip(lowest, highest, strict=True) if low <= high]
    return [int(number) for number in np.unique(np.concatenate(found))] if found else []


def _without_pane(table: pa.Table) -> pa.Table:
    return table.drop_columns([PANE])
