"""Next-operator-selection rules, and the state table that maps each operator to one (001 sections 2.3 and 3).

A rule answers, after an operator has been executed, which one is next; None gives control back to the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.kernel.graph import Graph, Node

Rule = Callable[[Node], Node | None]


@dataclass(frozen=True)
class State:
    """A row of the state table."""

    node: Node
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]
    rule_name: str
    rule: Rule


def depth_first(node: Node) -> Node | None:
    """Forward if it yields, encore if there is more, else backtrack."""
    if node.yields:
        return _successor(node)
    return node if node.more else backtrack(node)


def depth_first_before_sink(node: Node) -> Node | None:
    """Before a sink there is no forward: encore if there is more, else backtrack."""
    return node if node.more else backtrack(node)


def backtrack(node: Node) -> Node | None:
    """The operator that feeds the empty input with the least register; None when that is a source."""
    arc = min(node.inputs, key=lambda each: each.register)
    return None if arc.producer.is_source else arc.producer


def _successor(node: Node) -> Node:
    return next(arc.consumer for arc in node.outputs if arc and not arc.consumer.is_sink)


def state_table(graph: Graph) -> dict[str, State]:
    """The depth-first rules mapped onto a graph, by operator name."""
    return {node.name: _state(node) for node in graph.operators()}


def _state(node: Node) -> State:
    before = tuple(arc.producer.name for arc in node.inputs if not arc.producer.is_source)
    after = tuple(arc.consumer.name for arc in node.outputs if not arc.consumer.is_sink)
    kind = {(True, True): "DFS-NOS", (False, True): "DFS-Source", (True, False): "DFS-Sink"}
    name = kind.get((bool(before), bool(after)), "DFS-Source-Sink")
    return State(node, before, after, name, depth_first if after else depth_first_before_sink)
