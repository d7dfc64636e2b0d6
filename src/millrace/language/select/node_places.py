"""Where the nodes of a query stand in its text."""

from __future__ import annotations

from dataclasses import dataclass, field

from millrace.errors import Place
from millrace.plan.nodes.node import Node, walk


@dataclass(frozen=True)
class NodePlaces:
    """Places of nodes, and of parts of them, by identity: nodes of one content may stand at several places."""

    _found: dict[tuple[int, str], tuple[Node, Place | None]] = field(default_factory=dict)

    def note(self, node: Node, place: Place | None, *, part: str = "") -> None:
        """Say where a tree stands, or a part of its root; what has a place already keeps it."""
        for each in [node] if part else walk(node):
            # A node that is kept keeps its identity to itself.
            self._found.setdefault((id(each), part), (each, place))

    def of(self, node: Node | None, part: str = "") -> Place | None:
        """Where a part of a node stands, or else the node."""
        found = self._found.get((id(node), part)) or self._found.get((id(node), ""))
        return None if found is None else found[1]
