"""The query graph: operators, and the arcs between them (001 section 2.2).

Rules:
- A source node is filled by the host, a sink node is emptied by it; neither has an operator.
- An arc is a buffer with one producer and one input of one consumer, and that input's register.
- A node that several others read has an arc to each; they hold the same immutable batches.
- A connected part of the graph is a component, the unit of scheduling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from millrace.kernel.elements import NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operators.operator import Operator
from millrace.kernel.progress import TimeContract


@dataclass(eq=False)
class Arc:
    """A buffer between two nodes, and the register (TSM) of the input it feeds."""

    producer: Node
    consumer: Node
    port: int
    register: Microseconds = NO_BOUND
    rows: int = 0
    peak: int = 0
    _elements: deque[Element] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._elements)

    def put(self, element: Element) -> None:
        """Add an element at the end; a punctuation takes the place of one it follows directly."""
        if isinstance(element, Batch):
            self.rows += len(element)
            self.peak = max(self.peak, self.rows)
        elif self._elements and isinstance(self._elements[-1], Punctuation):
            self._elements.pop()
        self._elements.append(element)

    def take(self, limit: int | None = None) -> Element:
        """The element at the front; of a batch at most `limit` rows."""
        element = self._elements.popleft()
        if isinstance(element, Batch):
            if limit is not None and len(element) > limit:
                self._elements.appendleft(element.slice(limit, len(element) - limit))
                element = element.slice(0, limit)
            self.rows -= len(element)
        return element


@dataclass(eq=False)
class Node:
    """A place in the graph; `operator` is None for a source or a sink."""

    name: str
    operator: Operator | None = None
    contract: TimeContract | None = None
    strategy: str = "dfs"
    inputs: list[Arc] = field(default_factory=list)
    outputs: list[Arc] = field(default_factory=list)
    bound: Microseconds = NO_BOUND
    """The least of its inputs' registers, as its operator has been told."""
    promised: Microseconds = NO_BOUND
    """The last bound it sent."""

    @property
    def is_source(self) -> bool:
        return not self.inputs and self.operator is None

    @property
    def is_sink(self) -> bool:
        return bool(self.inputs) and self.operator is None

    @property
    def more(self) -> bool:
        """Whether an element is waiting at an input."""
        return any(self.inputs)

    @property
    def yields(self) -> bool:
        """Whether an element is waiting in an output buffer that another operator reads."""
        return any(arc and not arc.consumer.is_sink for arc in self.outputs)

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Graph:
    """Nodes by name, in an order in which every node follows the nodes it reads."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def source(self, name: str, contract: TimeContract) -> Node:
        """Add a source of a stream with a time contract."""
        return self._add(Node(name, contract=contract), ())

    def operator(self, name: str, operator: Operator, inputs: Sequence[Node], strategy: str = "dfs") -> Node:
        """Add an operator that reads `inputs`, port by port, and is scheduled by `strategy`."""
        return self._add(Node(name, operator, strategy=strategy), inputs)

    def sink(self, name: str, input: Node) -> Node:
        """Add a sink that takes what `input` yields."""
        return self._add(Node(name), (input,))

    def _add(self, node: Node, inputs: Sequence[Node]) -> Node:
        assert node.name not in self.nodes, node.name
        for port, producer in enumerate(inputs):
            arc = Arc(producer, node, port)
            node.inputs.append(arc)
            producer.outputs.append(arc)
        self.nodes[node.name] = node
        return node

    def sources(self) -> list[Node]:
        """The nodes a host fills."""
        return [node for node in self.nodes.values() if node.is_source]

    def sinks(self) -> list[Node]:
        """The nodes a host empties."""
        return [node for node in self.nodes.values() if node.is_sink]

    def operators(self) -> list[Node]:
        """The nodes that work, upstream first."""
        return [node for node in self.nodes.values() if node.operator is not None]

    def components(self) -> list[list[Node]]:
        """The connected parts, each a list of nodes in graph order."""
        color: dict[str, int] = {}
        for node in self.nodes.values():
            joined = {color[arc.producer.name] for arc in node.inputs}
            color[node.name] = min(joined, default=len(color))
            for name, part in color.items():
                if part in joined:
                    color[name] = color[node.name]
        parts: dict[int, list[Node]] = {}
        for node in self.nodes.values():
            parts.setdefault(color[node.name], []).append(node)
        return list(parts.values())


def sources_behind(node: Node, until: Microseconds) -> Iterator[tuple[Node, Microseconds]]:
    """The sources whose bounds a node waits for, each with the bound it must reach for the node to see `until`."""
    for arc in node.inputs:
        if arc.register >= until:
            continue
        producer = arc.producer
        if producer.operator is None:
            yield producer, until
        else:
            yield from sources_behind(producer, producer.operator.required(until))
