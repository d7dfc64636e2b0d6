"""By which columns the rows of a tree must be, or are, spread over buckets."""

from __future__ import annotations

from millrace.kernel.columns.expressions import Column
from millrace.plan.nodes.node import Keys, Node
from millrace.plan.nodes.relational_nodes import Filter, Numbered, OrderByTime, Project, Union
from millrace.plan.nodes.update_nodes import AnyQueue


def is_over_queue(node: Node) -> bool:
    """Whether a tree is a queue under filters and projections alone."""
    return is_over_queue(node.input) if isinstance(node, Filter | Project) else isinstance(node, AnyQueue)


def read_as(node: Filter | Project, keys: Keys | None) -> Keys | None:
    """What a map's input calls columns that it gives; None if one of them is computed."""
    if keys is None or isinstance(node, Filter):
        return keys
    read = {name: each.name for name, each in node.columns if isinstance(each, Column)}
    return tuple(read[name] for name in keys) if all(name in read for name in keys) else None


def all_renamed(node: Node, spread: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """The same for several ways to say it, without those that are lost."""
    return tuple(found for each in spread if (found := node.renamed(each)) is not None)


def read_by(node: Node) -> tuple[Node, ...]:
    """What an operator reads: an ordered union is one operator, not a union and a sort; a numbered one too."""
    if isinstance(node, OrderByTime | Numbered) and isinstance(node.input, Union):
        return node.input.inputs
    return node.children()
