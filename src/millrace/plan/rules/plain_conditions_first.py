"""Choose rows by what costs little first: conditions that call functions of the user's own stand above all others.

Each of those has a filter of its own, so that none is computed for rows that another one has dropped.
"""

from __future__ import annotations

from functools import reduce

from millrace.kernel.columns.expressions import Call, Expression
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter


def plain_conditions_first(node: Node) -> Node:
    """The tree with filters that call functions of the user's own apart from the others, and above them."""
    node = node.map_children(plain_conditions_first)
    if not isinstance(node, Filter) or not node.predicate.calls_user_code:
        return node
    parts = _conjuncts(node.predicate)
    plain = [each for each in parts if not each.calls_user_code]
    below = node.input
    if plain:
        below = Filter(below, reduce(lambda first, second: Call("and", (first, second)), plain))
    return reduce(Filter, [each for each in parts if each.calls_user_code], below)


def _conjuncts(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for each in predicate.arguments for part in _conjuncts(each)]
    return [predicate]
