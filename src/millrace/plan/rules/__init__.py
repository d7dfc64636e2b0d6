"""The rewrites of a query's tree, one per file, in the order in which they are applied.

- `prepare_aggregates`      keys and arguments of aggregates are computed in a projection below them
- `push_below_unions`       filters and projections go below unions
- `plain_conditions_first`  conditions that call user functions stand above all others
- `user_calls_once`         a user function is called once per row
- `prune_columns`           columns that are not read are dropped

A rule takes a tree and gives one with the same answer. It imports `nodes` alone; `physical/stages.py` applies all.
"""

from __future__ import annotations

from collections.abc import Callable

from millrace.plan.nodes.node import Node
from millrace.plan.rules.plain_conditions_first import plain_conditions_first
from millrace.plan.rules.prepare_aggregates import prepare_aggregates
from millrace.plan.rules.prune_columns import prune_columns
from millrace.plan.rules.push_below_unions import push_below_unions
from millrace.plan.rules.user_calls_once import user_calls_once

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    prepare_aggregates,
    push_below_unions,
    plain_conditions_first,
    user_calls_once,
    prune_columns,
)


def optimize(root: Node, queued: Rule = lambda root: root) -> Node:
    """A query's tree after all rules.

    Queues are put in where unions are still as they are written, and before columns are dropped: `queued` does it.
    """
    for rule in (RULES[0], queued, *RULES[1:]):
        root = rule(root)
    return root
