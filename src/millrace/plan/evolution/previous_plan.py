"""The parts of trees that ran, found again by what they compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.query_network import Network, Query
from millrace.plan.nodes.relational_nodes import Numbered, Scan, Since
from millrace.plan.nodes.update_nodes import WindowQueue
from millrace.plan.physical.levels import Cuts
from millrace.plan.physical.operator_choice import has_state
from millrace.plan.physical.stages import operators_by_place, physical


@dataclass(frozen=True)
class Part:
    """A part of a tree that ran: without a start on top of it, and with those inside."""

    query: str
    node: Node
    start: Microseconds


@dataclass(frozen=True)
class Places:
    """The parts of a query's tree by what they compute, whatever rows they began with."""

    keys: dict[str, object]

    @classmethod
    def of(cls, query: Query, tree: Node, *, spread: bool) -> Places:
        """For a tree without starts."""
        cuts = Cuts(query.options)
        if spread:
            cuts.root(tree, query.name)
        names, ports = operators_by_place(query, tree), {path: cut.port for path, cut in cuts.cuts.items()}
        keys: dict[str, object] = {}
        for path, node in _placed(tree, query.name):
            below = tuple((place.removeprefix(path), port) for place, port in ports.items() if _below(place, path))
            keys[path] = type(node).__name__, names[path], below
        return cls(keys)


def _below(path: str, other: str) -> bool:
    return path.startswith(f"{other}.")


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


def carried_out(query: Query) -> Node:
    """The tree that a query is carried out by, whatever its start."""
    fresh = replace(query, tree=None, since=NO_BOUND, outlets_since=())
    return physical(Network((fresh,))).roots[0][1]


class Ran:
    """All parts of the trees that ran."""

    def __init__(self, network: Network, *, spread: bool) -> None:
        self.spread = spread
        self.whole: dict[str, object] = {}
        """What each query computed, by its name."""
        self._parts: dict[object, list[Part]] = {}
        self._roots = {query.name: (query, root) for query, root in physical(network).roots}
        for query, root in self._roots.values():
            places = Places.of(query, _bare(root), spread=spread)
            self.whole[query.name] = places.keys[query.name]
            for path, node in _placed(root, query.name):
                if any(has_state(each, query.options) for each in walk(node)):
                    part = Part(query.name, node, max(_starts_in(node), default=NO_BOUND))
                    self._parts.setdefault(places.keys[path], []).append(part)

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


def _starts_in(node: Node) -> Iterable[Microseconds]:
    return (each.time for each in walk(node) if isinstance(each, Since))


def can_be_cut(node: Node) -> bool:
    """Whether the times of rows say whether they have been given before, given how far the streams have come."""
    scans = [each for each in walk(node) if isinstance(each, Scan)]
    known = all(not each.outlet and not each.stream.time.per for each in scans)
    # What a window queue lets go belongs to windows that it has committed to, whatever the times of its rows.
    return known and not any(isinstance(each, Numbered | WindowQueue) for each in walk(node))
