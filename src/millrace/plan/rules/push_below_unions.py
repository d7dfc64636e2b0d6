"""Filter and project before a union rather than after it: what is dropped early is never moved."""

from __future__ import annotations

from dataclasses import replace

from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter, Project, Union


def push_below_unions(node: Node) -> Node:
    """The tree with filters and projections below the unions they stood on."""
    if isinstance(node, Filter | Project) and isinstance(node.input, Union):
        return push_below_unions(
            replace(node.input, inputs=tuple(replace(node, input=each) for each in node.input.inputs))
        )
    pushed = node.map_children(push_below_unions)
    return push_below_unions(pushed) if pushed != node else pushed
