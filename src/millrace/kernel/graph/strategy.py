"""Next-operator-selection rules, and the state table that maps each operator to one (001 sections 2.3 and 3).

Rules:
- A rule answers, after an operator has been executed, which one is next; None gives control back to the scheduler.
- Forward goes to the successor of the rows (tuple-succ); if there is none, to where an ETS went (TSM-succ).
- There is a break before every queue: which queue releases rows next is decided among all queries, not on one path.
- Before a sink or a break node there is no forward: the host, or another fragment, empties that buffer.
- A fork serves its branches in turn. Backtracking goes to the empty input with the least register.
- Different operators of one graph may follow different strategies. When a strategy, a break node or a query changes,
  the table is made anew.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from millrace.kernel.graph.graph import Arc, Graph, GraphNode, Rule


@dataclass(frozen=True)
class State:
    """A row of the state table; a fork has one for each branch."""

    name: str
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]
    rule: str


def depth_first(node: GraphNode, taken: int) -> GraphNode | None:
    """Forward if it yields, encore if there is more, else backtrack."""
    return forward(node) or (node if node.waiting else backtrack(node))


def breadth_first(node: GraphNode, taken: int) -> GraphNode | None:
    """Encore if there is more, forward if it yields, else backtrack."""
    return node if node.waiting else forward(node) or backtrack(node)


def round_robin(node: GraphNode, taken: int) -> GraphNode | None:
    """Encore if there is more, forward if it yields, else exit."""
    return node if node.waiting else forward(node)


def batching(size: int) -> Rule:
    """Encore until `size` rows have been taken, then as depth-first (k, where 001 prints k + 1)."""

    def rule(node: GraphNode, taken: int) -> GraphNode | None:
        return node if node.waiting and taken < size else depth_first(node, taken)

    return rule


def forward(node: GraphNode) -> GraphNode | None:
    """The operator that a yielded element waits for, a fork's branches in turn; else where an ETS has gone."""
    if node.yielding:
        arcs, count = node.outputs, len(node.outputs)
        for step in range(count):
            arc = arcs[(node.turn + step) % count]
            if arc.pending and not arc.broken and not arc.consumer.is_sink:
                node.turn = (node.turn + step + 1) % count
                return arc.consumer
    enabled, node.tsm_successor = node.tsm_successor, None
    return enabled if enabled is not None and enabled.waiting and not enabled.is_sink else None


def backtrack(node: GraphNode) -> GraphNode | None:
    """The operator that feeds the empty input with the least register; None when that is a source or a break."""
    least: Arc | None = None
    for arc in node.inputs:
        if not arc.broken and not arc.pending and (least is None or arc.register < least.register):
            least = arc
    return None if least is None or least.producer.is_source else least.producer


_RULES: dict[str, tuple[str, Rule]] = {
    "dfs": ("DFS", depth_first),
    "bfs": ("BFS", breadth_first),
    "rr": ("RR", round_robin),
}


def rule_of(strategy: str) -> tuple[str, Rule]:
    """The short name and the rule of a strategy: dfs, bfs, rr, or batch:K."""
    name, _, size = strategy.partition(":")
    return (f"Batch({size})", batching(int(size))) if name == "batch" else _RULES[name]


def with_breaks(graph: Graph, breaks: Container[tuple[str, str]] = ()) -> None:
    """Break the arcs named by their two operators, those after an operator that is to be followed by a break, those
    into queues, and those that must be broken for round-robin; mend all others."""
    for node in graph.operators():
        queues = node.operator is not None and node.operator.queues
        for arc in node.inputs:
            before = arc.producer
            arc.broken = queues or before.breaks_after or (before.name, node.name) in breaks or _ends_a_path(arc)


def _ends_a_path(arc: Arc) -> bool:
    """True if round-robin, which is defined for paths, needs a break on an arc between two operators."""
    before, after = arc.producer, arc.consumer
    if before.operator is None or "rr" not in (before.strategy, after.strategy):
        return False
    return len(after.inputs) > 1 or len(branches(before)) > 1


def branches(node: GraphNode) -> list[Arc]:
    """The arcs from a node to operators."""
    return [arc for arc in node.outputs if not arc.consumer.is_sink]


def state_table(graph: Graph) -> list[State]:
    """The rules mapped onto a graph, as 001 Tables 1 to 3 print them."""
    table: list[State] = []
    for node in graph.nodes.values():
        if node.operator is not None:
            table.append(_state(node))
        table += _forks(node)
    return table


def _state(node: GraphNode) -> State:
    before = tuple(_before(arc) for arc in node.inputs if not arc.broken and not _begins(arc))
    own = [arc for arc in branches(node) if not arc.broken]
    after = (f"fork({node.name})",) if len(own) > 1 else tuple(arc.consumer.name for arc in own)
    places = {(True, True): "NOS", (False, True): "Source", (True, False): "Sink", (False, False): "Source-Sink"}
    return State(node.name, before, after, f"{rule_of(node.strategy)[0]}-{places[bool(before), bool(after)]}")


def _forks(node: GraphNode) -> list[State]:
    own = [arc for arc in branches(node) if not arc.broken]
    if len(own) < 2:
        return []
    before = () if node.is_source else (node.name,)
    name = "DFS" if node.is_source else rule_of(node.strategy)[0]
    return [State(f"fork({node.name})", before, (arc.consumer.name,), f"{name}-Fork") for arc in own]


def _begins(arc: Arc) -> bool:
    """True if an arc comes straight from a source that no other operator reads."""
    return arc.producer.is_source and len(branches(arc.producer)) == 1


def _before(arc: Arc) -> str:
    shared = [each for each in branches(arc.producer) if not each.broken]
    return f"fork({arc.producer.name})" if len(shared) > 1 else arc.producer.name
