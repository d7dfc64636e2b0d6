"""Trailing windows: a result for each row, over what came before it in its group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RunError
from millrace.kernel.aggregates.panes.window_results import Bounds, window_bounds, window_results
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.aggregates.time_partials import TimePartials, partial_inputs, points_of, running, within
from millrace.kernel.aggregates.two_stacks import TwoStacks, small
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Element,
    Microseconds,
    Punctuation,
    Times,
    concat_tables,
)
from millrace.kernel.operator import StoringOperator
from millrace.kernel.state import Changes
from millrace.kernel.stores.hold_buffer import HoldBuffer
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns


class TrailingAggregate(StoringOperator):
    """For each row, aggregate the rows of its group from `range` before it up to its own time (None: from the first).

    Rows of equal time count for each other, so a row is answered when the bound is past its time.
    State: the rows that some later row may look back to; without a range, the rows that wait, and one row of partials
    per group, at most `state_limit` of them. Where partials are small, what lies in range is also held folded, never
    saved, so that a row costs the same however many it looks back to. Punctuations: passed on, for the time of a
    result is that of its row.
    """

    label = "trailing aggregate"
    holds = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("bound", "timed")

    def __init__(
        self,
        partials: Partials,
        range: int | None,
        *,
        counts_rows: bool = False,
        has_numbers: bool = False,
        state_limit: int | None = None,
    ) -> None:
        self.partials = partials
        self.range = range
        self.counts_rows = counts_rows
        self.has_numbers = has_numbers or counts_rows
        self.state_limit = state_limit
        self._rows = HoldBuffer(PANE, partial_inputs(partials))
        self._groups = KeyedRuns()
        self._stacked = small(partials)
        self._stacks: TwoStacks | None = None
        self._bound: Microseconds = NO_BOUND
        self._least: Microseconds | None = None
        """The least time of a row that has not been answered."""
        self._timed = False
        self.stores = (self._rows, self._groups)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        least = int(batch.times.min())
        self._least = least if self._least is None else min(self._least, least)
        self._rows.add(batch)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        if self._least is not None and self._least < until:
            yield from self._answers(until)
            self._least = self._rows.least_from(until)
        self._bound = until
        self._drop(until)
        yield punctuation

    def _answers(self, until: Microseconds) -> Iterator[Batch]:
        """The results of all rows before a bound that have not been answered."""
        rows = concat_tables(self._rows.between(self._bound, until - 1))
        for points in self._unlimited(rows) if self.range is None else self._limited(rows, self.range):
            yield self._results(points)

    def _unlimited(self, rows: pa.Table) -> Iterator[TimePartials]:
        """What rows look back to, with all that there is of their groups."""
        yield from running(self.partials, points_of(self.partials, rows), self._groups)
        if self.state_limit is not None and len(self._groups) > self.state_limit:
            raise RunError(
                f"a window over all rows before holds more than {self.state_limit} groups",
                hint="Raise state_limit in the query's options, or give the window a range.",
            )

    def _limited(self, rows: pa.Table, range: int) -> Iterator[TimePartials]:
        """What rows look back to over a range."""
        last = int(rows.column(PANE).to_numpy().max())
        # When the bound goes on by more than a range, each row before it is looked back to from here for the last time.
        if not self._stacked or last - self._bound > range:
            self._stacks = None
            points = points_of(self.partials, concat_tables([*self._looked_back(rows, range), rows]))
            return within(self.partials, points, range, self._bound)
        if self._stacks is None or not self._stacks.reach(last):
            self._stacks = TwoStacks(self.partials, range, self._bound, self._before(range))
        return self._stacks.looked_back(points_of(self.partials, rows))

    def _looked_back(self, rows: pa.Table, range: int) -> list[pa.Table]:
        """The rows before the bound that some of the given rows look back to."""
        groups = pa.array(np.unique(rows.column(HASH).to_numpy()))
        return [table.filter(pc.is_in(table.column(HASH), value_set=groups)) for table in self._before(range)]

    def _before(self, range: int) -> list[pa.Table]:
        """The rows up to a range before the bound."""
        if self._bound == NO_BOUND:
            return []
        return self._rows.between(max(self._bound - range, NO_BOUND), self._bound - 1)

    def _results(self, points: TimePartials) -> Batch:
        """A result for each row of some points."""
        copies = np.repeat(np.arange(len(points.codes)), points.counts)
        times = points.times[copies]
        made = points.partials.take(pa.array(copies))
        return window_results(self.partials, made, self._bounds(times), times, timed=self._timed)

    def _bounds(self, times: Times) -> Bounds:
        ends = times + 1 if self.counts_rows else times
        firsts = times if self.range is None else times - self.range
        bounds = window_bounds(firsts, ends, numbers=self.has_numbers)
        return bounds if self.range is not None else (pa.nulls(len(times), bounds[0].type), bounds[1])

    def _drop(self, until: Microseconds) -> None:
        """Drop the rows that no later row looks back to."""
        if until == END_OF_TIME:
            self._rows.drop(until)
            self._stacks = None
        elif self.range is None:
            self._rows.drop(until - 1)
        elif until - self.range > NO_BOUND:
            self._rows.drop(until - self.range - 1)

    def wanted(self) -> Microseconds | None:
        return None if self._least is None else self._least + 1

    @property
    def state_bytes(self) -> int:
        return super().state_bytes + (0 if self._stacks is None else self._stacks.nbytes)

    def restore(self, changes: Changes) -> None:
        super().restore(changes)
        self._least = self._rows.least_from(self._bound)
        self._stacks = None
