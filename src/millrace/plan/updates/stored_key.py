"""The columns that tell the results of a query apart in a store, where a newer result takes the place of an older one.

Rules:
- Results of an update query are told apart by its update key.
- Those of windows over plain streams are told apart by the columns of GROUP BY and the window.
- All other results, and those that have lost a column of these, are not told apart.
"""

from __future__ import annotations

from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START, Aggregate
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Filter, Project, Released
from millrace.plan.updates.queue_placement import key_of
from millrace.plan.updates.update_keys import first_of, held_by


def stored_key(query: Query) -> tuple[str, ...] | None:
    """The columns that tell the results of a query apart; None if nothing does."""
    if (key := key_of(query)) is not None:
        return key
    parts, names = _parts(query.root), query.root.column_names()
    return None if parts is None or not all(parts) else tuple(dict.fromkeys(first_of(each, names) for each in parts))


def _parts(node: Node) -> list[frozenset[str]] | None:
    """The columns that tell the rows of a tree apart, each as all names that hold it; None without such."""
    match node:
        case Filter() | Released():
            return _parts(node.input)
        case Project():
            held = [(name, held_by(each, node.input.schema)) for name, each in node.columns]
            below = _parts(node.input)
            return below and [frozenset(name for name, column in held if column in part) for part in below]
        case Aggregate() if node.window.has_one_result:
            # Windows of a group that begin together are one; so are those that end together.
            bounds = [] if node.window.bounds_type is None else [frozenset((WINDOW_START, WINDOW_END))]
            return [*(frozenset((name,)) for name, _ in node.keys), *bounds]
    return None
