"""The join of update streams (002 section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.comparison import with_whole_keys
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.integers import Integers
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
    integer_column,
)
from millrace.kernel.operator import Operator
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.updates.joins.latest_rows import NONE, NUMBER, LatestRows, shifted

KeyNames = tuple[tuple[str, ...], ...]


class UpdateJoin(Operator):
    """Give the latest rows of all inputs with equal keys, whenever one of them has come and they match.

    Rows match if those of other inputs are at most `within[i]` later than that of input i (None: no limit), and the
    residual condition is true. The latest row of a key is the one of greatest time, of equal times the one that came
    last; one that is older is passed over. Of a batch only the latest row of a key counts. So the last result of a key
    is the match of its last rows, if they match, and results of a key never go back in time. A result has the time of
    the latest row.

    With `kept` (of two inputs) the latest row of that input is given alone, beside nulls, while no row of the other
    matches it: also when its match has been replaced by a row that does not match.

    State: the latest row of each key and input, until it can neither match a row to come nor be told apart from an
    older one. Punctuations: the least bound, for a result is not before the row that made it.
    """

    label = "update_join"
    by_input = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        keys: KeyNames,
        within: Sequence[int | None] = (None, None),
        residual: Expression | None = None,
        kept: int | None = None,
    ) -> None:
        self.schemas = tuple(schemas)
        self.keys = keys
        self.within = within
        self.residual = residual
        self.compared = 0
        self._table = KeyTable([f"k{place}" for place in range(len(keys[0]))])
        self.kept = kept
        # A kept row is needed as long as its match may be replaced by a row that does not match.
        limits = [None if place == kept else length for place, length in enumerate(within)]
        self._sides = tuple(LatestRows(schema, length) for schema, length in zip(schemas, limits, strict=True))
        self._bounds = [NO_BOUND] * len(schemas)
        self._promised: Microseconds = NO_BOUND
        self._timed = False
        """True if rows say when they arrived."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        batch = self._whole(port, batch)
        if not len(batch):
            return
        rows = self._sides[port].update(batch, self._numbers(port, batch.rows))
        if rows.num_rows:
            yield from self._matched(port, rows)

    def _whole(self, port: int, batch: Batch) -> Batch:
        """The rows that may match: those without a null key."""
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        return with_whole_keys(batch, self.keys[port])

    def _numbers(self, port: int, rows: pa.RecordBatch) -> Integers:
        """The numbers of the keys of rows."""
        if not self.keys[port]:
            return self._table.numbers(rows)
        columns = [rows.column(name) for name in self.keys[port]]
        return self._table.numbers(pa.RecordBatch.from_arrays(columns, names=list(self._table.names)))

    def _matched(self, port: int, rows: pa.RecordBatch) -> Iterator[Batch]:
        """The latest rows of an input, each with the latest ones of the other inputs, where they match."""
        numbers, others = integer_column(rows, NUMBER), [each for each in range(len(self._sides)) if each != port]
        entries = {each: self._sides[each].entries_of(numbers) for each in others}
        found: Mask = np.logical_and.reduce([each != NONE for each in entries.values()])
        if self.kept == port:
            (other,) = others
            taken = self._sides[other].rows_of(numbers)
            yield from self._answered(rows, taken, np.where(found, np.cumsum(found) - 1, NONE))
            return
        if not found.any():
            return
        rows = rows if found.all() else rows.filter(pa.array(found))
        parts = {each: self._sides[each].rows.take(entries[each][found]) for each in others}
        if self.kept is None:
            yield from self._joined([parts.get(each, rows) for each in range(len(self._sides))])
        else:
            yield from self._answered(parts[self.kept], rows, np.arange(rows.num_rows))

    def _joined(self, parts: Sequence[pa.RecordBatch]) -> Iterator[Batch]:
        """Rows of each input side by side, where they match."""
        near = self._near(parts)
        if not near.all():
            parts = [each.filter(pa.array(near)) for each in parts]
        found = self._beside(parts)
        if self.residual is not None and found.num_rows:
            # Arrow's filter leaves out rows where the mask is null, as SQL does.
            found = found.filter(self.residual.over(found))
        if found.num_rows:
            yield Batch(found)

    def _answered(self, rows: pa.RecordBatch, others: pa.RecordBatch, places: Integers) -> Iterator[Batch]:
        """Rows of the kept input, each beside the row at its place of the other, or nulls if it does not match.

        A place of -1 is none.
        """
        assert self.kept is not None
        known: Mask = places != NONE
        some = [rows.filter(pa.array(known)), others.take(pa.array(places[known]))]
        near = self._near(some if self.kept == 0 else some[::-1])
        if self.residual is not None and len(near):
            told = self.residual.over(self._beside(some if self.kept == 0 else some[::-1]))
            near &= pc.fill_null(told, False).to_numpy(zero_copy_only=False)
        matches = known.copy()
        matches[known] = near
        beside = others.take(pa.array(places, mask=~matches))
        pair = (rows, beside) if self.kept == 0 else (beside, rows)
        columns = [part.column(name) for part, own in zip(pair, self.schemas, strict=True) for name in own.names]
        names = [name for schema in self.schemas for name in schema.names]
        for name in (TIME, ARRIVED) if self._timed else (TIME,):
            latest = integer_column(rows, name).copy()
            latest[known] = np.maximum(latest[known], integer_column(some[1], name))
            names.append(name)
            columns.append(pa.array(latest))
        yield Batch(pa.RecordBatch.from_arrays(columns, names=names))

    def _near(self, parts: Sequence[pa.RecordBatch]) -> Mask:
        """Where rows are not too far apart."""
        self.compared += parts[0].num_rows
        times = [integer_column(each, TIME) for each in parts]
        near = np.ones(len(times[0]), np.bool_)
        for first, other in permutations(range(len(parts)), 2):
            length = self.within[first]
            if length is not None:
                near &= times[other] <= shifted(times[first], length)
        return near

    def _beside(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        pairs = list(zip(parts, self.schemas, strict=True))
        columns = [part.column(name) for part, schema in pairs for name in schema.names]
        names = [name for schema in self.schemas for name in schema.names]
        for name in (TIME, ARRIVED) if self._timed else (TIME,):
            names.append(name)
            columns.append(pa.array(reduce(np.maximum, [integer_column(each, name) for each in parts])))
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
            side.expire(*self._bounds_at(port), at_once=at_once)

    def _bounds_at(self, port: int) -> tuple[Microseconds, Microseconds]:
        """The bound of an input, and the least of the others."""
        return self._bounds[port], min(bound for other, bound in enumerate(self._bounds) if other != port)

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
            side.restore(saved, *self._bounds_at(port))
