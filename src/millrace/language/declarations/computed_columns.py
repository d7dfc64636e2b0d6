"""Columns of a stream that are computed of the others: `ts TIMESTAMP AS to_timestamp(day, 'yyyyMMdd')`."""

from __future__ import annotations

import pyarrow as pa

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import ColumnDefinition

Computed = tuple[tuple[str, Expression], ...]


def computed_schema(
    schema: pa.Schema, columns: tuple[ColumnDefinition, ...], functions: Functions
) -> tuple[pa.Schema, Computed]:
    """The columns in the order of the list, each with its type, and the computed ones; a column without a type takes
    that of its expression.

    An expression reads the columns that a source has, and the computed ones before it.
    """
    given = {each.name.text for each in columns if each.expression is None}
    known = pa.schema([each for each in schema if each.name in given])
    if not len(known) and columns:
        raise QueryError(
            "a stream needs a column that is not computed",
            hint="Name a column of the source.",
            place=columns[0].name.place,
        )
    computed: list[tuple[str, Expression]] = []
    for each in columns:
        if each.expression is None:
            continue
        bound = ExpressionBinder(Scope(known), functions).bind(each.expression)
        if each.type is not None:
            bound = _as_declared(each, bound, schema.field(each.name.text).type)
        if pa.types.is_null(bound.type):
            raise QueryError("a computed column has no type", hint="Write CAST(NULL AS type).", place=bound.place)
        computed.append((each.name.text, bound.expression))
        known = known.append(pa.field(each.name.text, bound.type))
    return pa.schema([known.field(each.name.text) for each in columns]), tuple(computed)


def _as_declared(column: ColumnDefinition, bound: Typed, kind: pa.DataType) -> Typed:
    """The value in the declared type, if that holds all values of its own."""
    if bound.type == kind:
        return bound
    if typed.common_type([bound.type, kind]) == kind:
        return typed.cast(bound, kind)
    name, found = column.name.text, sql_name(bound.type)
    raise QueryError(
        f'column "{name}" is declared as {sql_name(kind)}, but its expression gives {found}',
        hint=f"Write CAST(... AS {sql_name(kind)}), or declare it as {found}.",
        place=bound.place or column.name.place,
    )
