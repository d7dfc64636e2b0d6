"""Compute an aggregate's keys and arguments in a projection below it, so that it reads plain columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millrace.kernel.expressions import Column, Expression
from millrace.plan.nodes import Aggregate, Aggregation, Node, Project, with_inputs


def prepare_aggregates(node: Node) -> Node:
    """The tree with every key and argument a column."""
    node = with_inputs(node, prepare_aggregates)
    return _prepared(node) if isinstance(node, Aggregate) else node


def _prepared(node: Aggregate) -> Aggregate:
    computed = dict.fromkeys(node.expressions()[len(node.keys) :])
    names: dict[Expression, str] = {each: f"__a{number}" for number, each in enumerate(computed)}
    return replace(
        node,
        input=Project(node.input, (*node.keys, *((name, each) for each, name in names.items()))),
        keys=tuple((name, Column(name)) for name, _ in node.keys),
        aggregations=tuple(_over_columns(each, names) for each in node.aggregations),
        where=_column(node.where, names),
    )


def _over_columns(aggregation: Aggregation, names: Mapping[Expression, str]) -> Aggregation:
    arguments = tuple(Column(names[each]) for each in aggregation.arguments)
    return replace(aggregation, arguments=arguments, where=_column(aggregation.where, names))


def _column(expression: Expression | None, names: Mapping[Expression, str]) -> Column | None:
    return None if expression is None else Column(names[expression])
