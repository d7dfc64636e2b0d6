"""The stateless beginning of a tree: a scan under filters and projections alone."""

from __future__ import annotations

from millrace.plan.nodes.network import Filter, Node, Project, RollUp, Scan, Since, UpdateQueue, walk


def is_prefix(node: Node) -> bool:
    """Whether a tree is a scan under filters and projections alone."""
    return all(isinstance(each, Scan | Filter | Project | Since) for each in walk(node))


def keeps_entry(node: Node) -> bool:
    """Whether rows come in the order in which they entered: of a prefix, also rolled up or through an append queue.

    Joins that ask for it have no other queues below them.
    """
    return all(
        isinstance(each, Scan | Filter | Project | Since | RollUp)
        or (isinstance(each, UpdateQueue) and len(each.inputs) == 1)
        for each in walk(node)
    )


def scan_of(prefix: Node) -> Scan:
    """The scan at the bottom of a prefix."""
    scan = next(iter(walk(prefix)))
    assert isinstance(scan, Scan)
    return scan
