"""The queues of a graph: which of them may release rows, and when those have been processed downstream.

Rules:
- A queue that has released rows is not ready again before no operator downstream of it, up to sinks and further
  queues, has input. Then it is told: that is the moment of delivery.
- A queue is shut, or open: for any number of rows, or for a limited number. With shut queues the graph comes to rest
  while they hold rows. A queue whose input has ended is never shut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.clock import Clock
from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Graph, GraphNode, sinks_below
from millrace.kernel.updates.queue import Queue

Allowance = int | None
"""How many rows a queue may release; None is any number."""


class QueueGate:
    """Opens and shuts the queues of a graph, and knows which of them have rows under way."""

    def __init__(self) -> None:
        self.nodes: dict[GraphNode, Queue] = {}
        self._below: dict[GraphNode, tuple[GraphNode, ...]] = {}
        self._above: tuple[GraphNode, ...] = ()
        self.under_way: dict[GraphNode, None] = {}
        """The queues whose released rows have not all been processed downstream."""
        self._default: Allowance = None
        """How many rows a queue may release that is added to the graph later."""

    def adopt(self, graph: Graph) -> None:
        """Take over the queues of a graph as it is now."""
        before, self.nodes = self.nodes, {}
        for node in graph.operators():
            if isinstance(node.operator, Queue):
                self.nodes[node] = node.operator
                if node not in before:
                    node.operator.allowance = self._default
        self._below = {node: tuple(dict.fromkeys(_below(node))) for node in self.nodes}
        self.under_way = {node: None for node in self.under_way if node in self.nodes}
        self._above = tuple(dict.fromkeys(each for node in self.nodes for each in _above(node)))
        after = {each for below in self._below.values() for each in below}
        for node in graph.nodes.values():
            node.after_queue = node in after

    def recount(self) -> None:
        """Find out again which queues can release rows, before the executor counts all that waits."""
        for node, queue in self.nodes.items():
            node.unfinished = self._ready(node, queue)

    def open(self, allowance: Allowance | Mapping[str, Allowance]) -> None:
        """Set how many rows each queue may release until the next call (None: any number).

        A mapping sets it for each queue by name; queues that it does not name are shut.
        """
        if isinstance(allowance, Mapping):
            self._default, own = 0, {node: allowance.get(node.name, 0) for node in self.nodes}
        else:
            self._default, own = allowance, dict.fromkeys(self.nodes, allowance)
        for node, queue in self.nodes.items():
            queue.allowance = own[node]
            self.keep_ready(node, queue)

    def shut(self) -> None:
        """Allow no queue any rows: the graph comes to rest while they hold rows."""
        self.open(0)

    def open_query(self, query: str) -> None:
        """Allow the queues of one query any number of rows, and shut all others."""
        self.open(dict.fromkeys((node.name for node in self._of(query)), None))

    def queues(self) -> dict[str, Queue]:
        """The queues by the names of their nodes."""
        return {node.name: queue for node, queue in self.nodes.items()}

    def keep_ready(self, node: GraphNode, queue: Queue) -> None:
        """Count what a queue can release as one element that waits for it, or no longer."""
        node.keep_ready(self._ready(node, queue))

    def _ready(self, node: GraphNode, queue: Queue) -> bool:
        return node not in self.under_way and queue.unfinished

    def released(self, node: GraphNode) -> None:
        """Note that a queue releases rows: it is not ready again before they have been processed downstream."""
        self.under_way[node] = None

    def notify_delivered(self, clock: Clock) -> None:
        """Tell the queues whose released rows have all been processed downstream."""
        for node in [node for node in self.under_way if not any(each.waiting for each in self._below[node])]:
            del self.under_way[node]
            queue = self.nodes[node]
            queue.on_time(clock.now())
            queue.on_rest()
            self.keep_ready(node, queue)

    @property
    def held_back(self) -> bool:
        """True if a queue has releasable rows but no allowance."""
        return any(queue.due and not queue.unfinished for queue in self.nodes.values())

    @property
    def entering(self) -> bool:
        """True if rows that have come have not reached their queue yet."""
        return any(node.waiting for node in self._above) or any(node.waiting > node.unfinished for node in self.nodes)

    def _of(self, query: str) -> list[GraphNode]:
        """The queues of a query."""
        return [node for node in self.nodes if _query_of(node) == query]

    def staleness(self, query: str, now: Microseconds) -> pa.Table:
        """How stale each key of a query is, see `Queue.staleness`; with a column `input` if it has several queues."""
        own = [self.nodes[node] for node in self._of(query)]
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
        """By the name of its node the title of each queue: its query, with a number from the second queue on.

        >>> QueueGate().titles()
        {}
        """
        found: dict[str, str] = {}
        count: dict[str, int] = {}
        for node in self.nodes:
            query = _query_of(node)
            count[query] = count.get(query, 0) + 1
            found[node.name] = query if count[query] == 1 else f"{query}#{count[query]}"
        return found


def _below(node: GraphNode) -> Iterator[GraphNode]:
    """The operators that process what a queue releases."""
    for arc in node.outputs:
        consumer = arc.consumer
        if consumer.operator is not None and not consumer.operator.queues:
            yield consumer
            yield from _below(consumer)


def _above(node: GraphNode) -> Iterator[GraphNode]:
    """The operators whose rows enter a queue."""
    for arc in node.inputs:
        if arc.producer.operator is not None:
            yield arc.producer
            yield from _above(arc.producer)


def _query_of(node: GraphNode) -> str:
    """The query that a queue belongs to: no two share one."""
    return min(sinks_below(node), default=node.name)
