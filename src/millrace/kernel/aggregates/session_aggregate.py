"""Session windows: rows of a group that follow each other closely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.aggregate_operator import AggregateOperator
from millrace.kernel.aggregates.panes.window_results import window_bounds, window_results
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.aggregates.span_folds import leaves, merged
from millrace.kernel.columns.grouping import groups_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Element,
    GroupPunctuation,
    Mask,
    Microseconds,
    Punctuation,
    Times,
    concat,
    concat_tables,
)
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns
from millrace.kernel.stores.sorted_runs import SortedRuns

_FIRST = "__first"
_LAST = "__last"
_END = "__end"

_FEW_ENDS = 1024
"""Ends of sessions that are gone may stay in the calendar up to this number."""


class SessionAggregate(AggregateOperator):
    """Aggregate the rows of a group that follow each other by less than `gap`; a new row may join two sessions.

    With `merges_at_gap` a row exactly one gap after the last belongs to the session too, as in Spark and Flink.
    State: the open sessions by group, in keyed runs, and a calendar of when they close, in sorted runs; an entry that
    has moved stays in the calendar until it comes to the front. Punctuations: a bound closes every session that no
    later row can reach, and is passed on, one microsecond less if sessions merge at the gap: the time of a result is
    the last instant of its window. With `groups`, all key columns, promises for single groups do the same for their
    sessions.
    """

    label = "session aggregate"
    senses_bounds = True
    uses_every_bound = True
    noted = ("bound", "timed")

    def __init__(
        self,
        partials: Partials,
        gap: Microseconds,
        *,
        groups: tuple[str, ...] = (),
        merges_at_gap: bool = False,
        has_numbers: bool = False,
    ) -> None:
        super().__init__(partials)
        self.gap = gap
        self.beyond = int(merges_at_gap)
        """How long after its `window_end` a session stays open: the rows of that very instant may still come."""
        self.reach = gap + self.beyond
        """How far apart two rows are, at least, that belong to different sessions."""
        self.groups = groups
        self.has_numbers = has_numbers
        self._sessions = KeyedRuns()
        self._calendar = SortedRuns(_END, concat_tables)
        self._hashes: list[Hashes] = []
        """The hashes of the gathered rows, by batch."""
        self._front: tuple[Microseconds, int] | None = None
        """The end of the session that ends first, and its hash; None while it is not known."""
        self._bound: Microseconds = NO_BOUND
        self.stores = (self._sessions, self._calendar)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        hashes = hashes_of(batch.rows, self.partials.keys)
        self._hashes.append(hashes)
        if self._front is not None and self._may_move(batch.times, hashes):
            self._front = None
        self._gather(batch)
        return iter(())

    def _may_move(self, times: Times, hashes: Hashes) -> bool:
        """True if rows may lengthen the session that ends first, or begin one that ends earlier."""
        assert self._front is not None
        end, hash = self._front
        return int(times.min()) + self.reach < end or bool((hashes == hash).any())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        wanted = self.wanted()
        if wanted is not None and wanted <= punctuation.until:
            self._settle()
            yield self._closed(punctuation.until)
        self._bound = punctuation.until
        ended = punctuation.until == END_OF_TIME
        yield punctuation if ended else replace(punctuation, until=punctuation.until - self.beyond)

    def required(self, until: Microseconds, port: int = 0) -> Microseconds:
        return min(until, END_OF_TIME - self.beyond) + self.beyond

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        if not self.groups:
            return
        self._settle()
        keys = pa.Table.from_batches([punctuation.keys]).rename_columns(list(self.groups)).select(self.partials.keys)
        found = self._sessions.get(hashes_of(keys, self.partials.keys))
        if found:
            sessions = concat_tables(found)
            promised = _of_group(sessions.select(self.partials.keys), keys, punctuation.until)
            ended = _integers(sessions, _LAST) <= np.maximum(promised, NO_BOUND + self.reach) - self.reach
            if ended.any():
                yield self._close(sessions, ended)
                self._tidy()
        told = np.abs(punctuation.until) < END_OF_TIME
        yield replace(punctuation, until=punctuation.until - self.beyond * told)

    def _tidy(self) -> None:
        """Write the calendar again when most of it is about sessions that are gone: no bound may ever reach them."""
        if len(self._calendar) > 2 * len(self._sessions) + _FEW_ENDS:
            self._calendar.clear()
            for table in self._sessions.whole():
                ends = pa.array(_integers(table, _LAST) + self.reach)
                self._calendar.add(pa.table({_END: ends, HASH: table.column(HASH)}))

    def _settle(self) -> None:
        """Make sessions of the gathered rows, and join them with the open ones of their groups."""
        if not self._gathered:
            return
        batch, hashes, self._hashes = concat(self._take_gathered()), np.concatenate(self._hashes), []
        made, current = self._sessions_of(batch, hashes), self._sessions.get(hashes)
        moved = np.ones(made.num_rows, np.bool_)
        if current:
            made, moved = self._joined(concat_tables([*current, made]), sum(table.num_rows for table in current))
        self._sessions.put(hashes, made)
        ends = pa.table({_END: _integers(made, _LAST) + self.reach, HASH: made.column(HASH)})
        self._calendar.add(ends.filter(pa.array(moved)))

    def _sessions_of(self, batch: Batch, hashes: Hashes) -> pa.Table:
        """The sessions that the rows of a batch make among themselves."""
        rows = pa.Table.from_batches([self.partials.tagged(batch)]).append_column(HASH, pa.array(hashes))
        codes = groups_of(rows, self.partials.keys)
        order = np.lexsort((batch.times, codes))
        codes, times = codes[order], batch.times[order]
        cuts = starts(codes)
        cuts[1:] |= times[1:] - times[:-1] >= self.reach
        panes = np.empty(len(order), np.int64)
        panes[order] = np.cumsum(cuts) - 1
        begins = np.flatnonzero(cuts)
        ends = np.append(begins[1:], len(order)) - 1
        made = leaves(self.partials, rows, panes)
        return self._table(rows.take(pa.array(order[begins])), times[begins], times[ends], made)

    def _joined(self, sessions: pa.Table, before: int) -> tuple[pa.Table, Mask]:
        """Sessions of a group that touch as one, and which of the ends were not those of the first `before` ones."""
        codes = groups_of(sessions, self.partials.keys)
        firsts, lasts = _integers(sessions, _FIRST), _integers(sessions, _LAST)
        order = np.lexsort((firsts, codes))
        codes, firsts, lasts = codes[order], firsts[order], lasts[order]
        reached = _greatest_so_far(codes, lasts)
        cuts = starts(codes)
        cuts[1:] |= firsts[1:] - reached[:-1] >= self.reach
        begins = np.flatnonzero(cuts)
        ends = reached[np.append(begins[1:], len(order)) - 1]
        known = np.maximum.reduceat(np.where(order < before, lasts, NO_BOUND), begins)
        made = merged(self.partials, sessions.take(pa.array(order)), np.cumsum(cuts) - 1)
        return self._table(sessions.take(pa.array(order[begins])), firsts[begins], ends, made), known != ends

    def _table(self, heads: pa.Table, firsts: Times, lasts: Times, made: pa.Table) -> pa.Table:
        """Sessions: the hash and keys of `heads`, their spans, and the partials in `made`."""
        names = [HASH, *self.partials.keys]
        own = [name for name in made.schema.names if name != PANE and name not in names]
        columns = [*heads.select(names).columns, pa.array(firsts), pa.array(lasts), *made.select(own).columns]
        return pa.Table.from_arrays(columns, names=[*names, _FIRST, _LAST, *own])

    def _closed(self, until: Microseconds) -> Batch:
        """The results of the sessions that end at or before a bound; these are removed."""
        sessions = self._named(until)
        assert sessions is not None, "some session wanted this bound"
        results = self._close(sessions, _integers(sessions, _LAST) <= until - self.reach)
        self._calendar.drop(until)
        return results

    def _close(self, sessions: pa.Table, ended: Mask) -> Batch:
        """Remove those of some sessions that have ended; their results."""
        closed = sessions.filter(pa.array(ended))
        self._sessions.put(_integers(closed, HASH), _sharing(sessions.filter(pa.array(~ended)), closed))
        self._front = None
        firsts, ends = _integers(closed, _FIRST), _integers(closed, _LAST) + self.gap
        bounds = window_bounds(firsts, ends, numbers=self.has_numbers)
        return window_results(self.partials, closed, bounds, ends - 1, timed=self._timed)

    def wanted(self) -> Microseconds | None:
        if self._front is None:
            self._settle()
            self._front = self._found_front()
        return None if self._front is None else self._front[0]

    def _found_front(self) -> tuple[Microseconds, int] | None:
        """The session that ends first: the calendar is searched from its front on, in ever longer stretches."""
        step, least = 1, self._calendar.least()
        while len(self._sessions):
            assert least is not None, "every open session is in the calendar"
            last = min(least + step, END_OF_TIME)
            sessions = self._named(last)
            ends = None if sessions is None else _integers(sessions, _LAST) + self.reach
            if sessions is not None and ends is not None and int(ends.min()) <= last:
                front = int(ends.argmin())
                # Rows still to come make ends of at least the bound and the gap: up to there all that moved can go.
                self._calendar.drop(min(int(ends[front]), self._bound + self.reach) - 1)
                return int(ends[front]), int(_integers(sessions, HASH)[front])
            step *= 4
        return None

    def _named(self, last: Microseconds) -> pa.Table | None:
        """All open sessions of the groups that the calendar names up to `last`."""
        hashes = np.concatenate([_integers(table, HASH) for table in self._calendar.between(None, last)])
        found = self._sessions.get(hashes)
        return concat_tables(found) if found else None


def _sharing(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that have a hash of the others."""
    return rows.filter(pa.array(np.isin(_integers(rows, HASH), _integers(others, HASH))))


def _of_group(rows: pa.Table, keys: pa.Table, until: Times) -> Times:
    """What was promised for the group of each row; NO_BOUND where nothing was."""
    codes = groups_of(concat_tables([rows, keys]), keys.schema.names)
    promised = np.full(int(codes.max()) + 1, NO_BOUND)
    np.maximum.at(promised, codes[rows.num_rows :], until)
    return promised[codes[: rows.num_rows]]


def _greatest_so_far(codes: Integers, values: Times) -> Times:
    """The greatest value up to each row among the rows of its code; codes are in order."""
    distinct, ranks = np.unique(values, return_inverse=True)
    base = codes * len(distinct)
    found: Times = distinct[np.maximum.accumulate(base + ranks) - base]
    return found


def _integers(table: pa.Table, name: str) -> Integers:
    integers: Integers = table.column(name).to_numpy()
    return integers
