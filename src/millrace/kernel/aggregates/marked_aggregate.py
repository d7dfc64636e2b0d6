"""Window aggregate above a queue of windows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.aggregate_operator import AggregateOperator
from millrace.kernel.aggregates.panes.panes import for_windows
from millrace.kernel.aggregates.panes.window_results import window_bounds, window_results
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import (
    MARK,
    Batch,
    Element,
    GroupPunctuation,
    Mask,
    concat,
    concat_tables,
)
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns


class MarkedAggregate(AggregateOperator):
    """Aggregate the rows of each commitment of a queue of windows, by window and keys (002 section 6.1.3).

    The closer of a commitment says where its window ends: `until`. Reported are the windows that lie in the last `span`
    before it, each that holds a row. With one aggregate that is the window itself. Where an aggregate of range r2 is
    above one of range r1 and slide s1, the queue commits to windows of r2 + r1 - s1: the lower one reports its windows
    in all of it, and these are all whose results are in the last r2, the window that the upper one reports.

    Results have the columns of a window aggregate, and carry the mark on. Closers are passed on behind their results.

    State: partial aggregates by mark, pane and keys; with `buffered`, or where partials cannot merge, the rows.
    Punctuations: passed on; they close nothing.
    """

    label = "marked_aggregate"

    def __init__(self, partials: Partials, span: int, *, buffered: bool = False) -> None:
        super().__init__(Partials(partials.geometry, [MARK, *partials.keys], partials.calls))
        self.geometry = partials.geometry
        self.span = span
        self.buffered = buffered or not partials.mergeable
        self._single = span == partials.geometry.range
        """True if a commitment is one window: then its rows are one pane, whose number is not known before the end."""
        self._units = KeyedRuns()
        self.stores = (self._units,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._gather(batch)
        return iter(())

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        marks = punctuation.keys.column(MARK).to_numpy()
        tables = self._closing(marks)
        if tables:
            order = np.argsort(marks)
            yield from self._report(tables, marks[order], punctuation.until[order])
        yield punctuation

    def _settle(self) -> None:
        self._closing(np.empty(0, np.int64))

    def _closing(self, closing: Integers) -> list[pa.Table]:
        """Keep the gathered rows, except those of marks that close; these, and what was kept of such marks."""
        new = self._tagged()
        found = self._units.get(closing) if len(closing) else []
        if found:
            self._units.put(closing, found[0].slice(0, 0))
        if new is None:
            return found
        marks: Integers = new.column(HASH).to_numpy()
        closes: Mask = np.isin(marks, closing)
        if closes.any():
            found.append(new.filter(pa.array(closes)))
        if not closes.all():
            self._keep(new.filter(pa.array(~closes)), marks[~closes])
        return found

    def _tagged(self) -> pa.Table | None:
        """The gathered rows as partials or, buffered, as rows, with marks as hashes."""
        if not self._gathered:
            return None
        rows = self.partials.tagged(concat(self._take_gathered()))
        if self._single:
            rows = rows.set_column(0, PANE, pa.array(np.zeros(rows.num_rows, np.int64)))
        table = pa.Table.from_batches([rows]) if self.buffered else self.partials.of_rows([rows])
        return table.append_column(HASH, table.column(MARK))

    def _keep(self, rows: pa.Table, marks: Integers) -> None:
        held = self._units.get(marks)
        tables = [*(each.select(rows.schema.names) for each in held), rows]
        if self.buffered:
            self._units.put(marks, concat_tables(tables))
        elif held:
            merged = self.partials.merged_by(tables, [PANE, *self.partials.keys, HASH])
            self._units.put(marks, merged.select(rows.schema.names))
        else:
            self._units.put(marks, rows)

    def _report(self, tables: list[pa.Table], marks: Integers, until: Integers) -> Iterator[Batch]:
        """The windows of marks, which are in order, in the last `span` before the end of each."""
        rows = concat_tables([table.select(tables[0].schema.names) for table in tables]).drop_columns([HASH])
        ends = until[np.searchsorted(marks, rows.column(MARK).to_numpy())]
        if self._single:
            rows = rows.set_column(rows.schema.get_field_index(PANE), PANE, pa.array(self.geometry.closed_by(ends)))
            yield self._results(self._grouped(rows))
            return
        lowest, highest = self.geometry.windows_of(rows.column(PANE).to_numpy())
        highest = np.minimum(highest, self.geometry.closed_by(ends))
        lowest = np.maximum(lowest, self._first_in(ends))
        windows = for_windows(rows, lowest, highest)
        if windows.num_rows:
            yield self._results(self._grouped(windows))

    def _first_in(self, ends: Integers) -> Integers:
        """The first window that is reported of each mark."""
        windows: Integers = -((self.geometry.origin - (ends - self.span)) // self.geometry.slide)
        return windows

    def _grouped(self, windows: pa.Table) -> pa.Table:
        return self.partials.of_rows(windows.to_batches()) if self.buffered else self.partials.merged([windows])

    def _results(self, windows: pa.Table) -> Batch:
        panes: Integers = windows.column(PANE).to_numpy()
        if bool((panes[1:] < panes[:-1]).any()):
            # A group may have several windows at once: the newest is the last.
            order = np.argsort(panes, kind="stable")
            windows, panes = windows.take(pa.array(order)), panes[order]
        starts, ends = self.geometry.bounds(panes)
        return window_results(self.partials, windows, window_bounds(starts, ends), ends - 1, timed=self._timed)
