"""Drop the columns that are not read: from projections, and before unions, joins and queues.

A scan is not narrowed by itself: a stream is read in the columns that some query wants, and a filter right above the
scan is then the same for all queries that have it.
"""

from __future__ import annotations

from dataclasses import replace

from millrace.kernel.columns.expressions import Column
from millrace.plan.nodes.node import Node, SeveralInputs
from millrace.plan.nodes.relational_nodes import Explode, Project
from millrace.plan.nodes.table_nodes import TableJoin


def prune_columns(root: Node) -> Node:
    """The tree without columns that are not read; those of the root stay as they are."""
    return _prune(root, root.column_names())


def _prune(node: Node, wanted: list[str]) -> Node:
    """The node with at least the `wanted` columns of it."""
    if isinstance(node, Project):
        names = set(wanted)
        node = replace(node, columns=tuple((name, each) for name, each in node.columns if name in names))
    if isinstance(node, Explode | TableJoin):
        node = node.narrowed(wanted)
    read = node.reads(wanted)
    children = [_prune(each, names) for each, names in zip(node.children(), read, strict=True)]
    if isinstance(node, SeveralInputs):
        children = [_only(each, names) for each, names in zip(children, read, strict=True)]
    return node.with_children(children)


def _only(node: Node, wanted: list[str]) -> Node:
    """The wanted columns and no others, in the node's order."""
    given = node.column_names()
    chosen = set(wanted)
    names = [name for name in given if name in chosen]
    return node if names == given else Project(node, tuple((name, Column(name)) for name in names))
