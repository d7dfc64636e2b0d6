"""Which operator is next when a rule gives control back: components by share, fragments by the memory they free.

Rules:
- The component that has work and has used the least of its share is next. A component gets no credit for idle time,
  so one that floods takes its share and no more.
- Break nodes cut a component into fragments. One that was entered keeps control until its rules give it back. Then the
  one with work and the highest priority is next (the memory it frees per unit of work, see chain.py), among equals the
  one that was served longest ago. A fragment of higher priority takes control at once.
- Components take turns step by step, but a path under round-robin is finished first: its operators empty their inputs
  before another path is visited (001 section 2.3). What it used counts against its share as ever.
- A fragment whose input never ends gives way after `_KEEPS` steps.
- Inside a fragment the rules of the state table decide; it is entered at the operator furthest downstream with input.
- All parts that have queues are one component, so that the queries together are as fresh as can be: first what queues
  have released is processed, then all input enters the queues, then the most urgent queue releases rows.
- Every other turn goes to a queue whose next row saves no staleness: urgent rows may wait behind that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.updates.queue import Queue

_Item = TypeVar("_Item")

_KEEPS = 4096
"""Steps after which a fragment that still has input lets others of its component have a turn."""
_PROCESSES, _ENTERS, _RELEASES = range(3)
"""What an operator of a component with queues has to do next, in the order in which it is done."""


class Component:
    """A connected part of the graph with a share of the processor, or all such parts that have queues."""

    def __init__(self, share: float, *, queued: bool = False) -> None:
        self.share = share
        self.queued = queued
        self.spent = 0.0
        """Microseconds of work, divided by the share."""
        self.busy: dict[Fragment, None] = {}


class Fragment:
    """Operators between break nodes, and where its rules stand."""

    def __init__(self, component: Component, nodes: list[GraphNode], scheduler: Scheduler) -> None:
        self.component = component
        self.nodes = set(nodes)
        self.ready: set[GraphNode] = set()
        self.current: GraphNode | None = None
        self.taken = 0
        """Rows that the current operator has taken since it was entered."""
        self.priority = 0.0
        self.served = 0
        """At which turn of the scheduler it was served last."""
        self.kept = 0
        """For how many steps it has kept control."""
        self._scheduler = scheduler
        for node in nodes:
            node.ready, node.done = self.add, self.remove
            if node.waiting:
                self.add(node)

    @property
    def keeps_control(self) -> bool:
        """True if its rules have named the next operator."""
        return self.current is not None and self.kept < _KEEPS

    def add(self, node: GraphNode) -> None:
        """An operator has input."""
        if not self.ready:
            self._scheduler.begin(self)
        self.ready.add(node)

    def remove(self, node: GraphNode) -> None:
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
        component_of = _components(graph)
        self.fragments = [
            Fragment(component_of[nodes[0]], [node for node in nodes if node.operator is not None], self)
            for nodes in graph.components(cut=True)
        ]
        self._fragment_of = {node: fragment for fragment in self.fragments for node in fragment.nodes}
        self._shares = {node: _share_below(node) for node in self._order if _is_queue(node)}
        """What the staleness of a queue counts beside that of others."""
        self._released = dict.fromkeys(self._shares, 0)
        """At which turn each queue released rows last."""
        self._in_paths = any(node.strategy == "rr" for node in self._fragment_of)
        self._last: Fragment | None = None
        """The fragment that was served last."""
        self._gave_way = False
        """True if the last turn went to a queue whose next row saves no staleness."""
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

    def next(self, now: Microseconds = 0) -> tuple[Fragment, GraphNode] | None:
        """The fragment whose turn it is, and where it is entered; None when nothing has input."""
        if not self._busy:
            return None
        component = (self._visited() if self._in_paths else None) or _least(self._busy, _spent)
        self._floor = max(self._floor, component.spent)
        self._turn += 1
        if component.queued and sum(len(fragment.ready) for fragment in component.busy) > 1:
            fragment, node = self._among_queues(component, now)
        else:
            fragment = _least(component.busy, _rank_of_next)
            node = self._entry(fragment, fragment.ready)
            if self._in_paths or len(component.busy) > 1:
                fragment.kept = fragment.kept + 1 if fragment.keeps_control else 0
        fragment.served, self._last = self._turn, fragment
        return fragment, node

    def _visited(self) -> Component | None:
        """The component of the path that round-robin has to finish, if it is on one."""
        last = self._last
        if last is None or not last.keeps_control:
            return None
        return last.component if last.current in last.ready and last.current.strategy == "rr" else None

    def _among_queues(self, component: Component, now: Microseconds) -> tuple[Fragment, GraphNode]:
        """An operator that has input before queues may release rows, else the most urgent queue."""
        stages = {node: _stage(node) for fragment in component.busy for node in fragment.ready}
        first = min(stages.values())
        if first == _RELEASES:
            node = self._most_urgent(list(stages), now)
            fragment = self._fragment_of[node]
            fragment.taken = 0
            return fragment, node
        ready = [node for node, stage in stages.items() if stage == first]
        fragment = min((self._fragment_of[node] for node in ready), key=_rank)
        return fragment, self._entry(fragment, fragment.ready.intersection(ready))

    def _most_urgent(self, queues: list[GraphNode], now: Microseconds) -> GraphNode:
        """The queue that saves most staleness by releasing rows; among equals the one that did so longest ago."""
        urgency = {node: self._shares[node] * _urgency(node, now) for node in queues}
        without_gain = [node for node in queues if not urgency[node]]
        self._gave_way = bool(without_gain) and not self._gave_way
        some = without_gain if self._gave_way else queues
        chosen = min(some, key=lambda node: (-urgency[node], self._released[node], -self._order[node]))
        self._released[chosen] = self._turn
        return chosen

    def _entry(self, fragment: Fragment, ready: set[GraphNode]) -> GraphNode:
        """Where a fragment is entered: at its current operator, else furthest downstream."""
        current = fragment.current
        if current is not None and current.waiting and current in ready:
            return current
        fragment.taken = 0
        return max(ready, key=self._order.__getitem__)

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


def _components(graph: Graph) -> dict[GraphNode, Component]:
    """The component of each node."""
    parts = [(nodes, any(_is_queue(node) for node in nodes)) for nodes in graph.components()]
    common = Component(sum(_share(nodes) for nodes, queued in parts if queued), queued=True)
    found: dict[GraphNode, Component] = {}
    for nodes, queued in parts:
        found |= dict.fromkeys(nodes, common if queued else Component(_share(nodes)))
    return found


def _share(nodes: Iterable[GraphNode]) -> float:
    return sum(node.share for node in nodes if node.is_sink)


def _share_below(node: GraphNode) -> float:
    """The shares of the sinks that a node leads to."""
    return sum(arc.consumer.share if arc.consumer.is_sink else _share_below(arc.consumer) for arc in node.outputs)


def _is_queue(node: GraphNode) -> bool:
    return node.operator is not None and node.operator.queues


def _stage(node: GraphNode) -> int:
    """What an operator that is ready has to do next."""
    if _is_queue(node):
        return _ENTERS if node.waiting > node.unfinished else _RELEASES
    return _PROCESSES if node.after_queue else _ENTERS


def _urgency(node: GraphNode, now: Microseconds) -> float:
    assert isinstance(node.operator, Queue)
    return node.operator.urgency(now)


def _least(items: Mapping[_Item, None], key: Callable[[_Item], Any]) -> _Item:
    """The least of some items, which are mostly one."""
    if len(items) == 1:
        return next(iter(items))
    return min(items, key=key)


def _spent(component: Component) -> float:
    return component.spent


def _rank(fragment: Fragment) -> tuple[float, int]:
    return -fragment.priority, fragment.served


def _rank_of_next(fragment: Fragment) -> tuple[float, bool, int]:
    return -fragment.priority, not fragment.keeps_control, fragment.served
