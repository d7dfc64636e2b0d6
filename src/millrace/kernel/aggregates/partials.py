"""Partial aggregates by pane and keys: made from rows, merged, and read off as results.

A row falls into one pane, the greatest common divisor of a window's range and slide; a window is a row of panes, so the
cost of a row does not depend on how many windows it is in. Partials are a table, so they travel and are saved as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.aggregates.functions import function_of
from millrace.kernel.aggregates.functions.function import Columns, Parameter
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.columns.grouping import Groups, grouped
from millrace.kernel.elements import TIME, Batch

PANE = "__pane"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One aggregate: its output name, function, input columns (none: `count(*)`), and the column of its condition."""

    name: str
    function: str | UserAggregate
    columns: tuple[str, ...] = ()
    where: str | None = None
    parameters: tuple[Parameter, ...] = ()


class Partials:
    """How some aggregates over windows are computed, by keys: rows to partials, partials to results."""

    def __init__(self, geometry: WindowGeometry, keys: Sequence[str], calls: Sequence[FunctionCall]) -> None:
        self.geometry = geometry
        self.keys = list(keys)
        self.calls = tuple(calls)
        self._functions = [function_of(each.function, each.parameters) for each in calls]
        self._names = [
            [f"__p{number}_{place}" for place in range(function.width)]
            for number, function in enumerate(self._functions)
        ]
        self._arguments = [
            [*each.columns, TIME] if function.needs_time else [*each.columns]
            for each, function in zip(self.calls, self._functions, strict=True)
        ]
        conditions = [each.where for each in calls if each.where is not None]
        self._inputs = list(dict.fromkeys([*keys, *(name for names in self._arguments for name in names), *conditions]))

    @property
    def needs_time(self) -> bool:
        """True if some aggregate takes the rows' own times: then tagged rows carry them."""
        return any(function.needs_time for function in self._functions)

    @property
    def mergeable(self) -> bool:
        """True if partials are smaller than the rows they were made of."""
        return all(function.mergeable for function in self._functions)

    def tagged(self, batch: Batch) -> pa.RecordBatch:
        """The columns that are aggregated, with each row's pane, without rows that are in no window."""
        panes = self.geometry.panes(batch.times)
        columns = [pa.array(panes), *(batch.rows.column(name) for name in self._inputs)]
        rows = pa.RecordBatch.from_arrays(columns, names=[PANE, *self._inputs])
        covered = self.geometry.covered(panes)
        return rows if covered is None else rows.filter(pa.array(covered))

    def of_rows(self, tagged: Sequence[pa.RecordBatch]) -> pa.Table:
        """The partials of tagged rows, by pane and keys."""
        rows = pa.Table.from_batches(tagged)
        keys, groups = grouped(rows, [PANE, *self.keys])
        given = _Rows(rows, groups)
        made = [
            function.of_rows(*given.where(each.where, names))
            for each, function, names in zip(self.calls, self._functions, self._arguments, strict=True)
        ]
        return self._table(keys, made)

    def merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Partials of the same pane and keys as one."""
        return self.merged_by(tables, [PANE, *self.keys])

    def over_panes(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Partials of the same keys as one, whatever their pane."""
        return self.merged_by(tables, self.keys)

    def merged_by(self, tables: Sequence[pa.Table], by: Sequence[str]) -> pa.Table:
        """Partials that agree in the columns `by` as one; other columns than those are dropped."""
        rows = pa.concat_tables(tables)
        keys, groups = grouped(rows, by)
        made = [
            function.merged(groups, _whole(rows, names))
            for function, names in zip(self._functions, self._names, strict=True)
        ]
        return self._table(keys, made)

    def results(self, partials: pa.Table) -> list[pa.Array]:
        """The result of each aggregate, a row per row of partials."""
        return [
            function.result(_whole(partials, names))
            for function, names in zip(self._functions, self._names, strict=True)
        ]

    def _table(self, keys: pa.Table, made: Sequence[Columns]) -> pa.Table:
        names = [name for names in self._names for name in names]
        columns = [column for columns in made for column in columns]
        return pa.Table.from_arrays([*keys.columns, *columns], names=[*keys.column_names, *names])


class _Rows:
    """The columns of rows in groups, each put together once."""

    def __init__(self, rows: pa.Table, groups: Groups) -> None:
        self._rows = rows
        self._groups: dict[str | None, Groups] = {None: groups}
        self._columns: dict[str, pa.Array] = {}

    def where(self, condition: str | None, names: Sequence[str]) -> tuple[Groups, Columns]:
        """The groups of the rows where a column is true, and some columns of these rows."""
        columns = [self._column(name) for name in names]
        if condition is None:
            return self._groups[None], columns
        mask = self._column(condition).fill_null(False)
        if condition not in self._groups:
            self._groups[condition] = self._groups[None].of(mask.to_numpy(zero_copy_only=False))
        return self._groups[condition], [column.filter(mask) for column in columns]

    def _column(self, name: str) -> pa.Array:
        if name not in self._columns:
            self._columns[name] = self._rows.column(name).combine_chunks()
        return self._columns[name]


def _whole(table: pa.Table, names: Sequence[str]) -> Columns:
    return [table.column(name).combine_chunks() for name in names]
