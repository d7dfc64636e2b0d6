"""Who is next when a rule gives control back: components by their shares, fragments by the memory they free.

Rules:
- A component that has work and has used the least of its share is next; one that comes back from idleness gets no
  credit for it. So a component that floods takes its share and no more.
- Break nodes cut a component into fragments. Of those with work the one with the highest priority is next (the memory
  it frees per unit of work, see chain.py), among equals the one that was served longest ago.
- Inside a fragment the rules of the state table decide; it is entered at the operator furthest downstream with input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph import Graph, Node

_Item = TypeVar("_Item")


class Component:
    """A connected part of the graph with a share of the processor."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.spent = 0.0
        """Microseconds of work, divided by the share."""
        self.busy: dict[Fragment, None] = {}


class Fragment:
    """Operators between break nodes, and where its rules stand."""

    def __init__(self, component: Component, nodes: list[Node], scheduler: Scheduler) -> None:
        self.component = component
        self.nodes = set(nodes)
        self.ready: set[Node] = set()
        self.current: Node | None = None
        self.taken = 0
        """Rows that the current operator has taken since it was entered."""
        self.priority = 0.0
        self.served = 0
        self._scheduler = scheduler
        for node in nodes:
            node.ready, node.done = self.add, self.remove
            if node.waiting:
                self.add(node)

    def add(self, node: Node) -> None:
        """An operator has input."""
        if not self.ready:
            self._scheduler.begin(self)
        self.ready.add(node)

    def remove(self, node: Node) -> None:
        """An operator has no more input."""
        self.ready.discard(node)
        if not self.ready:
            self._scheduler.cease(self)


class Scheduler:
    """The fragments of a graph that have work, and whose turn it is."""

    def __init__(self, graph: Graph, before: Scheduler | None = None) -> None:
        """For a graph, going on from what the scheduler `before` the graph changed had counted."""
        self._floor: float = before._floor if before is not None else 0.0
        """What the component served last had used: one that has work again starts from no less."""
        self._priorities: Mapping[str, float] = before._priorities if before is not None else {}
        self._order = {node: number for number, node in enumerate(graph.nodes.values())}
        self._busy: dict[Component, None] = {}
        self._turn = 0
        component_of: dict[Node, Component] = {}
        for nodes in graph.components():
            component = Component(sum(node.share for node in nodes if node.is_sink))
            component_of |= dict.fromkeys(nodes, component)
        self.fragments = [
            Fragment(component_of[nodes[0]], [node for node in nodes if node.operator is not None], self)
            for nodes in graph.components(cut=True)
        ]
        if before is not None:
            self._go_on(before)
            self.prefer(self._priorities)

    def begin(self, fragment: Fragment) -> None:
        """A fragment has work again."""
        component = fragment.component
        if not component.busy:
            component.spent = max(component.spent, self._floor)
            self._busy[component] = None
        component.busy[fragment] = None

    def cease(self, fragment: Fragment) -> None:
        """A fragment has no more work."""
        component = fragment.component
        component.busy.pop(fragment, None)
        if not component.busy:
            self._busy.pop(component, None)

    def next(self) -> Fragment | None:
        """The fragment whose turn it is; None when nothing has input."""
        if not self._busy:
            return None
        component = _least(self._busy, _spent)
        self._floor = max(self._floor, component.spent)
        fragment = _least(component.busy, _rank)
        self._turn += 1
        fragment.served = self._turn
        return fragment

    def entry(self, fragment: Fragment) -> Node:
        """Where a fragment is entered: at its current operator, else furthest downstream."""
        current = fragment.current
        if current is not None and current.waiting:
            return current
        fragment.taken = 0
        return max(fragment.ready, key=self._order.__getitem__)

    def charge(self, fragment: Fragment, spent: Microseconds) -> None:
        """Count work against the share of the fragment's component; every step counts for something."""
        fragment.component.spent += (spent + 1) / fragment.component.share

    def prefer(self, priorities: Mapping[str, float]) -> None:
        """Give fragments the highest of the priorities of their operators."""
        self._priorities = priorities
        for fragment in self.fragments:
            fragment.priority = max((priorities.get(node.name, 0.0) for node in fragment.nodes), default=0.0)

    def _go_on(self, before: Scheduler) -> None:
        """Count on from what was counted before the graph changed."""
        spent = {node: each.component.spent for each in before.fragments for node in each.nodes}
        for fragment in self.fragments:
            known = max((spent.get(node, 0.0) for node in fragment.nodes), default=0.0)
            fragment.component.spent = max(fragment.component.spent, known)


def _least(items: Mapping[_Item, None], key: Callable[[_Item], Any]) -> _Item:
    """The least of some items; mostly there is one."""
    if len(items) == 1:
        return next(iter(items))
    return min(items, key=key)


def _spent(component: Component) -> float:
    return component.spent


def _rank(fragment: Fragment) -> tuple[float, int]:
    return -fragment.priority, fragment.served
