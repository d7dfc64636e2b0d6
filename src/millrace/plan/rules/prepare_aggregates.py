"""Compute an aggregate's keys and arguments in a projection below it, so that it reads plain columns."""

from __future__ import annotations

from dataclasses import replace

from millrace.kernel.expressions import Column, Expression
from millrace.plan.nodes import Aggregate, Aggregation, Node, Project, with_inputs


def prepare_aggregates(node: Node) -> Node:
    """The tree with every key and argument a column."""
    node = with_inputs(node, prepare_aggregates)
    return _prepared(node) if isinstance(node, Aggregate) else node


def _prepared(node: Aggregate) -> Aggregate:
    arguments = dict.fromkeys(each.argument for each in node.aggregations if each.argument is not None)
    names: dict[Expression, str] = {argument: f"__a{number}" for number, argument in enumerate(arguments)}
    columns = (*node.keys, *((name, argument) for argument, name in names.items()))
    return replace(
        node,
        input=Project(node.input, columns),
        keys=tuple((name, Column(name)) for name, _ in node.keys),
        aggregations=tuple(_over_column(each, names) for each in node.aggregations),
    )


def _over_column(aggregation: Aggregation, names: dict[Expression, str]) -> Aggregation:
    if aggregation.argument is None:
        return aggregation
    return replace(aggregation, argument=Column(names[aggregation.argument]))
