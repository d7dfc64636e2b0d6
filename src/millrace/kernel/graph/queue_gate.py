"""The queues of a graph: which of them may let go, and when what they let go has been worked off.

Rules:
- A queue that has let go is not ready again before no operator downstream of it, up to sinks and further queues, has
  anything waiting. Then it is told: that is the moment of delivery.
- Queues are open, each for any number of rows or for so many; or shut, and then the graph comes to rest while they hold
  rows. A queue whose input has ended is never shut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.clock import Clock
from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Graph, Node
from millrace.kernel.updates.queue import Queue

Allowance = int | None
"""How many rows a queue may let go; None is any number."""


class Queues:
    """Knows the queues of a graph, and which of them have rows under way."""

    def __init__(self) -> None:
        self.nodes: dict[Node, Queue] = {}
        self._below: dict[Node, tuple[Node, ...]] = {}
        self._above: tuple[Node, ...] = ()
        self.under_way: dict[Node, None] = {}
        """The queues of which something that they let go has not been worked off."""
        self._newcomers: Allowance = None
        """What a queue may let go that comes while the others have been opened or shut."""

    def adopt(self, graph: Graph) -> None:
        """Take over the queues of a graph as it is now."""
        before, self.nodes = self.nodes, {}
        for node in graph.operators():
            if isinstance(node.operator, Queue):
                self.nodes[node] = node.operator
                if node not in before:
                    node.operator.allowance = self._newcomers
        self._below = {node: tuple(dict.fromkeys(_below(node))) for node in self.nodes}
        self.under_way = {node: None for node in self.under_way if node in self.nodes}
        self._above = tuple(dict.fromkeys(each for node in self.nodes for each in _above(node)))
        after = {each for below in self._below.values() for each in below}
        for node in graph.nodes.values():
            node.after_queue = node in after

    def recount(self) -> None:
        """Look afresh at who can let go, before what waits where is counted anew."""
        for node, queue in self.nodes.items():
            node.unfinished = self._ready(node, queue)

    def open(self, allowance: Allowance | Mapping[str, Allowance]) -> None:
        """Let each queue let go of so many rows until the next call, or each by name as many as a mapping says."""
        if isinstance(allowance, Mapping):
            self._newcomers, own = 0, {node: allowance.get(node.name, 0) for node in self.nodes}
        else:
            self._newcomers, own = allowance, dict.fromkeys(self.nodes, allowance)
        for node, queue in self.nodes.items():
            queue.allowance = own[node]
            self.keep_ready(node, queue)

    def keep_ready(self, node: Node, queue: Queue) -> None:
        """Count what a queue can let go as one element that waits for it, or no longer."""
        node.keep_ready(self._ready(node, queue))

    def _ready(self, node: Node, queue: Queue) -> bool:
        return node not in self.under_way and queue.unfinished

    def lets_go(self, node: Node) -> None:
        """A queue lets go: it is not ready again before that has been worked off."""
        self.under_way[node] = None

    def look(self, clock: Clock) -> None:
        """Tell the queues of which all that they let go has been worked off."""
        for node in [node for node in self.under_way if not any(each.waiting for each in self._below[node])]:
            del self.under_way[node]
            queue = self.nodes[node]
            queue.on_time(clock.now())
            queue.on_rest()
            self.keep_ready(node, queue)

    @property
    def held_back(self) -> bool:
        """Whether a queue holds rows that could leave if only it might let go."""
        return any(queue.due and not queue.unfinished for queue in self.nodes.values())

    @property
    def entering(self) -> bool:
        """Whether something that has come is still on its way into a queue."""
        return any(node.waiting for node in self._above) or any(node.waiting > node.unfinished for node in self.nodes)

    def of(self, query: str) -> list[Node]:
        """The queues of a query."""
        return [node for node in self.nodes if _query_of(node) == query]

    def staleness(self, query: str, now: Microseconds) -> pa.Table:
        """How stale each key of a query is, see `Queue.staleness`; with a column `input` if it has several queues."""
        own = [self.nodes[node] for node in self.of(query)]
        if not own:
            raise RequestError(
                f'query "{query}" has no queue, so nothing in it grows stale',
                hint="Queries over update streams have one: declare UPDATE KEY (column) for the stream it reads.",
            )
        tables = [queue.staleness(now) for queue in own]
        if len(tables) == 1:
            return tables[0]
        numbered = [
            table.append_column("input", pa.array([number] * len(table), pa.int64()))
            for number, table in enumerate(tables)
        ]
        return pa.concat_tables(numbered, promote_options="default")

    def titles(self) -> dict[str, str]:
        """By the name of its node each queue as a person is told of it: by its query, and a number if it has several.

        >>> Queues().titles()
        {}
        """
        found: dict[str, str] = {}
        count: dict[str, int] = {}
        for node in self.nodes:
            query = _query_of(node)
            count[query] = count.get(query, 0) + 1
            found[node.name] = query if count[query] == 1 else f"{query}#{count[query]}"
        return found


def _below(node: Node) -> Iterator[Node]:
    """The operators that work on what a queue lets go."""
    for arc in node.outputs:
        consumer = arc.consumer
        if consumer.operator is not None and not consumer.operator.queues:
            yield consumer
            yield from _below(consumer)


def _above(node: Node) -> Iterator[Node]:
    """The operators whose rows enter a queue."""
    for arc in node.inputs:
        if arc.producer.operator is not None:
            yield arc.producer
            yield from _above(arc.producer)


def _query_of(node: Node) -> str:
    """The query that a queue belongs to: no two share one."""
    return min(_sinks_below(node), default=node.name)


def _sinks_below(node: Node) -> set[str]:
    if node.is_sink:
        return {node.name}
    return {sink for arc in node.outputs for sink in _sinks_below(arc.consumer)}
