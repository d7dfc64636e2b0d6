"""Drop the columns nobody reads: from projections, and before unions, joins and queues.

A scan is not narrowed by itself: a stream is read in the columns that some query wants, and a filter right above the
scan is then the same for all queries that have it.
"""

from __future__ import annotations

from dataclasses import replace

from millrace.kernel.columns.expressions import Column
from millrace.plan.nodes.columns_read import read_of_inputs
from millrace.plan.nodes.network import AnyJoin, AnyQueue, Node, Project, Union, UpdateJoin, with_inputs


def prune_columns(root: Node) -> Node:
    """The tree without columns that nobody reads; what the root gives stays as it is."""
    return _prune(root, list(root.schema.names))


def _prune(node: Node, wanted: list[str]) -> Node:
    """The node with at least the `wanted` columns of it."""
    if isinstance(node, Project):
        node = replace(node, columns=tuple((name, each) for name, each in node.columns if name in wanted))
    read = iter(read_of_inputs(node, wanted))
    if isinstance(node, Union | AnyJoin | AnyQueue | UpdateJoin):
        return with_inputs(node, lambda each: _only(_prune(each, names := next(read)), names))
    return with_inputs(node, lambda each: _prune(each, next(read)))


def _only(node: Node, wanted: list[str]) -> Node:
    """The wanted columns and no others, in the node's order."""
    names = [name for name in node.schema.names if name in wanted]
    if names == node.schema.names:
        return node
    return Project(node, tuple((name, Column(name)) for name in names))
