"""Drop the columns nobody reads: from projections, and before unions.

A scan is not narrowed by itself: a stream is read in the columns that some query wants, and a filter right above the
scan is then the same for all queries that have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millrace.kernel.expressions import Column, Expression
from millrace.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Node,
    Numbered,
    OrderByTime,
    Project,
    Rank,
    RollUp,
    Scan,
    Since,
    Slack,
    Union,
)


def prune_columns(root: Node) -> Node:
    """The tree without columns that nobody reads; what the root gives stays as it is."""
    return _prune(root, list(root.schema.names))


def _prune(node: Node, wanted: list[str]) -> Node:
    """The node with at least the `wanted` columns of it."""
    match node:
        case Scan():
            return node
        case Filter():
            return replace(node, input=_prune(node.input, reads([node.predicate], wanted)))
        case Project():
            columns = tuple((name, each) for name, each in node.columns if name in wanted)
            return Project(_prune(node.input, reads(each for _, each in columns)), columns)
        case Union():
            return Union(tuple(_only(_prune(each, wanted), wanted) for each in node.inputs))
        case Aggregate():
            return replace(node, input=_prune(node.input, reads(node.expressions())))
        case Distinct():
            return replace(node, input=_prune(node.input, list(node.schema.names)))
        case Rank():
            return replace(node, input=_prune(node.input, node.reads(wanted)))
        case OrderByTime() | Since() | Numbered() | RollUp() | Slack():
            return replace(node, input=_prune(node.input, wanted))


def _only(node: Node, wanted: list[str]) -> Node:
    """The wanted columns and no others, in the node's order."""
    names = [name for name in node.schema.names if name in wanted]
    if names == node.schema.names:
        return node
    return Project(node, tuple((name, Column(name)) for name in names))


def reads(expressions: Iterable[Expression], also: Iterable[str] = ()) -> list[str]:
    """The columns that expressions read, and others, each once."""
    return list(dict.fromkeys([*also, *(name for each in expressions for name in each.columns())]))
