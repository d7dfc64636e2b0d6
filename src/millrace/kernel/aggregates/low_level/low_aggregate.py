"""The low level of a two-level aggregate: a table of fixed size, whose old windows are flushed little by little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.low_level.flush_policy import FlushPolicy
from millrace.kernel.aggregates.low_level.slot_table import SlotTable, chosen_slots
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import hashes
from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    Mask,
    Microseconds,
    Punctuation,
    concat,
)
from millrace.kernel.operator import Operator
from millrace.kernel.state import Changes, Segments

_RUN = "__run"
_SLOT = "__slot"
_LONG_AGO = -(2**62)
"""A pane before any that a row can be in, with room to count on."""
_STRETCH = 1024
"""Slots that are searched for an old entry at a time, at first."""


class LowAggregate(Operator):
    """Aggregate rows in a table of `size` groups, into partials for a `WindowAggregate` above (004 section 6, Fig. 7).

    A group has one slot. A row of another group or pane evicts the entry in its slot; entries of ended windows also
    leave by the flush policy. In order a window has ended when a row of the next one comes or a bound passes its end,
    otherwise by the bound alone. Up to `gathers` rows are gathered, so that single ones cost little; flushes are
    counted by rows, and come before the gathered rows are put into their slots.
    State: one partial per slot, and the gathered rows. Punctuations: held back at the start of the oldest pane of both.
    """

    label = "low aggregate"
    holds = True
    senses_bounds = True

    def __init__(self, partials: Partials, size: int, policy: FlushPolicy, *, gathers: int = 256) -> None:
        self.partials = partials
        self.size = size
        self.policy = policy
        self.gathers = gathers
        self.geometry = partials.geometry
        self.evicted = 0
        """Entries that rows have evicted."""
        self.flushed = 0
        """Entries that left otherwise."""
        self._by_run = Partials(self.geometry, [_RUN], partials.calls)
        # In order, nothing of a pane is left when the one after the next begins.
        self._delay = 1 if policy.kind == "in_order" else policy.delay * (self.geometry.slide // self.geometry.width)
        self._slots = SlotTable(size)
        self._gathered: list[Batch] = []
        self._rows = 0
        self._least = 0
        """Rows that have not been put into their slots yet: how many, and their first pane."""
        self._current = _LONG_AGO
        """Panes before this one have ended: their entries are old."""
        self._position = 0
        """The slot that is looked at next; in order, `size` when all have been."""
        self._rows_since = 0
        """Rows since an entry was due by `slow_flush`."""
        self._bound = NO_BOUND
        self._passed = NO_BOUND
        """The last bound that came in, and the last one passed on."""
        self._timed = False
        self._segments = Segments()
        self._changed = False

    # Rows

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        panes = self.geometry.panes(batch.times)
        covered = self.geometry.covered(panes)
        if covered is not None and not covered.all():
            batch, panes = batch.where(covered), panes[covered]
        if not len(panes):
            return
        least = int(panes.min())
        self._least = min(least, self._least) if self._gathered else least
        self._gathered.append(batch)
        self._rows += len(panes)
        self._changed = True
        if self._rows >= self.gathers:
            yield from self._settled()
            yield from self._promised(ets=False)

    def _settled(self) -> Iterator[Element]:
        """Put the gathered rows into their slots; what leaves to make room."""
        if not self._gathered:
            return
        batch, self._gathered, self._rows = concat(self._gathered), [], 0
        self._changed = True
        panes = self.geometry.panes(batch.times)
        if self.policy.kind == "in_order":
            yield from self._in_order(batch, panes)
        else:
            yield from self._made([self._slowly_flushed(len(panes)), *self._placed(batch, panes)])

    def _in_order(self, batch: Batch, panes: Integers) -> Iterator[Element]:
        """One window after another; rows of a window that has ended do not enter the table."""
        reached = np.maximum(np.maximum.accumulate(panes), self._current)
        cuts = [0, *(np.flatnonzero(np.diff(reached)) + 1).tolist(), len(panes)]
        for start, stop in pairwise(cuts):
            yield from self._advanced(int(reached[start]))
            piece, inside = batch.slice(start, stop - start), panes[start:stop] == reached[start]
            late = [] if inside.all() else [self.partials.of_rows([self.partials.tagged(piece.where(~inside))])]
            yield from self._made([*late, self._swept(stop - start)])
            if inside.any():
                old, new = self._placed(piece.where(inside), panes[start:stop][inside])
                rest = [self._flushed(self._slots.older(self._current))] if new is not None else []
                yield from self._made([old, *rest, new])

    def _placed(self, batch: Batch, panes: Integers) -> tuple[pa.Table | None, pa.Table | None]:
        """Put rows into their slots; the old entries that they evict, and the others.

        Entries stand before the rows of their slot. Members of a slot that follow each other and are of one group make
        a run, and the last run of each slot stays.
        """
        keys = [batch.rows.column(name) for name in self.partials.keys]
        slots = (hashes(keys, len(batch)) % np.uint64(self.size)).astype(np.int64)
        if self.policy.second_slot:
            slots = self._chosen(batch, panes, slots)
        met = np.unique(slots)
        met = met[self._slots.occupied(met)]
        entries = self._slots.take(met) if len(met) else None
        slots = np.concatenate([met, slots])
        members = self._members(entries, batch, panes)
        order = np.argsort(slots, kind="stable")
        codes, _ = codes_of([column.combine_chunks() for column in members.columns], len(slots))
        begins = starts(slots[order]) | starts(codes[order])
        runs = np.empty(len(slots), np.int64)
        runs[order] = np.cumsum(begins) - 1
        firsts = order[begins]
        made = self._partials_by_run(entries, batch, runs, members.take(pa.array(firsts)))
        stays = np.append(starts(slots[firsts])[1:], True)
        of_run = made.column(PANE).to_numpy()
        self._slots.put(slots[firsts][stays], made.filter(pa.array(stays)), of_run[stays])
        self.evicted += int(len(stays) - stays.sum())
        old = of_run < self._current
        return _some(made, ~stays & old), _some(made, ~stays & ~old)

    def _chosen(self, batch: Batch, panes: Integers, slots: Integers) -> Integers:
        """The slot of each row: that of its group, or the next one."""
        members = self._members(None, batch, panes)
        codes, firsts = codes_of([column.combine_chunks() for column in members.columns], len(slots))
        order = np.argsort(firsts)
        groups = members.take(pa.array(firsts[order]))
        chosen = np.empty(len(firsts), np.int64)
        chosen[order] = chosen_slots(self._slots, groups, slots[firsts[order]], self._current)
        return chosen[codes]

    def _members(self, entries: pa.Table | None, batch: Batch, panes: Integers) -> pa.Table:
        """The pane and keys of entries, then of rows."""
        names = [PANE, *self.partials.keys]
        columns = [pa.array(panes), *(batch.rows.column(name) for name in self.partials.keys)]
        rows = pa.Table.from_arrays(columns, names=names)
        return rows if entries is None else pa.concat_tables([entries.select(names), rows])

    def _partials_by_run(self, entries: pa.Table | None, batch: Batch, runs: Integers, keys: pa.Table) -> pa.Table:
        """One partial per run, in order, made of its rows and the entry that it may begin with."""
        known = 0 if entries is None else entries.num_rows
        rows = Batch(batch.rows.append_column(_RUN, pa.array(runs[known:])))
        made = self._by_run.of_rows([self._by_run.tagged(rows)])
        if entries is not None:
            numbered = entries.drop_columns(self.partials.keys).add_column(1, _RUN, pa.array(runs[:known]))
            made = self._by_run.merged([made, numbered.select(made.column_names)])
        made = made.take(pa.array(np.argsort(made.column(_RUN).to_numpy()))).drop_columns([PANE, _RUN])
        return pa.Table.from_arrays([*keys.columns, *made.columns], names=[*keys.column_names, *made.column_names])

    # Flushing

    def _advanced(self, pane: int) -> Iterator[Element]:
        """Take all panes before this one as ended, and flush the entries that may stay no longer."""
        if pane <= self._current:
            return
        self._current = pane
        self._changed = True
        if self.policy.kind == "in_order":
            self._position = 0
        if min(self._slots.panes, default=pane) < pane - self._delay:
            yield from self._made([self._flushed(self._slots.older(pane - self._delay))])

    def _swept(self, rows: int) -> pa.Table | None:
        """Look at a slot for each row, from the first to the last, and flush the old entries there."""
        start = self._position
        self._position = min(start + rows, self.size)
        if start == self.size or not self._olds():
            return None
        return self._flushed(self._slots.older(self._current, start, self._position))

    def _slowly_flushed(self, rows: int) -> pa.Table | None:
        """Flush an old entry each time `every` rows of the policy have come, going round the slots."""
        if self.policy.kind != "slow_flush":
            return None
        due, self._rows_since = divmod(self._rows_since + rows, self.policy.every)
        due = min(due, self._olds())
        found: list[Integers] = []
        stretch = _STRETCH
        while due:
            stop = min(self._position + stretch, self.size)
            slots = self._slots.older(self._current, self._position, stop)[:due]
            found.append(slots)
            due -= len(slots)
            self._position = stop % self.size if due else int(slots[-1] + 1) % self.size
            stretch *= 2
        return self._flushed(np.concatenate(found)) if found else None

    def _olds(self) -> int:
        """How many entries are old."""
        return sum(count for pane, count in self._slots.panes.items() if pane < self._current)

    def _flushed(self, slots: Integers) -> pa.Table | None:
        if not len(slots):
            return None
        self.flushed += len(slots)
        return self._slots.take(slots)

    # Bounds

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        if self._bound == END_OF_TIME:
            self._changed = True
            yield from self._settled()
            yield from self._made([self._flushed(self._slots.older(self._current)), self._flushed(self._slots.all())])
        else:
            pane = self._pane(self._bound)
            if pane > self._current or pane > self._least:
                yield from self._settled()
            yield from self._advanced(pane)
        yield from self._promised(punctuation.ets)

    def _promised(self, ets: bool) -> Iterator[Element]:
        until, oldest = self._bound, self._oldest()
        if oldest is not None:
            until = min(until, self._start(oldest))
        if until > self._passed:
            self._passed = until
            yield Punctuation(until, ets)

    def usable(self, until: Microseconds) -> Microseconds:
        return until if until in (NO_BOUND, END_OF_TIME) else self._start(self._pane(until))

    def wanted(self) -> Microseconds | None:
        oldest = self._oldest()
        return None if oldest is None else self._start(oldest + 1 + self._delay)

    def required(self, until: Microseconds, port: int = 0) -> Microseconds:
        oldest = self._oldest()
        if oldest is None or until in (NO_BOUND, END_OF_TIME) or self._start(oldest) >= until:
            return until
        return self._start(self._pane(until - 1) + 1 + self._delay)

    def _oldest(self) -> int | None:
        """The first pane of an entry or a row gathered."""
        return min([*self._slots.panes, *([self._least] if self._gathered else [])], default=None)

    def _pane(self, time: Microseconds) -> int:
        return int(self.geometry.panes(np.array([time]))[0])

    def _start(self, pane: int) -> Microseconds:
        return int(self.geometry.last_instants(np.array([pane - 1]))[0]) + 1

    def _made(self, tables: Sequence[pa.Table | None]) -> Iterator[Element]:
        """Partials as rows whose time is the last instant of their pane."""
        for table in tables:
            if table is None or not table.num_rows:
                continue
            ends = self.geometry.last_instants(table.column(PANE).to_numpy())
            table = table.append_column(TIME, pa.array(ends))
            if self._timed:
                table = table.append_column(ARRIVED, pa.array(np.full(table.num_rows, NO_BOUND)))
            yield Batch(table.combine_chunks().to_batches()[0])

    # State

    @property
    def held(self) -> int:
        return len(self._slots) + self._rows

    @property
    def held_partials(self) -> int:
        return len(self._slots)

    @property
    def state_bytes(self) -> int:
        return self._slots.nbytes + sum(int(batch.rows.nbytes) for batch in self._gathered)

    def changes(self) -> Changes:
        if self._changed:
            self._changed = False
            for number in list(self._segments.live):
                self._segments.remove(number)
            slots = self._slots.all()
            if len(slots):
                entries = self._slots.rows(slots).append_column(_SLOT, pa.array(slots))
                self._segments.add(entries.combine_chunks())
            if self._gathered:
                self._segments.add(pa.Table.from_batches([concat(self._gathered).rows]))
        return self._segments.changes(
            {
                "next": self._segments.following,
                "current": self._current,
                "position": self._position,
                "rows_since": self._rows_since,
                "bound": self._bound,
                "passed": self._passed,
                "timed": self._timed,
                "evicted": self.evicted,
                "flushed": self.flushed,
            }
        )

    def restore(self, changes: Changes) -> None:
        note = changes.note
        self._segments.restore(changes.added, note["next"])
        for table in changes.added.values():
            if _SLOT in table.column_names:
                entries = table.drop_columns([_SLOT])
                self._slots.put(table.column(_SLOT).to_numpy(), entries, entries.column(PANE).to_numpy())
            else:
                self._gathered, self._rows = [Batch(table.combine_chunks().to_batches()[0])], table.num_rows
                self._least = int(self.geometry.panes(self._gathered[0].times).min())
        self._current, self._position, self._rows_since = note["current"], note["position"], note["rows_since"]
        self._bound, self._passed, self._timed = note["bound"], note["passed"], note["timed"]
        self.evicted, self.flushed = note["evicted"], note["flushed"]


def _some(table: pa.Table, mask: Mask) -> pa.Table | None:
    return table.filter(pa.array(mask)) if mask.any() else None
