"""Which aggregates use promises of single groups; all others need one bound (the describe operator, 004 A.1.1).

An aggregate over a stream under filters and projections closes the windows of each group by that group's promises, if
it groups by all columns that they are made for. Below all other operators the promises are rolled up to the least of
all groups seen.
"""

from __future__ import annotations

from millrace.kernel.columns.expressions import Column
from millrace.plan.nodes.aggregate_nodes import Aggregate, SessionWindow
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, RollUp, Scan, scan_of


def rolled_up(node: Node) -> Node:
    """The tree with promises of groups rolled up where they cannot be used as they are."""
    if _promises_by_group(node):
        return node
    return node.map_children(lambda each: RollUp(each) if _promises_by_group(each) else rolled_up(each))


def groups_of(node: Aggregate) -> tuple[str, ...]:
    """The keys of an aggregate that stand for the groups of its stream's promises, in their order; () if not all do."""
    sessions = isinstance(node.window, SessionWindow)
    if not node.input.is_prefix or not _promises_by_group(node.input):
        return ()
    if not sessions and not node.window.is_same_for_groups:
        return ()
    keys = {each.name: name for name, each in node.keys if isinstance(each, Column)}
    columns = [_traced(node.input, column) for column in scan_of(node.input).stream.time.per]
    found = tuple(keys[column] for column in columns if column in keys)
    # A session can only be closed for a single group if there are no keys beside those of its promises.
    whole = len(found) == len(node.keys) or not sessions
    return found if len(found) == len(columns) and whole else ()


def _promises_by_group(node: Node) -> bool:
    """True if what a tree gives is promised group by group: a stream, or an aggregate by its groups."""
    if isinstance(node, Scan):
        return bool(node.stream.time.per) and not node.outlet
    if isinstance(node, Aggregate):
        return bool(groups_of(node))
    return node.is_row_wise and all(map(_promises_by_group, node.children()))


def _traced(prefix: Node, column: str) -> str | None:
    """The name that a stream's column has above a prefix; None where it is lost."""
    if isinstance(prefix, Scan):
        return column
    name = _traced(prefix.children()[0], column)
    if name is None or not isinstance(prefix, Project):
        return name
    return next((given for given, each in prefix.columns if each == Column(name)), None)
