"""Partitions of a stream that are declared ahead, and how long it waits for those that are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, did_you_mean, listed
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import Microseconds
from millrace.kernel.progress.order import PartitionValues
from millrace.kernel.progress.time_contract import PartitionTable
from millrace.language.expressions import typed
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import Name, PartitionsClause
from millrace.language.grammar.text.lengths import measured
from millrace.language.grammar.text.places import place_of
from millrace.plan.nodes.endpoints import Table


def declared_partitions(
    clause: PartitionsClause, columns: Sequence[str], binder: ExpressionBinder
) -> tuple[PartitionValues, ...]:
    """The partitions of VALUES, each once, as the texts by which rows are told apart."""
    found: list[PartitionValues] = []
    for node in clause.values:
        parts = node.expressions if isinstance(node, exp.Tuple) else [node]
        if len(parts) != len(columns):
            raise QueryError(
                f"a partition has {len(columns)} {'value' if len(columns) == 1 else 'values'}, not {len(parts)}",
                hint=f"Write a value for each of {', '.join(columns)}.",
                place=place_of(node),
            )
        values = tuple(_texts(parts, columns, binder))
        if values in found:
            raise QueryError(f"partition {node.sql()} is listed twice", hint="Name it once.", place=place_of(node))
        found.append(values)
    return tuple(found)


def _texts(nodes: Sequence[exp.Expr], columns: Sequence[str], binder: ExpressionBinder) -> Iterator[str | None]:
    """The values of a partition, each as the type of its column has it."""
    for node, name in zip(nodes, columns, strict=True):
        given, kind = binder.bind(node), binder.scope.schema.field(name).type
        if pa.types.is_null(given.type):
            yield None
            continue
        value = typed.literal_of(given, kind)
        if not value.is_constant:
            raise QueryError(
                f"{node.sql()} is not a constant",
                hint="VALUES lists the partitions themselves: numbers, or texts in quotes.",
                place=place_of(node),
            )
        yield value.value.cast(kind).cast(pa.string()).as_py()


def listing_table(
    clause: PartitionsClause, fields: Sequence[pa.Field], tables: Mapping[str, Table]
) -> tuple[Table | None, PartitionTable | None]:
    """The table of VALUES FROM, and what the stream needs of it; nothing where the clause names none."""
    if clause.table is None:
        return None, None
    name, table = clause.table.text, tables.get(clause.table.text.lower())
    if table is None:
        known = [each.name for each in tables.values()]
        declared = f"The tables are {listed(known)}." if known else "Declare it with CREATE TABLE before the stream."
        raise QueryError(
            f'table "{name}" is not declared', hint=f"{did_you_mean(name, known)}{declared}", place=clause.table.place
        )
    if len(clause.table_columns) != len(fields):
        count = len(fields)
        raise QueryError(
            f"a partition has {count} {'value' if count == 1 else 'values'}, not {len(clause.table_columns)}",
            hint=f'Name a column of "{table.name}" for each of {", ".join(each.name for each in fields)}.',
            place=clause.table_columns[0].place,
        )
    columns = (_listing_column(each, field, table) for each, field in zip(clause.table_columns, fields, strict=True))
    return table, PartitionTable(table.name, tuple(columns))


def _listing_column(name: Name, field: pa.Field, table: Table) -> str:
    """A column of a table that holds values of a column of the stream."""
    scope = Scope(table.schema)
    column = scope.find(name.text)
    if column is None:
        raise scope.unknown(name.text, name.place)
    kind = table.schema.field(column).type
    if kind != field.type and not (pa.types.is_integer(kind) and pa.types.is_integer(field.type)):
        raise QueryError(
            f'"{column}" of table "{table.name}" is {sql_name(kind)}, and "{field.name}" of the stream is '
            f"{sql_name(field.type)}",
            hint="Declare both with the same type.",
            place=name.place,
        )
    return column


def grace_of(clause: PartitionsClause, unit: Literal["time", "number"]) -> Microseconds | None:
    """How long a partition must have sent before the stream's bound rises."""
    if clause.grace is None:
        return None
    length = measured(clause.grace, unit, "GRACE")
    if length <= 0:
        raise QueryError(
            "GRACE takes a positive interval", hint="Write GRACE INTERVAL 1 MINUTE.", place=clause.grace.place
        )
    return length
