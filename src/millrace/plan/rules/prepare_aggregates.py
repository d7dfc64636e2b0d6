"""Compute an aggregate's keys and arguments in a projection below it, so that it reads plain columns.

Keys that are fractions are brought to one zero and one NaN: what compares as equal is one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Distinct, Project


def prepare_aggregates(node: Node) -> Node:
    """The tree with every key and argument a column."""
    node = node.map_children(prepare_aggregates)
    match node:
        case Aggregate():
            return _prepared(node)
        case Distinct():
            columns = _canonical([(name, Column(name)) for name in node.schema.names], node.schema)
            return (
                node if all(isinstance(each, Column) for _, each in columns) else Distinct(Project(node.input, columns))
            )
        case _:
            return node


def _canonical(columns: Iterable[tuple[str, Expression]], schema: pa.Schema) -> tuple[tuple[str, Expression], ...]:
    """Columns that decide whether rows are equal."""
    return tuple(
        (name, Call("canonical", (each,)) if pa.types.is_floating(each.type_in(schema)) else each)
        for name, each in columns
    )


def _prepared(node: Aggregate) -> Aggregate:
    computed = dict.fromkeys(node.expressions()[len(node.keys) :])
    names: dict[Expression, str] = {each: f"__a{number}" for number, each in enumerate(computed)}
    return replace(
        node,
        input=Project(
            node.input, (*_canonical(node.keys, node.input.schema), *zip(names.values(), names, strict=True))
        ),
        keys=tuple((name, Column(name)) for name, _ in node.keys),
        aggregations=tuple(_over_columns(each, names) for each in node.aggregations),
        where=_column(node.where, names),
    )


def _over_columns(aggregation: Aggregation, names: Mapping[Expression, str]) -> Aggregation:
    arguments = tuple(Column(names[each]) for each in aggregation.arguments)
    return replace(aggregation, arguments=arguments, where=_column(aggregation.where, names))


def _column(expression: Expression | None, names: Mapping[Expression, str]) -> Column | None:
    return None if expression is None else Column(names[expression])
