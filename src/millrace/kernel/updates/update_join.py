"""The join of two update streams (002 section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.comparison import with_whole_keys
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.integers import Integers, grown
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Mask,
    Microseconds,
    Punctuation,
    Times,
    integer_column,
)
from millrace.kernel.operator import Operator
from millrace.kernel.progress.order import plus
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.stores.row_blocks import ENTRY, RowBlocks

KeyNames = tuple[tuple[str, ...], tuple[str, ...]]

_NUMBER = "__number"
"""The column of kept rows that holds the number of their key."""
_NONE = -1
_LOOK = 64
"""A bound pays for a look at so many rows, and a row for a look at two."""


class UpdateJoin(Operator):
    """Give the latest rows of both inputs with equal keys, whenever one of them has come and they match.

    Row a of the first input matches b of the second if b is at most `within[0]` later, a at most `within[1]` later
    (None: no limit), and the residual condition is true. The latest row of a key is the one of greatest time, of equal
    times the one that came last; one that is older is passed over. Of a batch only the latest row of a key counts. So
    the last result of a key is the match of its last rows, if they match, and results of a key never go back in time.
    A result has the time of the later row.

    State: the latest row of each key and input, until it can neither match a row to come nor be told apart from an
    older one. Punctuations: the lesser of both bounds, for a result is not before the row that made it.
    """

    label = "update_join"
    by_input = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        keys: KeyNames,
        within: tuple[int | None, int | None] = (None, None),
        residual: Expression | None = None,
    ) -> None:
        self.schemas = tuple(schemas)
        self.keys = keys
        self.within = within
        self.residual = residual
        self.compared = 0
        self._table = KeyTable([f"k{place}" for place in range(len(keys[0]))])
        self._sides = tuple(_LatestRows(schema, length) for schema, length in zip(schemas, within, strict=True))
        self._bounds = [NO_BOUND, NO_BOUND]
        self._promised: Microseconds = NO_BOUND
        self._timed = False
        """True if rows say when they arrived."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        batch = with_whole_keys(batch, self.keys[port])
        if not len(batch):
            return
        numbers = self._table.numbers(self._key_columns(port, batch.rows))
        rows = self._sides[port].update(batch, numbers)
        if rows.num_rows:
            yield from self._matched(port, rows)

    def _key_columns(self, port: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows, under the names of the table."""
        if not self.keys[port]:
            return rows
        columns = [rows.column(name) for name in self.keys[port]]
        return pa.RecordBatch.from_arrays(columns, names=list(self._table.names))

    def _matched(self, port: int, rows: pa.RecordBatch) -> Iterator[Batch]:
        """The latest rows of an input, each with the latest one of the other input, where they match."""
        entries = self._sides[1 - port].entries_of(integer_column(rows, _NUMBER))
        rows, entries = _where(entries != _NONE, rows, entries)
        if not rows.num_rows:
            return
        others = self._sides[1 - port].rows.take(entries)
        first, second = (rows, others) if port == 0 else (others, rows)
        self.compared += first.num_rows
        found = self._joined(first, second, self._near(integer_column(first, TIME), integer_column(second, TIME)))
        if self.residual is not None and found.num_rows:
            # Arrow's filter leaves out rows where the mask is null, as SQL does.
            found = found.filter(self.residual.over(found))
        if found.num_rows:
            yield Batch(found)

    def _near(self, firsts: Times, seconds: Times) -> Mask:
        """Where two rows are not too far apart."""
        near = np.ones(len(firsts), np.bool_)
        for times, others, length in ((firsts, seconds, self.within[0]), (seconds, firsts, self.within[1])):
            if length is not None:
                near &= others <= _later(times, length)
        return near

    def _joined(self, first: pa.RecordBatch, second: pa.RecordBatch, near: Mask) -> pa.RecordBatch:
        """Rows side by side, those that are near each other."""
        if not near.all():
            first, second = (each.filter(pa.array(near)) for each in (first, second))
        parts = list(zip((first, second), self.schemas, strict=True))
        columns = [part.column(name) for part, schema in parts for name in schema.names]
        names = [name for schema in self.schemas for name in schema.names]
        for name in (TIME, ARRIVED) if self._timed else (TIME,):
            names.append(name)
            columns.append(pa.array(np.maximum(integer_column(first, name), integer_column(second, name))))
        return pa.RecordBatch.from_arrays(columns, names=names)

    # Bounds

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        self._bounds[port] = punctuation.until
        self._expire(at_once=punctuation.until == END_OF_TIME)
        until = min(self._bounds)
        if until > self._promised:
            self._promised = until
            yield Punctuation(until, punctuation.ets)

    def _expire(self, *, at_once: bool) -> None:
        for port, side in enumerate(self._sides):
            side.expire(self._bounds[port], self._bounds[1 - port], at_once=at_once)

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        return iter(())

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        return iter(())

    # State

    @property
    def held(self) -> int:
        return sum(len(side.rows) for side in self._sides)

    @property
    def state_bytes(self) -> int:
        return self._table.nbytes + sum(side.nbytes for side in self._sides)

    def changes(self) -> Changes:
        self._expire(at_once=True)
        note = {"bounds": list(self._bounds), "promised": self._promised, "timed": self._timed}
        return combined([self._table.changes(), *(side.rows.changes() for side in self._sides)], note)

    def restore(self, changes: Changes) -> None:
        self._bounds, self._promised = list(changes.note["bounds"]), changes.note["promised"]
        self._timed = changes.note["timed"]
        table, *sides = separated(changes)
        self._table.restore(table)
        for port, (side, saved) in enumerate(zip(self._sides, sides, strict=True)):
            side.restore(saved, self._bounds[port], self._bounds[1 - port])


class _LatestRows:
    """The latest row of each key of one input, by the number of the key.

    Rows of the other input match one up to `within` after it.
    """

    def __init__(self, schema: pa.Schema, within: int | None) -> None:
        self.within = within
        self.rows = RowBlocks()
        reserved = [pa.field(name, pa.int64()) for name in (TIME, ARRIVED, _NUMBER)]
        self._schema = pa.schema([*schema, *reserved])
        self._entries: Integers = np.empty(0, np.int64)
        """The entry of each key's row; -1 for none."""
        self._times: Times = np.empty(0, np.int64)
        self._paid = 0
        """A look at how many rows has been paid for."""

    @property
    def nbytes(self) -> int:
        """The memory of the rows and of what finds them."""
        return self.rows.nbytes + int(self._entries.nbytes + self._times.nbytes)

    def entries_of(self, numbers: Integers) -> Integers:
        """The entries of some keys; -1 for none."""
        self._make_room(numbers)
        return self._entries[numbers]

    def update(self, batch: Batch, numbers: Integers) -> pa.RecordBatch:
        """Keep the latest row of each key; those rows of a batch that are it now, as they are kept."""
        self._make_room(numbers)
        times = batch.times
        # Of equal times the one that came last stands last.
        order = np.lexsort((times, numbers))
        last = np.append(numbers[order[1:]] != numbers[order[:-1]], True)
        places = np.sort(order[last])
        places = places[times[places] >= self._times[numbers[places]]]
        numbers = numbers[places]
        chosen = batch.rows if len(places) == len(batch) else batch.rows.take(pa.array(places))
        rows = self._as_kept(chosen, numbers)
        before = self._entries[numbers]
        self._entries[numbers] = self.rows.add(rows)
        self._times[numbers] = times[places]
        self.rows.release(before[before != _NONE])
        self._paid += 2 * len(places)
        return rows

    def _as_kept(self, rows: pa.RecordBatch, numbers: Integers) -> pa.RecordBatch:
        """Rows with the columns of all rows that are kept, whether they say when they arrived or not."""
        count = rows.num_rows
        arrived = rows.column(ARRIVED) if ARRIVED in rows.schema.names else pa.array(np.full(count, NO_BOUND))
        columns = [*map(rows.column, self._schema.names[:-2]), arrived, pa.array(numbers)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def expire(self, own: Microseconds, other: Microseconds, *, at_once: bool) -> None:
        """Drop rows that are not needed at the bounds of both inputs; if not at once, when a look is paid for."""
        self._paid += _LOOK
        if not len(self.rows) or (not at_once and self._paid < len(self._entries)):
            return
        passed = (self._entries != _NONE) & self._passed(self._times, own, other)
        self.rows.release(self._entries[passed])
        self._entries[passed], self._times[passed] = _NONE, NO_BOUND
        self._paid = 0

    def _passed(self, times: Times, own: Microseconds, other: Microseconds) -> Mask:
        """Which rows match none to come, and are not needed to know that others are older."""
        if other == END_OF_TIME:
            return times < own
        if self.within is None:
            return np.zeros(len(times), np.bool_)
        return (times < own) & (_later(times, self.within) < other)

    def restore(self, changes: Changes, own: Microseconds, other: Microseconds) -> None:
        """Go on from saved segments: of each key the row that came last, if it is still needed."""
        saved = [table.select([ENTRY, _NUMBER, TIME]) for table in changes.added.values()]
        entries, numbers, times = (
            np.concatenate([np.empty(0, np.int64), *(table.column(name).to_numpy() for table in saved)])
            for name in (ENTRY, _NUMBER, TIME)
        )
        order = np.lexsort((entries, numbers))
        last = order[np.append(numbers[order[1:]] != numbers[order[:-1]], True)[: len(order)]]
        last = last[~self._passed(times[last], own, other)]
        self.rows.restore(changes, entries[last])
        self._make_room(numbers[last])
        self._entries[numbers[last]], self._times[numbers[last]] = entries[last], times[last]

    def _make_room(self, numbers: Integers) -> None:
        wanted = int(numbers.max(initial=-1)) + 1
        self._entries, self._times = grown(self._entries, wanted, _NONE), grown(self._times, wanted, NO_BOUND)


def _where(mask: Mask, rows: pa.RecordBatch, entries: Integers) -> tuple[pa.RecordBatch, Integers]:
    return (rows, entries) if mask.all() else (rows.filter(pa.array(mask)), entries[mask])


def _later(times: Times, length: int) -> Times:
    """Times so much later, or earlier."""
    return plus(times, length) if length >= 0 else times + length
