"""The plan that ran: parts of its trees, found again by what they compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Numbered, Since, scans_of
from millrace.plan.nodes.update_nodes import WindowQueue
from millrace.plan.physical.levels import Cuts
from millrace.plan.physical.operator_choice import has_state
from millrace.plan.physical.stages import operators_by_place, physical


@dataclass(frozen=True)
class _PreviousPart:
    """A part of a tree that ran: without a start at its top, and with the starts inside it."""

    query: str
    node: Node
    start: Microseconds


class PreviousPlan:
    """All parts of the trees that ran; `spread` if rows are spread over buckets."""

    def __init__(self, network: QueryNetwork, *, spread: bool) -> None:
        self.spread = spread
        self.whole: dict[str, object] = {}
        """What each query computed, by its name."""
        self._parts: dict[object, list[_PreviousPart]] = {}
        self._roots = {query.name: (query, root) for query, root in physical(network).roots}
        for query, root in self._roots.values():
            keys = part_keys(query, _bare(root), spread=spread)
            self.whole[query.name] = keys[query.name]
            for path, node in _placed(root, query.name):
                if any(has_state(each, query.options) for each in walk(node)):
                    start = max((each.time for each in walk(node) if isinstance(each, Since)), default=NO_BOUND)
                    self._parts.setdefault(keys[path], []).append(_PreviousPart(query.name, node, start))

    def best(self, key: object, query: str) -> Node | None:
        """The part with state that computed the same: the query's own, else the one with the earliest start."""
        found = self._parts.get(key, [])
        best = min(found, key=lambda each: (each.query != query, each.start), default=None)
        return None if best is None else best.node

    def query(self, name: str) -> tuple[Query, Node]:
        """A query that ran, and the tree that it was carried out by."""
        return self._roots[name]

    def renamed(self, key: object, leaving: Iterable[str]) -> str | None:
        """The query that computed the same as a whole, of those that leave."""
        return next((name for name in sorted(leaving) if self.whole[name] == key), None)


def part_keys(query: Query, tree: Node, *, spread: bool) -> dict[str, object]:
    """What each part of a query's tree computes, by place, whatever rows it began with; for a tree without starts."""
    cuts = Cuts(query.options)
    if spread:
        cuts.root(tree, query.name)
    names, ports = operators_by_place(query, tree), {path: cut.port for path, cut in cuts.cuts.items()}
    keys: dict[str, object] = {}
    for path, node in _placed(tree, query.name):
        below = tuple((place.removeprefix(path), port) for place, port in ports.items() if place.startswith(f"{path}."))
        keys[path] = type(node).__name__, names[path], below
    return keys


def _placed(node: Node, path: str) -> Iterable[tuple[str, Node]]:
    """All parts of a tree by place, starts left out: operators that are one have one place."""
    while isinstance(node, Since):
        node = node.input
    yield path, node
    for position, each in enumerate(node.operands()):
        yield from _placed(each, f"{path}.{position}")


def _bare(node: Node) -> Node:
    """A tree without starts."""
    return _bare(node.input) if isinstance(node, Since) else node.map_children(_bare)


def without_start(query: Query) -> Node:
    """The tree that a query is carried out by, whatever its start."""
    fresh = replace(query, tree=None, since=NO_BOUND, outlets_since=())
    return physical(QueryNetwork((fresh,))).roots[0][1]


def can_be_cut(node: Node) -> bool:
    """True if the times of rows say which of them have been emitted before, given how far the streams have come."""
    known = all(not each.outlet and not each.stream.time.per for each in scans_of(node))
    # What a window queue releases belongs to windows that it has committed to, whatever the times of its rows.
    return known and not any(isinstance(each, Numbered | WindowQueue) for each in walk(node))
