"""Joins with tables, which are no streams: they have no time, and are there as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.joins.tables.table_join import TableJoinKind
from millrace.plan.nodes.endpoints import Table
from millrace.plan.nodes.node import Node, OneInput, columns_of, walk


@dataclass(frozen=True)
class TableJoin(OneInput):
    """Each row with the rows of a table that match it, as the table is at the row's time.

    `keys` are values of a row, each with the column of the table that it equals. `condition` decides over pairs, and
    reads columns of the table under their names in `columns`: pairs of a name and a column. `where` chooses among the
    rows of the table, by its own names.
    """

    table: Table
    kind: TableJoinKind
    keys: tuple[tuple[Expression, str], ...]
    columns: tuple[tuple[str, str], ...]
    condition: Expression
    where: Expression | None = None
    is_row_wise: ClassVar[bool] = True
    sql_name: ClassVar[str] = "a join with a table"
    no_update = (
        "a join with a table by other columns than its primary key",
        "a row may give several results, of which the last would replace the others",
    )

    @property
    def gives_columns(self) -> bool:
        """True if results have columns of the table."""
        return self.kind in ("inner", "left")

    @property
    def matches_once(self) -> bool:
        """True if a row is given once at most: by the whole primary key of the table, or without its columns."""
        found = {column for _, column in self.keys}
        return not self.gives_columns or (bool(self.table.key) and set(self.table.key) <= found)

    @property
    def schema(self) -> pa.Schema:
        given = self.input.schema
        made = [(name, self.table.schema.field(column).type) for name, column in self.columns]
        return pa.schema([*given, *(made if self.gives_columns else [])])

    def column_names(self) -> list[str]:
        made = [name for name, _ in self.columns] if self.gives_columns else []
        return [*self.input.column_names(), *made]

    def narrowed(self, wanted: Sequence[str]) -> TableJoin:
        """The node without columns of the table that are not read."""
        read = {*wanted, *self.condition.columns()}
        return replace(self, columns=tuple(each for each in self.columns if each[0] in read))

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        own = {name for name, _ in self.columns}
        read = columns_of(self.expressions(), wanted)
        return [[name for name in read if name not in own]]

    def expressions(self) -> tuple[Expression, ...]:
        return (*(value for value, _ in self.keys), self.condition)

    def table_columns(self) -> list[str]:
        """The columns of the table that it reads, each once."""
        used = [*(column for _, column in self.columns), *(column for _, column in self.keys)]
        return columns_of([] if self.where is None else [self.where], used)

    def reduced(self, *, typed: bool) -> TableJoin:
        """The node with its table reduced to what an answer depends on: its name, and the columns that are read."""
        names = self.table_columns() if typed else []
        schema = pa.schema([self.table.schema.field(name) for name in names])
        return replace(self, table=replace(self.table, schema=schema))


def tables_of(nodes: Iterable[Node]) -> dict[str, Table]:
    """All tables that trees join, by name."""
    return {each.table.name: each.table for node in nodes for each in walk(node) if isinstance(each, TableJoin)}
