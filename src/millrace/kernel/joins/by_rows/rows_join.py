"""A join whose windows may count rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RunError
from millrace.kernel.columns.comparison import ordinals, same_keys, without_null
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import (
    ARRIVED,
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
from millrace.kernel.joins.by_rows.row_windows import LastRows, LastWhile, RowWindow
from millrace.kernel.joins.sides import RowsSide
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer


@dataclass(frozen=True, eq=False)
class _Released:
    """Rows that a bound has passed, sorted by time."""

    rows: pa.RecordBatch
    times: Times
    hashes: Hashes
    whole: Integers
    """Those without a null among their keys, for null equals nothing."""
    current: Mask
    """Which are in their own side's window at their time."""


class _Input:
    """One side: the rows that wait for the bound, and its window, if it has one."""

    def __init__(self, schema: pa.Schema, side: RowsSide, by_entry: bool) -> None:
        self.names = schema.names
        self.keys = side.keys
        self.by_entry = by_entry
        self.waiting = HoldBuffer()
        self.window = _window(side)
        self.stores = (self.waiting,) if self.window is None else (self.waiting, self.window)

    def release(self, until: Microseconds) -> _Released | None:
        """Take up the rows before a bound into the window; None when there are none."""
        released = self.waiting.release(until - 1)
        if released is None:
            return None
        rows = released.rows
        if not self.by_entry and isinstance(self.window, LastRows):
            rows = _by_contents(rows, self.names)
        hashes = hashes_of(rows, self.keys)
        valid = without_null([rows.column(name) for name in self.keys])
        whole = np.arange(rows.num_rows) if valid is None else np.flatnonzero(valid)
        current = np.zeros(rows.num_rows, np.bool_) if self.window is None else self.window.take(rows, hashes)
        return _Released(rows, integer_column(rows, TIME), hashes, whole, current)

    def passed(self, until: Microseconds) -> None:
        """Release what no later row can see."""
        if self.window is not None:
            self.window.passed(until)


class RowsJoin(StoringOperator):
    """Join each row with the rows of equal keys in the other side's window at its time; a pair once (001 section 5).

    A window holds the last rows of a side, of all or of each partition, or those of the last while; a side may have
    none. Which rows are the last depends on all rows up to a time, so a row is worked on when the bound is past it.
    With `by_entry` rows of equal time follow each other as they came, else by their contents.
    State: the rows at or above the bound, and the windows; at most `state_limit` rows together. Punctuations: passed
    on after the rows they release, for the time of a joined row is that of the later one. Promises of groups and of
    pairs end here.
    """

    label = "join"
    holds = True
    senses_bounds = True
    uses_every_bound = True

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        sides: Sequence[RowsSide],
        residual: Expression | None = None,
        *,
        by_entry: tuple[bool, bool] = (True, True),
        state_limit: int | None = None,
    ) -> None:
        self.residual = residual
        self.state_limit = state_limit
        self.compared = 0
        first, second = (_Input(*each) for each in zip(schemas, sides, by_entry, strict=True))
        self._inputs = (first, second)
        self.stores = (*first.stores, *second.stores)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._inputs[port].waiting.add(batch)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        first, second = (each.release(punctuation.until) for each in self._inputs)
        if second is not None:
            yield from self._found(1, second)
        if first is not None:
            yield from self._found(0, first)
        for each in self._inputs:
            each.passed(punctuation.until)
        if self.state_limit is not None and self.held > self.state_limit:
            raise RunError(
                f"the windows of a join hold more than {self.state_limit} rows",
                hint="Raise state_limit in the query's options, or keep fewer rows of a partition.",
            )
        yield punctuation

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        return iter(())

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        return iter(())

    def _found(self, port: int, rows: _Released) -> Iterator[Batch]:
        """What rows of an input find in the window of the other one."""
        window = self._inputs[1 - port].window
        if window is None:
            return
        for table, looking, places in window.find(rows.hashes[rows.whole], rows.times[rows.whole]):
            self.compared += len(places)
            mine = rows.whole[looking]
            kept = self._equal(port, rows.rows, mine, table, places)
            if port == 0:
                # Rows of equal time may see each other; rows of the second input have been asked before.
                kept &= ~((integer_column(table, TIME)[places] == rows.times[mine]) & rows.current[mine])
            if kept.any():
                later, earlier = rows.rows.take(pa.array(mine[kept])), table.take(pa.array(places[kept]))
                yield from self._made(port, later, earlier)

    def _equal(self, port: int, rows: pa.RecordBatch, mine: Integers, table: pa.Table, theirs: Integers) -> Mask:
        """Where the keys of rows are equal, not their hashes alone."""
        own, other = self._inputs[port].keys, self._inputs[1 - port].keys
        ones = [rows.column(name).take(pa.array(mine)) for name in own]
        others = [table.column(name).combine_chunks().take(pa.array(theirs)) for name in other]
        equal = same_keys(ones, others)
        return np.ones(len(mine), np.bool_) if equal is None else equal

    def _made(self, port: int, later: pa.RecordBatch, earlier: pa.Table) -> Iterator[Batch]:
        """Pairs of rows as joined rows, where the residual condition holds."""
        parts = (later, earlier) if port == 0 else (earlier, later)
        columns = {
            name: part.column(name) for part, each in zip(parts, self._inputs, strict=True) for name in each.names
        }
        columns[TIME] = later.column(TIME)
        arrivals = [part.column(ARRIVED) for part in parts if ARRIVED in part.schema.names]
        if arrivals:
            columns[ARRIVED] = pc.max_element_wise(*arrivals)
        made = pa.record_batch({name: _whole(column) for name, column in columns.items()})
        if self.residual is not None:
            made = made.filter(self.residual.over(made))
        if made.num_rows:
            yield Batch(made)

    def wanted(self) -> Microseconds | None:
        held = [least for least in (each.waiting.least for each in self._inputs) if least is not None]
        return min(held) + 1 if held else None


def _window(side: RowsSide) -> RowWindow | None:
    assert side.rows is None or side.range is None, "a window counts rows or time"
    if side.rows is not None:
        return LastRows(side.rows, side.partition)
    return None if side.range is None else LastWhile(side.range)


def _by_contents(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Rows sorted by time, those of equal time now by their columns, so that it does not matter how they came."""
    times = integer_column(rows, TIME)
    if bool((times[1:] != times[:-1]).all()):
        return rows
    columns = [ordinals(rows.column(name)) for name in names]
    return rows.take(pa.array(np.lexsort([*reversed(columns), times])))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
