"""The join of a stream with a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import NO_BOUND, RESERVED, Batch, Element, Mask, Microseconds, Times
from millrace.kernel.joins.tables.table_index import TableIndex
from millrace.kernel.joins.tables.table_versions import TableVersion
from millrace.kernel.operator import Operator

TableJoinKind = Literal["inner", "left", "semi", "anti"]


class TableJoin(Operator):
    """Give each row with the rows of a table that match it, as the table is at the row's time.

    `keys` are values of a row, and the columns of the table that they equal; `condition` decides over pairs, equality
    of the keys included, and reads the table's columns under the names of `columns`. `where` chooses among the rows of
    the table. Left: a row that matches nothing is given with nulls. Semi and anti are IN and NOT IN: a row is given
    once, without columns of the table, if it matches something, or if it is sure to match nothing.

    State: none; the host hands over the versions. Punctuations: passed on unchanged.
    """

    label = "table"

    def __init__(
        self,
        table: str,
        sources: Sequence[str],
        kind: TableJoinKind,
        keys: Sequence[tuple[Expression, str]],
        columns: Sequence[tuple[str, str]],
        condition: Expression,
        where: Expression | None = None,
    ) -> None:
        self.table = table
        self.sources = tuple(sources)
        self.kind = kind
        self.keys = tuple(keys)
        self.columns = tuple(columns)
        self.condition = condition
        self.where = where
        self.compared = 0
        self._versions: list[TableVersion] = []
        self._starts: Times = np.empty(0, np.int64)

    def use(self, versions: Sequence[TableVersion]) -> None:
        """Work with these versions from now on, in the order in which they came."""
        starts: list[Microseconds] = [each.starts_at(self.sources) for each in versions]
        self._versions = list(versions)
        self._starts = np.maximum.accumulate(np.array(starts or [NO_BOUND], np.int64))

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        assert self._versions, f'the host has handed over no version of table "{self.table}"'
        met = np.maximum(np.searchsorted(self._starts, batch.times, side="right") - 1, 0)
        present = np.unique(met)
        pieces = [self._joined(batch.where(met == each).rows, self._versions[each]) for each in present]
        found = pieces[0] if len(pieces) == 1 else _in_order([np.flatnonzero(met == each) for each in present], pieces)
        if found[0].num_rows:
            yield Batch(found[0])

    def _joined(self, rows: pa.RecordBatch, version: TableVersion) -> tuple[pa.RecordBatch, Integers]:
        """The results of some rows, and of which row each is."""
        index = version.contents.index([name for _, name in self.keys], self.where)
        owners, places = index.candidates([_flat(value.over(rows)) for value, _ in self.keys])
        self.compared += len(owners)
        pairs = self._pairs(rows, owners, index, pa.array(places))
        holds = _flat(self.condition.over(pairs)).fill_null(False).to_numpy(zero_copy_only=False)
        if self.kind in ("semi", "anti"):
            kept = np.flatnonzero(self._chosen(rows, index, owners[holds]))
            return rows.take(pa.array(kept)), kept
        if self.kind == "inner":
            return (pairs, owners) if holds.all() else (pairs.filter(pa.array(holds)), owners[holds])
        return self._left(rows, owners[holds], places[holds], index)

    def _left(
        self, rows: pa.RecordBatch, owners: Integers, places: Integers, index: TableIndex
    ) -> tuple[pa.RecordBatch, Integers]:
        """Pairs, and the rows without one, in the order of the rows."""
        alone = np.ones(rows.num_rows, bool)
        alone[owners] = False
        everything = np.concatenate([owners, np.flatnonzero(alone)])
        order = np.argsort(everything, kind="stable")
        missing = np.concatenate([np.zeros(len(owners), bool), np.ones(int(alone.sum()), bool)])[order]
        found = np.concatenate([places, np.zeros(int(alone.sum()), np.int64)])[order]
        owners = everything[order]
        return self._pairs(rows, owners, index, pa.array(found, mask=missing)), owners

    def _chosen(self, rows: pa.RecordBatch, index: TableIndex, owners: Integers) -> Mask:
        """True for each row that IN or NOT IN lets through; a comparison with null is neither true nor false."""
        matches = np.zeros(rows.num_rows, bool)
        matches[owners] = True
        if self.kind == "semi":
            return matches
        if not index.rows.num_rows:
            return ~matches
        known = np.full(rows.num_rows, not index.has_null_key)
        for value, _ in self.keys:
            known &= _flat(value.over(rows)).is_valid().to_numpy(zero_copy_only=False)
        return known & ~matches

    def _pairs(self, rows: pa.RecordBatch, owners: Integers, index: TableIndex, places: pa.Array) -> pa.RecordBatch:
        """Rows with rows of the table, at the times of the rows; reserved columns stand last."""
        taken = rows if _is_all(owners, rows.num_rows) else rows.take(pa.array(owners))
        plain = [name for name in rows.schema.names if name not in RESERVED]
        names = [*plain, *(name for name, _ in self.columns)]
        made = [_flat(index.rows.column(column).take(places)) for _, column in self.columns]
        reserved = [name for name in rows.schema.names if name in RESERVED]
        columns = [*map(taken.column, plain), *made, *map(taken.column, reserved)]
        return pa.RecordBatch.from_arrays(columns, names=[*names, *reserved])


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_all(owners: Integers, count: int) -> bool:
    """True if owners are all rows, each once, in order."""
    return len(owners) == count and bool((owners == np.arange(count)).all())


def _in_order(
    chosen: Sequence[Integers], pieces: Sequence[tuple[pa.RecordBatch, Integers]]
) -> tuple[pa.RecordBatch, Integers]:
    """The results of several versions in the order of their rows; `chosen` are the rows that met each version."""
    owners = np.concatenate([mine[within] for mine, (_, within) in zip(chosen, pieces, strict=True)])
    order = np.argsort(owners, kind="stable")
    rows = pa.Table.from_batches([rows for rows, _ in pieces]).take(pa.array(order)).combine_chunks().to_batches()
    return (rows[0] if rows else pieces[0][0].slice(0, 0)), owners[order]
