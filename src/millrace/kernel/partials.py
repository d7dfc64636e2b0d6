"""Partial aggregates by pane and keys: made from rows, merged, and read off as results.

A row falls into one pane, the greatest common divisor of a window's range and slide; a window is a row of panes, so the
cost of a row does not depend on how many windows it is in. Partials are a table, so they travel and are saved as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.aggregates import AGGREGATES, Partial
from millrace.kernel.elements import Batch
from millrace.kernel.frames import Frames
from millrace.kernel.grouping import Call, group
from millrace.kernel.user_aggregates import UserAggregate

PANE = "__pane"

_Column = tuple[str, Partial, str | None]
"""A column of partials: its name, how it is made, and of which input column."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate: its output name, its function, its input columns (none: `count(*)`), and its condition's."""

    name: str
    function: str | UserAggregate
    columns: tuple[str, ...] = ()
    where: str | None = None
    parameters: tuple[float | int | bool, ...] = ()

    @property
    def column(self) -> str | None:
        """The one input column."""
        return self.columns[0] if self.columns else None


class Partials:
    """The shape of the partials of some aggregates over windows, by keys."""

    def __init__(self, frames: Frames, keys: Sequence[str], aggregations: Sequence[Aggregation]) -> None:
        self.frames = frames
        self.keys = list(keys)
        self.aggregations = tuple(aggregations)
        self._columns = [_columns(number, each) for number, each in enumerate(aggregations)]
        self._flat = [column for columns in self._columns for column in columns]
        self._inputs = list(dict.fromkeys([*keys, *(each.column for each in aggregations if each.column)]))

    def tagged(self, batch: Batch) -> pa.RecordBatch:
        """The columns that are aggregated, with each row's pane, without rows that are in no window."""
        panes = self.frames.panes(batch.times)
        columns = [pa.array(panes), *(batch.rows.column(name) for name in self._inputs)]
        rows = pa.RecordBatch.from_arrays(columns, names=[PANE, *self._inputs])
        covered = self.frames.covered(panes)
        return rows if covered is None else rows.filter(pa.array(covered))

    def of_rows(self, tagged: Sequence[pa.RecordBatch]) -> pa.Table:
        """The partials of tagged rows, by pane and keys."""
        calls: list[Call] = [(column, partial.from_rows) for _, partial, column in self._flat]
        return self._grouped(pa.Table.from_batches(tagged), [PANE, *self.keys], calls)

    def merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Partials of the same pane and keys as one."""
        return self._merged(tables, [PANE, *self.keys])

    def over_panes(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Partials of the same keys as one, whatever their pane."""
        return self._merged(tables, self.keys)

    def _merged(self, tables: Sequence[pa.Table], by: list[str]) -> pa.Table:
        calls: list[Call] = [(name, partial.merge) for name, partial, _ in self._flat]
        return self._grouped(pa.concat_tables(tables), by, calls)

    def _grouped(self, rows: pa.Table, by: list[str], calls: Sequence[Call]) -> pa.Table:
        return group(rows, by, calls, [name for name, _, _ in self._flat])

    def results(self, partials: pa.Table) -> list[pa.ChunkedArray]:
        """The result of each aggregate, a row a row of partials."""
        return [
            AGGREGATES[str(each.function)].result([partials.column(name) for name, _, _ in columns])
            for each, columns in zip(self.aggregations, self._columns, strict=True)
        ]


def _columns(number: int, aggregation: Aggregation) -> list[_Column]:
    partials = AGGREGATES[str(aggregation.function)].partials
    return [(f"__p{number}_{place}", partial, aggregation.column) for place, partial in enumerate(partials)]
