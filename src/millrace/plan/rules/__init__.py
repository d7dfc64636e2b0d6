"""The rewrites, one a file, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable

from millrace.plan.nodes import Node
from millrace.plan.rules.prepare_aggregates import prepare_aggregates
from millrace.plan.rules.prune_columns import prune_columns
from millrace.plan.rules.push_below_unions import push_below_unions

RULES: tuple[Callable[[Node], Node], ...] = (prepare_aggregates, push_below_unions, prune_columns)


def optimize(root: Node) -> Node:
    """A query's tree after all rules."""
    for rule in RULES:
        root = rule(root)
    return root
