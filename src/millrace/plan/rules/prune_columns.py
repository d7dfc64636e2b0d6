"""Drop the columns nobody reads, right above the scan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millrace.kernel.expressions import Column, Expression
from millrace.plan.nodes import Aggregate, Filter, Node, OrderByTime, Project, Scan, Union


def prune_columns(root: Node) -> Node:
    """The tree with narrow scans; what the root gives stays as it is."""
    return _prune(root, list(root.schema.names))


def _prune(node: Node, wanted: list[str]) -> Node:
    """The node with at least the `wanted` columns of it."""
    match node:
        case Scan():
            return _only(node, wanted)
        case Filter():
            return replace(node, input=_prune(node.input, _reads([node.predicate], wanted)))
        case Project():
            columns = tuple((name, each) for name, each in node.columns if name in wanted)
            if isinstance(node.input, Scan):
                return Project(node.input, columns)
            return Project(_prune(node.input, _reads(each for _, each in columns)), columns)
        case Union():
            return Union(tuple(_only(_prune(each, wanted), wanted) for each in node.inputs))
        case Aggregate():
            arguments = [each.argument for each in node.aggregations if each.argument is not None]
            return replace(node, input=_prune(node.input, _reads([*(key for _, key in node.keys), *arguments])))
        case OrderByTime():
            return OrderByTime(_prune(node.input, wanted))


def _only(node: Node, wanted: list[str]) -> Node:
    """The wanted columns and no others, in the node's order."""
    names = [name for name in node.schema.names if name in wanted]
    if names == node.schema.names:
        return node
    return Project(node, tuple((name, Column(name)) for name in names))


def _reads(expressions: Iterable[Expression], also: Iterable[str] = ()) -> list[str]:
    return list(dict.fromkeys([*also, *(name for each in expressions for name in each.columns())]))
