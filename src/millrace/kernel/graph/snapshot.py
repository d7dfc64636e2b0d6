"""A graph's state as a host stores it: what changed since the last save, and how to go on from all of it.

Rules:
- A save is taken at rest: buffers are empty, so arcs are no part of it.
- The control is small and whole every time; segments are named once added and once removed.
- The segments of an operator that has left the graph are removed with the next save.
- State finds its operator by name. Operators that were not there when it was saved start empty, and learn at once what
  has been promised to others; the state of those that are gone is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.state import Changes

Place = tuple[str, int]
"""Where a segment belongs: an operator's name and the segment's number."""


@dataclass(frozen=True)
class Snapshot:
    """What changed since the last save: a small whole (`control`), segments added, places removed."""

    control: dict[str, Any]
    added: dict[Place, pa.Table]
    removed: list[Place]


class SnapshotLog:
    """Takes snapshots; knows which segments a host has, and which of them are needed no more."""

    def __init__(self) -> None:
        self._saved: set[Place] = set()
        self._dropped: set[Place] = set()

    def forget(self, graph: Graph) -> None:
        """Remove, with the next save, what was saved of operators that are no longer in the graph."""
        self._dropped |= {place for place in self._saved if place[0] not in graph.nodes}
        self._saved -= self._dropped

    def save(self, graph: Graph, edges: Mapping[str, Ingress]) -> Snapshot:
        """What changed since the last call."""
        notes, added, removed = {}, {}, sorted(self._dropped)
        for node in graph.operators():
            assert node.operator is not None
            changes = node.operator.changes()
            notes[node.name] = dict(changes.note)
            added.update({(node.name, number): table for number, table in changes.added.items()})
            removed += [(node.name, number) for number in changes.removed]
        self._saved = (self._saved | set(added)) - set(removed)
        self._dropped.clear()
        control = {
            "sources": {name: ingress.save() for name, ingress in edges.items()},
            "nodes": {node.name: _save_node(node) for node in graph.nodes.values()},
            "notes": notes,
        }
        return Snapshot(control, added, removed)

    def restore(
        self,
        graph: Graph,
        edges: Mapping[str, Ingress],
        control: Mapping[str, Any],
        segments: Mapping[Place, pa.Table],
    ) -> None:
        """Put a new graph where the last control and all live segments say."""
        for name, saved in control["sources"].items():
            if name in edges:
                edges[name].restore(saved)
        for name, saved in control["nodes"].items():
            if name in graph.nodes:
                _restore_node(graph.nodes[name], saved)
        for node in nodes_not_in(control, graph):
            _begin_node(node)
        for node in graph.operators():
            note = control["notes"].get(node.name)
            if note and node.operator is not None:
                own = {number: table for (name, number), table in segments.items() if name == node.name}
                node.operator.restore(Changes(own, (), note))
        self._saved = set(segments)
        self.forget(graph)


def nodes_not_in(control: Mapping[str, Any], graph: Graph) -> list[GraphNode]:
    """The nodes that were not there when the control was saved."""
    return [node for node in graph.nodes.values() if node.name not in control["nodes"]]


def _save_node(node: GraphNode) -> dict[str, Any]:
    counts = {"malformed": node.malformed} if node.malformed else {}
    registers = [arc.register for arc in node.inputs]
    return {"bound": node.bound, "promised": node.promised, "registers": registers, **counts}


def _restore_node(node: GraphNode, saved: Mapping[str, Any]) -> None:
    node.bound, node.promised, node.malformed = saved["bound"], saved["promised"], saved.get("malformed", 0)
    for arc, register in zip(node.inputs, saved["registers"], strict=True):
        arc.register = arc.told = register
        arc.active = False


def _begin_node(node: GraphNode) -> None:
    """Tell a node that is new among others what has been promised to them; a sink has nothing to do with it."""
    for arc in node.inputs:
        if arc.producer.promised > NO_BOUND:
            arc.register, arc.active = arc.producer.promised, not node.is_sink
