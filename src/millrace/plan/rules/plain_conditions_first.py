"""Choose rows by what costs little first: conditions that call user functions stand above all others.

Each of those has a filter of its own, so that none is computed for rows that another one has dropped.
"""

from __future__ import annotations

from functools import reduce

from millrace.plan.nodes.conditions import all_of, conjuncts
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter


def plain_conditions_first(node: Node) -> Node:
    """The tree with filters that call user functions apart from the others, and above them."""
    node = node.map_children(plain_conditions_first)
    if not isinstance(node, Filter) or not node.predicate.is_guarded:
        return node
    parts = conjuncts(node.predicate)
    plain = all_of(each for each in parts if not each.is_guarded)
    below = node.input if plain is None else Filter(node.input, plain)
    return reduce(Filter, [each for each in parts if each.is_guarded], below)
