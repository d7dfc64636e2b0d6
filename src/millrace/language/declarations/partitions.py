"""Partitions of a stream that are declared ahead, and how long it waits for those that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.elements import Microseconds
from millrace.kernel.progress.order import PartitionValues
from millrace.language.expressions import typed
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.statements import PartitionsClause
from millrace.language.grammar.text.lengths import measured
from millrace.language.grammar.text.places import place_of


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
