"""Trailing windows: a result for each row, over what came before it in its group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RunError
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Element,
    Microseconds,
    Punctuation,
    Times,
)
from millrace.kernel.folding import folded, leaves
from millrace.kernel.keyed import HASH, Hashes, KeyedRuns, groups_of
from millrace.kernel.operators.operator import Operator
from millrace.kernel.partials import PANE, Partials
from millrace.kernel.runs import concat_tables
from millrace.kernel.sorting import starts
from millrace.kernel.state import Changes
from millrace.kernel.stores import joined, parted
from millrace.kernel.waiting import WaitingRows
from millrace.kernel.windowed import Bounds, row_bounds, time_bounds, windowed

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Instants:
    """Partials of the rows of equal group and time, by group and time; how many rows they are."""

    codes: Numbers
    times: Times
    counts: Numbers
    partials: pa.Table
    """With the keys and their hash."""


class TrailingAggregate(Operator):
    """For each row, aggregate the rows of its group from `range` before it up to its own time (None: from the first).

    Rows of equal time count for each other, so a row is answered when the bound is past its time.
    State: the rows that some later row may look back to; without a range, the rows that wait, and one row of partials
    a group, at most `state_limit` of them. Punctuations: passed on, for the time of a result is that of its row.
    """

    label = "trailing aggregate"
    holds = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self, partials: Partials, range: int | None, *, counts_rows: bool = False, state_limit: int | None = None
    ) -> None:
        self.partials = partials
        self.range = range
        self.counts_rows = counts_rows
        self.state_limit = state_limit
        self._rows = WaitingRows(partials)
        self._groups = KeyedRuns()
        self._bound: Microseconds = NO_BOUND
        self._least: Microseconds | None = None
        """The least time of a row that has not been answered."""
        self._timed = False

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
            self._least = self._rows.least(until)
        self._bound = until
        self._let_go(until)
        yield punctuation

    def _answers(self, until: Microseconds) -> Iterator[Batch]:
        """The results of all rows before a bound that have not been answered."""
        instants = self._instants(self._ready(until))
        if self.range is None:
            instants = self._behind_groups(instants)
        firsts = self._firsts(instants)
        answered = np.flatnonzero((instants.times >= self._bound) & (instants.counts > 0))
        for part, fold in folded(self.partials, instants.partials, firsts[answered], answered + 1):
            yield self._results(instants, answered[part], fold)
        if self.range is None:
            self._keep_groups(instants)

    def _ready(self, until: Microseconds) -> pa.Table:
        """The rows to be answered, and those of their groups that they look back to."""
        answered = concat_tables(self._rows.between(self._bound, until - 1))
        if self.range is None or self._bound == NO_BOUND:
            return answered
        groups = pa.array(np.unique(_hashes(answered)))
        before = self._rows.between(max(self._bound - self.range, NO_BOUND), self._bound - 1)
        needed = [table.filter(pc.is_in(table.column(HASH), value_set=groups)) for table in before]
        return concat_tables([*needed, answered])

    def _instants(self, rows: pa.Table) -> _Instants:
        codes, times = groups_of(rows, self.partials.keys), rows.column(PANE).to_numpy()
        order = np.lexsort((times, codes))
        codes, times = codes[order], times[order]
        cuts = starts(codes) | starts(times)
        panes = np.empty(len(order), np.int64)
        panes[order] = np.cumsum(cuts) - 1
        made = leaves(self.partials, rows, panes).drop_columns([PANE])
        made = made.append_column(HASH, rows.column(HASH).take(pa.array(order[cuts])))
        return _Instants(codes[cuts], times[cuts], np.bincount(panes), made)

    def _behind_groups(self, instants: _Instants) -> _Instants:
        """The instants, each group's behind what is held of it: as an instant before all others, of no rows."""
        held = self._groups.get(instants.partials.column(HASH).to_numpy())
        if not held:
            return instants
        made = concat_tables([*held, instants.partials])
        before = made.num_rows - len(instants.codes)
        codes = groups_of(made, self.partials.keys)
        times = np.concatenate([np.full(before, NO_BOUND), instants.times])
        counts = np.concatenate([np.zeros(before, np.int64), instants.counts])
        order = np.lexsort((times, codes))
        return _Instants(codes[order], times[order], counts[order], made.take(pa.array(order)))

    def _keep_groups(self, instants: _Instants) -> None:
        """Hold all that there is of each group as one row of partials."""
        begins = np.flatnonzero(starts(instants.codes))
        ends = np.append(begins[1:], len(instants.codes))
        folds = [fold for _, fold in folded(self.partials, instants.partials, begins, ends)]
        heads = instants.partials.take(pa.array(begins))
        self._groups.put(_hashes(heads), _replaced(heads, concat_tables(folds)))
        if self.state_limit is not None and len(self._groups) > self.state_limit:
            raise RunError(
                f"a window over all rows before holds more than {self.state_limit} groups",
                hint="Raise state_limit in the query's options, or give the window a range.",
            )

    def _firsts(self, instants: _Instants) -> Numbers:
        """The first instant that each one looks back to."""
        if self.range is None:
            begins = np.flatnonzero(starts(instants.codes))
            return np.repeat(begins, np.diff(np.append(begins, len(instants.codes))))
        distinct, ranks = np.unique(instants.times, return_inverse=True)
        base = instants.codes * len(distinct)
        found: Numbers = np.searchsorted(base + ranks, base + np.searchsorted(distinct, instants.times - self.range))
        return found

    def _results(self, instants: _Instants, chosen: Numbers, fold: pa.Table) -> Batch:
        """A result for each row of the chosen instants."""
        copies = np.repeat(np.arange(len(chosen)), instants.counts[chosen])
        made = _replaced(instants.partials.take(pa.array(chosen)), fold).take(pa.array(copies))
        times = instants.times[chosen][copies]
        return windowed(self.partials, self._bounds(times), made, times, timed=self._timed)

    def _bounds(self, times: Times) -> Bounds:
        ends = times + 1 if self.counts_rows else times
        firsts = times if self.range is None else times - self.range
        bounds = row_bounds(firsts, ends) if self.counts_rows else time_bounds(firsts, ends)
        return bounds if self.range is not None else (pa.nulls(len(times), bounds[0].type), bounds[1])

    def _let_go(self, until: Microseconds) -> None:
        """Drop the rows that nobody will look back to."""
        if until == END_OF_TIME:
            self._rows.drop(until)
        elif self.range is None:
            self._rows.drop(until - 1)
        elif until - self.range > NO_BOUND:
            self._rows.drop(until - self.range - 1)

    def wanted(self) -> Microseconds | None:
        return None if self._least is None else self._least + 1

    @property
    def held(self) -> int:
        return len(self._rows) + len(self._groups)

    @property
    def state_bytes(self) -> int:
        return self._rows.nbytes + self._groups.nbytes

    def changes(self) -> Changes:
        note = {"bound": self._bound, "timed": self._timed}
        return joined([self._rows.changes(), self._groups.changes()], note)

    def restore(self, changes: Changes) -> None:
        rows, groups = parted(changes)
        self._rows.restore(rows)
        self._groups.restore(groups)
        self._bound, self._timed = changes.note["bound"], changes.note["timed"]
        self._least = self._rows.least(self._bound)


def _hashes(table: pa.Table) -> Hashes:
    hashes: Hashes = table.column(HASH).to_numpy()
    return hashes


def _replaced(heads: pa.Table, fold: pa.Table) -> pa.Table:
    """The rows of `heads` with the partials of `fold`."""
    for place, name in enumerate(heads.schema.names):
        if name in fold.schema.names:
            heads = heads.set_column(place, name, fold.column(name))
    return heads
