"""Window aggregate by window id, over shared panes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.aggregates.aggregate_operator import AggregateOperator
from millrace.kernel.aggregates.panes.grouped_panes import GroupedPanes
from millrace.kernel.aggregates.panes.panes import Panes
from millrace.kernel.aggregates.panes.window_results import window_bounds, window_results
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.elements import (
    Batch,
    Element,
    GroupPunctuation,
    Microseconds,
    Punctuation,
    concat,
    without_reserved,
)
from millrace.kernel.metrics import AggregateMetrics

_SMALL = 256
"""Batches of fewer rows than this, on average, are put together before they are aggregated."""


class WindowAggregate(AggregateOperator):
    """Aggregate rows, or partials that a lower level made of rows, by window id and keys (004 Fig. A-3).

    With `buffered`, rows are kept instead of partials, and aggregated when their window closes (004 section 5.5); if it
    `adapts`, it goes on with what takes less, as measured. With `groups`, key columns, the promises for single groups
    close those groups' windows; partials are kept then.

    State: partial aggregates by pane and keys, or rows by pane, in sorted runs; with `groups` by the group's hash.
    Punctuations: a bound closes every window that ends at or before it, and is passed on: the time of a result is the
    last instant of its window. In order (the baseline of 001 section 6) it is passed on at the ends of windows only,
    unless it is an ETS.
    Promises for single groups are passed on too: they hold for the results of each group.
    """

    label = "window aggregate"
    senses_bounds = True

    def __init__(
        self,
        partials: Partials,
        *,
        in_order: bool = False,
        buffered: bool = False,
        adapts: bool = False,
        groups: tuple[str, ...] = (),
        has_numbers: bool = False,
    ) -> None:
        super().__init__(partials)
        self.in_order = in_order
        self.groups = groups
        self.geometry = partials.geometry
        self.has_numbers = has_numbers
        self._panes = GroupedPanes(partials, groups) if groups else Panes(partials, buffered=buffered, adapts=adapts)
        self.stores = (self._panes,)
        self._least_gathered: int | None = None
        """The first pane of rows, and of partials of a lower level, that have been gathered."""

    @property
    def buffered(self) -> bool:
        """True if it keeps rows now, False if it makes partials of them."""
        return isinstance(self._panes, Panes) and self._panes.buffered

    def aggregate_metrics(self) -> AggregateMetrics | None:
        if not isinstance(self._panes, Panes):
            return None
        return AggregateMetrics("rows" if self._panes.buffered else "panes", self._panes.switches)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if _has_panes(batch):
            panes = batch.block.integers(PANE)[batch.start : batch.stop]
        else:
            panes = self.geometry.panes(batch.times)
            covered = self.geometry.covered(panes)
            if covered is not None:
                batch, panes = batch.where(covered), panes[covered]
        if len(panes):
            least = int(panes[0]) if len(panes) == 1 else int(panes.min())
            self._least_gathered = least if self._least_gathered is None else min(least, self._least_gathered)
            self._gather(batch)
        return iter(())

    def _settle(self) -> None:
        """Add what has been gathered to the panes, as one run."""
        count, gathered, self._least_gathered = self._rows, self._take_gathered(), None
        if gathered:
            made = [pa.Table.from_batches([without_reserved(batch.rows)]) for batch in gathered if _has_panes(batch)]
            rows = [batch for batch in gathered if not _has_panes(batch)]
            rows = rows if count >= _SMALL * len(rows) else [concat(rows)]
            self._panes.add([self.partials.tagged(batch) for batch in rows], made)

    @property
    def held_partials(self) -> int:
        kept = 0 if isinstance(self._panes, Panes) and self._panes.buffered else len(self._panes)
        return kept + sum(len(batch) for batch in self._gathered if _has_panes(batch))

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        wanted = self.wanted()
        if wanted is not None and wanted <= until:
            self._settle()
            yield from map(self._results, self._panes.close(until))
        self._panes.passed(until)
        yield Punctuation(self.usable(until)) if self.in_order and not punctuation.ets else punctuation

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        if isinstance(self._panes, GroupedPanes):
            # Rows stay gathered while no promise reaches the end of a window of theirs.
            if self._least_gathered is not None and self._panes.closes(punctuation, self._least_gathered):
                self._settle()
            yield from map(self._results, self._panes.close_groups(punctuation))
            yield punctuation

    def usable(self, until: Microseconds) -> Microseconds:
        return self.geometry.usable(until)

    def _results(self, windows: pa.Table) -> Batch:
        starts, ends = self.geometry.bounds(windows.column(PANE).to_numpy())
        bounds = window_bounds(starts, ends, numbers=self.has_numbers) if self.geometry.has_bounds else None
        return window_results(self.partials, windows, bounds, ends - 1, timed=self._timed)

    def wanted(self) -> Microseconds | None:
        return self._panes.next_end(self._least_gathered)


def _has_panes(batch: Batch) -> bool:
    """True if a batch holds partials of a lower level."""
    return PANE in batch.block.rows.schema.names
