"""Windows that count the rows of each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.errors import RunError
from millrace.kernel.aggregates.panes.window_results import window_bounds, window_results
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.aggregates.span_folds import folded, leaves
from millrace.kernel.aggregates.time_partials import partial_inputs
from millrace.kernel.columns.grouping import groups_of
from millrace.kernel.columns.integers import Integers, ranges, starts
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Element,
    Mask,
    Microseconds,
    Punctuation,
    concat_tables,
)
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns

_NUMBER = "__number"
_SEQUENCE = "__at"
_COUNTS = "__counts"


@dataclass(frozen=True, eq=False)
class _Members:
    """Rows of groups with their partials, by group and number, without a gap in a group's numbers."""

    codes: Integers
    rows: pa.Table

    @property
    def begins(self) -> Integers:
        """Where each group begins."""
        return np.flatnonzero(starts(self.codes))

    @property
    def lasts(self) -> Integers:
        """Where the last row of each group stands."""
        return np.append(self.begins[1:], len(self.codes)) - 1

    def integers(self, name: str) -> Integers:
        """A column of numbers."""
        found: Integers = self.rows.column(name).to_numpy()
        return found

    def of_groups(self, values: Integers) -> Integers:
        """A value per group, laid out by row."""
        return np.repeat(values, self.lasts - self.begins + 1)


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows to be reported: their first and end numbers, and the place of the row that completes each."""

    starts: Integers
    ends: Integers
    places: Integers

    def where(self, mask: Mask | slice) -> _Windows:
        """Some of them."""
        return _Windows(self.starts[mask], self.ends[mask], self.places[mask])


class PartitionedRowsAggregate(StoringOperator):
    """Aggregate the last `rows` rows of a group, at each of its rows or after every `slide` of them (004 section 5.2).

    A row's time is its sequence number; when the bound passes it, it gets its number in its group. Rows where the
    column `where` is not true are numbered, but not aggregated.
    State: the rows that wait; of each group the numbered rows that later windows will hold, and the last one; at most
    `state_limit` groups. Punctuations: passed on, for the time of a result is that of the row that completes it. The
    end completes the windows that are left; the time of their results is that of the last row of the group, but not
    below the bound before.
    """

    label = "partitioned rows"
    holds = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("bound", "count", "timed")

    def __init__(
        self,
        partials: Partials,
        rows: int,
        slide: int | None,
        *,
        where: str | None = None,
        state_limit: int | None = None,
    ) -> None:
        self.partials = partials
        self.rows = rows
        self.slide = slide
        self.where = where
        self.state_limit = state_limit
        self._waiting = HoldBuffer(PANE, partial_inputs(partials, () if where is None else (where,)))
        self._groups = KeyedRuns()
        self._count = 0
        """How many groups there are."""
        self._bound: Microseconds = NO_BOUND
        self._timed = False
        self.stores = (self._waiting, self._groups)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        self._waiting.add(batch)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        if self._waiting.least is not None and self._waiting.least < until:
            yield from self._taken(until)
        if until == END_OF_TIME:
            yield from self._left()
        self._bound = until
        yield punctuation

    def _taken(self, until: Microseconds) -> Iterator[Batch]:
        """Number the rows before a bound, and report the windows they complete."""
        rows = concat_tables(self._waiting.between(None, until - 1))
        self._waiting.drop(until - 1)
        held = self._groups.get(rows.column(HASH).to_numpy())
        members, new = self._members(held, rows)
        yield from self._reported(members, self._completed(members, new))
        self._keep(members)

    def _members(self, held: list[pa.Table], rows: pa.Table) -> tuple[_Members, Mask]:
        """What is held and the new rows behind it, numbered, and which ones are new."""
        made = concat_tables([*held, self._unnumbered(rows)])
        before = made.num_rows - rows.num_rows
        codes = groups_of(made, self.partials.keys)
        order = np.lexsort((made.column(_SEQUENCE).to_numpy(), codes))
        members = _Members(codes[order], made.take(pa.array(order)))
        new: Mask = order >= before
        # What is held of a group begins with the number it has; a group of new rows alone begins with 0.
        firsts = np.where(new[members.begins], 0, members.integers(_NUMBER)[members.begins])
        self._count += int(new[members.begins].sum())
        self._check_limit()
        numbers = np.arange(len(order)) - members.of_groups(members.begins - firsts)
        return _Members(members.codes, _with(members.rows, _NUMBER, pa.array(numbers))), new

    def _unnumbered(self, rows: pa.Table) -> pa.Table:
        """New rows as they will be held, with partials where they count; the number is still missing."""
        counts = self._counts(rows)
        made = leaves(self.partials, rows.filter(pa.array(counts)), np.arange(int(counts.sum())))
        own = [name for name in made.schema.names if name != PANE and name not in self.partials.keys]
        made = made.select(own)
        if not counts.all():
            places = pa.array(np.cumsum(counts) - 1, mask=~counts)
            made = made.take(places)
        names = [HASH, *self.partials.keys]
        return pa.Table.from_arrays(
            [*rows.select(names).columns, pa.array(np.zeros(len(counts), np.int64)), rows.column(PANE),
             pa.array(counts), *made.columns],
            names=[*names, _NUMBER, _SEQUENCE, _COUNTS, *own],
        )  # fmt: skip

    def _counts(self, rows: pa.Table) -> Mask:
        """Which rows are aggregated."""
        if self.where is None:
            return np.ones(rows.num_rows, np.bool_)
        counts: Mask = rows.column(self.where).combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        return counts

    def _completed(self, members: _Members, new: Mask) -> _Windows:
        """The windows that new rows complete."""
        numbers = members.integers(_NUMBER)
        if self.slide is None:
            completing = new & members.rows.column(_COUNTS).to_numpy()
        else:
            completing = new & ((numbers + 1 - self.rows) % self.slide == 0)
        places = np.flatnonzero(completing)
        ends = numbers[places] + 1
        return _Windows(ends - self.rows, ends, places)

    def _left(self) -> Iterator[Batch]:
        """At the end: the windows with a slide that no row will complete."""
        held = self._groups.whole()
        if held and self.slide is not None:
            codes = groups_of(held[0], self.partials.keys)
            order = np.lexsort((held[0].column(_NUMBER).to_numpy(), codes))
            members = _Members(codes[order], held[0].take(pa.array(order)))
            yield from self._reported(members, self._open(members, self.slide))
        self._groups.clear()
        self._count = 0

    def _open(self, members: _Members, slide: int) -> _Windows:
        """The windows that hold rows and have not been completed."""
        lasts = members.integers(_NUMBER)[members.lasts]
        firsts = self._first_needed(lasts + 1) // slide
        counts = np.maximum(lasts // slide - firsts + 1, 0)
        opened = ranges(firsts, counts) * slide
        return _Windows(opened, opened + self.rows, np.repeat(members.lasts, counts))

    def _first_needed(self, counts: Integers) -> Integers:
        """The first row number that later windows of each group hold; `counts` is how many rows each group has."""
        firsts = counts - self.rows + 1
        return firsts if self.slide is None else -(-firsts // self.slide) * self.slide

    def _reported(self, members: _Members, windows: _Windows) -> Iterator[Batch]:
        """The results of windows that hold some row that counts."""
        numbers, counts = members.integers(_NUMBER), members.rows.column(_COUNTS).to_numpy()
        begins = members.of_groups(members.begins)[windows.places]
        to_place = begins - numbers[begins]
        lows = np.maximum(windows.starts + to_place, begins)
        # What is aggregated are the rows that count, hence spans are counted in these.
        before = np.concatenate([[0], np.cumsum(counts)])
        lows, highs = before[lows], before[windows.places + 1]
        some = lows < highs
        windows, lows, highs = windows.where(some), lows[some], highs[some]
        for part, fold in folded(self.partials, members.rows.filter(pa.array(counts)), lows, highs):
            yield self._results(members, windows.where(part), fold)

    def _results(self, members: _Members, windows: _Windows, fold: pa.Table) -> Batch:
        heads = members.rows.select([_SEQUENCE, *self.partials.keys]).take(pa.array(windows.places))
        for key in self.partials.keys:
            fold = fold.append_column(key, heads.column(key))
        times = np.maximum(heads.column(_SEQUENCE).to_numpy(), self._bound)
        bounds = window_bounds(windows.starts, windows.ends, numbers=True)
        return window_results(self.partials, fold, bounds, times, timed=self._timed)

    def _keep(self, members: _Members) -> None:
        """Hold what windows to come will need, and at least the last row, which knows how many there were."""
        numbers = members.integers(_NUMBER)
        lasts = numbers[members.lasts]
        needed = np.minimum(self._first_needed(lasts + 1), lasts)
        kept = members.rows.filter(pa.array(numbers >= members.of_groups(needed)))
        self._groups.put(members.integers(HASH), kept)

    def _check_limit(self) -> None:
        if self.state_limit is not None and self._count > self.state_limit:
            raise RunError(
                f"a window that counts the rows of each group holds more than {self.state_limit} groups",
                hint="Raise state_limit in the query's options, or partition by fewer values.",
            )

    def wanted(self) -> Microseconds | None:
        return None if self._waiting.least is None else self._waiting.least + 1


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
