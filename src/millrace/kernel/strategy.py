"""Next-operator-selection rules, and the state table that maps each operator to one (001 sections 2.3 and 3).

Rules:
- A rule answers, after an operator has been executed, which one is next; None gives control back to the scheduler.
- Before a sink there is no forward: the host empties the buffer, so a rule treats it as if nothing were yielded.
- Different operators of one graph may follow different strategies; a strategy changes by making the table anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.kernel.graph import Graph, Node

Rule = Callable[[Node, int], Node | None]
"""Takes the operator and how many rows it has taken since it was entered."""


@dataclass(frozen=True)
class State:
    """A row of the state table."""

    node: Node
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]
    rule_name: str
    rule: Rule


def depth_first(node: Node, taken: int) -> Node | None:
    """Forward if it yields, encore if there is more, else backtrack."""
    if node.yields:
        return _successor(node)
    return node if node.more else backtrack(node)


def breadth_first(node: Node, taken: int) -> Node | None:
    """Encore if there is more, forward if it yields, else backtrack."""
    if node.more:
        return node
    return _successor(node) if node.yields else backtrack(node)


def round_robin(node: Node, taken: int) -> Node | None:
    """Encore if there is more, forward if it yields, else exit."""
    if node.more:
        return node
    return _successor(node) if node.yields else None


def batching(size: int) -> Rule:
    """Encore until `size` rows have been taken, then as depth-first (k, where 001 prints k + 1)."""

    def rule(node: Node, taken: int) -> Node | None:
        return node if node.more and taken < size else depth_first(node, taken)

    return rule


def backtrack(node: Node) -> Node | None:
    """The operator that feeds the empty input with the least register; None when that is a source."""
    arc = min(node.inputs, key=lambda each: each.register)
    return None if arc.producer.is_source else arc.producer


def _successor(node: Node) -> Node:
    return next(arc.consumer for arc in node.outputs if arc and not arc.consumer.is_sink)


def rule_of(strategy: str) -> tuple[str, Rule]:
    """The short name and the rule of a strategy: dfs, bfs, rr, or batch:K."""
    name, _, size = strategy.partition(":")
    if name == "batch":
        return f"Batch({size})", batching(int(size))
    return {"dfs": ("DFS", depth_first), "bfs": ("BFS", breadth_first), "rr": ("RR", round_robin)}[name]


def state_table(graph: Graph) -> dict[str, State]:
    """The rules of its operators' strategies mapped onto a graph, by operator name."""
    return {node.name: _state(node) for node in graph.operators()}


def _state(node: Node) -> State:
    before = tuple(arc.producer.name for arc in node.inputs if not arc.producer.is_source)
    after = tuple(arc.consumer.name for arc in node.outputs if not arc.consumer.is_sink)
    places = {(True, True): "NOS", (False, True): "Source", (True, False): "Sink", (False, False): "Source-Sink"}
    name, rule = rule_of(node.strategy)
    return State(node, before, after, f"{name}-{places[bool(before), bool(after)]}", rule)
