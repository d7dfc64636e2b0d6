"""Progressing attributes that are no TIMESTAMP: a BIGINT, and a DATE.

What is said of times (monotone functions, bands, how long rows are kept) is said once, of TIMESTAMP columns. For what a
query says of other attributes there is a form over TIMESTAMP columns of the same names:
- A BIGINT counts the microseconds of its time, so n stands for unix_micros(n), and timestamp_micros(n) for the time.
- A DATE is the time at which it begins, so its cast stands for the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Cast, Column, Expression
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.conditions import substituted

Kinds = Mapping[str, pa.DataType]
"""The types of the time columns that are no TIMESTAMP, by name."""

ATTRIBUTES = (TIMESTAMP, pa.date32(), pa.int64())
"""The types that a progressing attribute can have."""


def kinds_of(names: Iterable[str], schema: pa.Schema) -> Kinds:
    """The types of the time columns that are no TIMESTAMP."""
    found = {name: schema.field(name).type for name in names if name in schema.names}
    return {name: kind for name, kind in found.items() if kind != TIMESTAMP}


def as_time(expression: Expression, kind: pa.DataType) -> Expression:
    """The TIMESTAMP that an attribute of a type stands for."""
    if pa.types.is_date(kind):
        return Cast(expression, TIMESTAMP)
    return Call("timestamp_micros", (expression,)) if kind == pa.int64() else expression


def of_times(expression: Expression, kinds: Kinds) -> Expression:
    """What is said of attributes, said of the times that they stand for.

    >>> n = {"n": pa.int64()}
    >>> print(of_times(Call("div", (Column("n"), Column("m"))), n), of_times(as_time(Column("n"), pa.int64()), n))
    (unix_micros(n) DIV m) n
    """
    match expression:
        case Cast(Column(name), kind) if kind == TIMESTAMP and pa.types.is_date(kinds.get(name)):
            return expression.argument
        case Call("timestamp_micros", (Column(name) as column,)) if kinds.get(name) == pa.int64():
            return column
        case Column(name) if kinds.get(name) == pa.int64():
            return Call("unix_micros", (expression,))
    return expression.with_children([of_times(each, kinds) for each in expression.children()])


def of_attributes(expression: Expression, kinds: Kinds) -> Expression:
    """The other way: what is said of times, said of the attributes that stand for them."""
    return substituted(expression, {name: as_time(Column(name), kind) for name, kind in kinds.items()})
