"""The query graph: operators, and the arcs between them (001 section 2.2).

Rules:
- A source node is filled by the host, a sink node is emptied by it; neither has an operator.
- What a node yields is stored once, in its buffer. Every consumer has an arc to it: a head pointer and a register. An
  element leaves the buffer when every consumer has taken it (the fork of 001 Fig. 7).
- A register (TSM) holds the bound of one input. An enabling timestamp may be written straight into the register of an
  empty input: the register is then active until the consumer has seen it.
- A broken arc (a virtual break node) is the end of one fragment and the source of another.
- A connected part of the graph is a component, the unit that has a share of the processor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from millrace.kernel.elements import NO_BOUND, Batch, Cause, Element, Microseconds, Punctuation
from millrace.kernel.metrics import NodeMetrics
from millrace.kernel.operator import Operator
from millrace.kernel.progress.open_windows import OpenWindows, open_windows
from millrace.kernel.progress.released import Released
from millrace.kernel.progress.time_contract import TimeContract

Rule = Callable[["GraphNode", int], "GraphNode | None"]
"""Which operator is next, given one and how many rows it has taken since it was entered."""


class Buffer:
    """What a node has yielded and some consumer has not yet taken."""

    __slots__ = ("arcs", "elements", "first", "size", "traced")

    def __init__(self) -> None:
        self.arcs: list[Arc] = []
        self.elements: deque[Element] = deque()
        self.first = 0
        """The number of the element at the front."""
        self.size = 0
        """Rows and punctuations in it."""
        self.traced: deque[Cause | None] | None = None
        """For each element what let it leave; None where no query asks for that."""

    def trace(self, on: bool) -> None:
        """Remember from now on what lets elements leave, or no longer."""
        if on != (self.traced is not None):
            self.traced = deque([None] * len(self.elements)) if on else None

    @property
    def following(self) -> int:
        """The number that the next element will have."""
        return self.first + len(self.elements)

    def put(self, element: Element, *, merge: bool, release: Cause | None = None) -> None:
        """Add an element; with `merge` a punctuation takes the place of one that no consumer has taken yet."""
        if isinstance(element, Batch):
            self.size += element.stop - element.start
        elif merge and isinstance(element, Punctuation) and self._replaced(element):
            if self.traced is not None:
                self.traced[-1] = release
            return
        else:
            self.size += 1
        self.elements.append(element)
        if self.traced is not None:
            self.traced.append(release)
        for arc in self.arcs:
            arc.came()

    def _replaced(self, punctuation: Punctuation) -> bool:
        if not self.elements or not isinstance(self.elements[-1], Punctuation):
            return False
        if any(arc.head == self.following for arc in self.arcs):
            return False
        self.elements[-1] = punctuation
        return True

    def release(self) -> None:
        """Remove what every consumer has taken."""
        arcs = self.arcs
        least = arcs[0].head if len(arcs) == 1 else min((arc.head for arc in arcs), default=self.following)
        while self.first < least:
            element = self.elements.popleft()
            if self.traced is not None:
                self.traced.popleft()
            self.size -= element.stop - element.start if isinstance(element, Batch) else 1
            self.first += 1


@dataclass(eq=False, slots=True)
class Arc:
    """One consumer's view of a buffer, and the register (TSM) of the input it feeds."""

    producer: GraphNode
    consumer: GraphNode
    port: int
    head: int = 0
    """The number of the next element to take."""
    skipped: int = 0
    """How many rows of it have been taken already."""
    register: Microseconds = NO_BOUND
    active: bool = False
    """True if the register was written by an ETS that the consumer has not seen."""
    told: Microseconds = NO_BOUND
    """The last bound of it that an operator by input has been told."""
    broken: bool = False
    pending: int = 0
    """How many elements wait here, an active register among them."""
    release: Cause | None = None
    """What wrote the register last, if it is active and traced."""

    def __bool__(self) -> bool:
        return self.pending > 0

    @property
    def rows(self) -> int:
        """How many rows wait here."""
        if not self.pending:
            return 0
        waiting = list(self.producer.buffer.elements)[self.head - self.producer.buffer.first :]
        return sum(len(each) for each in waiting if isinstance(each, Batch)) - self.skipped

    def next_release(self) -> Cause | None:
        """What let the next element leave, where that is traced."""
        if self.active:
            return self.release
        buffer = self.producer.buffer
        return None if buffer.traced is None else buffer.traced[self.head - buffer.first]

    def enable(self, until: Microseconds) -> None:
        """Write an ETS into the register of an empty input."""
        assert not self.pending, "an ETS does not overtake what is in a buffer"
        self.register = max(self.register, until)
        self.active = True
        self.came()

    def take(self, limit: int | None = None) -> Element:
        """The next element; of a batch at most `limit` rows. An active register comes first."""
        if self.active:
            self.active = False
            self.went()
            return Punctuation(self.register, ets=True)
        buffer = self.producer.buffer
        element = buffer.elements[self.head - buffer.first]
        if isinstance(element, Batch):
            start, stop = element.start + self.skipped, element.stop
            if limit is not None and stop - start > limit:
                self.skipped += limit
                return Batch.cut(element.block, start, start + limit)
            if self.skipped:
                element = Batch.cut(element.block, start, stop, element.until)
                self.skipped = 0
        self.head += 1
        self.went()
        buffer.release()
        return element

    def came(self) -> None:
        """Count one more element at both ends."""
        self.pending += 1
        consumer = self.consumer
        consumer.waiting += 1
        if consumer.is_sink:
            return
        if consumer.waiting == 1 and consumer.ready is not None:
            consumer.ready(consumer)
        if not self.broken:
            self.producer.yielding += 1

    def went(self) -> None:
        """Count one element less at both ends."""
        self.pending -= 1
        consumer = self.consumer
        consumer.waiting -= 1
        if consumer.is_sink:
            return
        if not consumer.waiting and consumer.done is not None:
            consumer.done(consumer)
        if not self.broken:
            self.producer.yielding -= 1

    def recount(self) -> None:
        """Count all elements again, after the counts at both ends were set to zero."""
        for _ in range(self.producer.buffer.following - self.head + self.active):
            self.came()


@dataclass(eq=False)
class GraphNode:
    """A place in the graph; `operator` is None for a source or a sink."""

    name: str
    operator: Operator | None = None
    contract: TimeContract | None = None
    stream: str = ""
    """A source's: the stream whose rows it gives; itself unless it is an outlet of another."""
    stream_contract: TimeContract | None = None
    outlet: str = ""
    """A source's: which progressing attribute its rows come by."""
    takes_bounds: bool = False
    """A sink's: True if the host that empties it uses bounds."""
    demand: Microseconds | None = None
    """A sink's: the bound that the host that empties it waits for."""
    joint: tuple[Microseconds, Microseconds] | None = None
    """A sink's: the last promise about pairs of times."""
    strategy: str = "dfs"
    share: float = 1.0
    """A sink's: what its query's component gets of the processor, beside others."""
    ets_arcs: bool = True
    breaks_after: bool = False
    """True if its consumers are to be separate fragments."""
    chain: bool = False
    """True if break nodes may be set around it by the memory that operators free."""
    inputs: list[Arc] = field(default_factory=list)
    outputs: list[Arc] = field(default_factory=list)
    buffer: Buffer = field(default_factory=Buffer)
    bound: Microseconds = NO_BOUND
    """The least of its inputs' registers, as its operator has been told."""
    promised: Microseconds = NO_BOUND
    """The last bound it sent."""
    waiting: int = 0
    """How many elements wait at its inputs."""
    yielding: int = 0
    """How many elements wait in its buffer for operators of its own fragment, summed over them."""
    unfinished: bool = False
    """True if its operator has postponed work, which counts as waiting."""
    after_queue: bool = False
    """True if it processes what a queue has released."""
    turn: int = 0
    """The branch that a fork serves next."""
    rule: Rule | None = None
    """The rule of its strategy."""
    most: int | None = None
    """How many rows it takes in a step at most, by its strategy (see step_size.py)."""
    timed: bool = False
    """True if it takes as many rows in a step as a moment allows."""
    row_cost: float = 0.0
    """Microseconds that it took per row of late, if it calls functions of a user."""
    tells_releases: bool = False
    """A sink's: True if the host that empties it asks what let its rows leave."""
    traced: bool = False
    """True if some operator downstream, or it, tells what let rows leave."""
    release: Cause | None = None
    """What let its last element leave, if it is traced."""
    malformed: int = 0
    """How many texts of JSON its operator could not read, in earlier runs too."""
    metrics: NodeMetrics = field(default_factory=NodeMetrics)
    ets_paths: list[list[Arc]] = field(default_factory=list)
    """The ETS arcs out of it, see `ets_arcs`."""
    users: list[Operator] | None = None
    """The operators downstream that can use only some bounds; None when one can use every advance."""
    tsm_successor: GraphNode | None = None
    """Where its last ETS went by an ETS arc."""
    ready: Callable[[GraphNode], None] | None = None
    """Called when its first input element has come."""
    done: Callable[[GraphNode], None] | None = None
    """Called when its last input element has gone."""
    is_source: bool = field(init=False)
    is_sink: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_source = self.operator is None and self.contract is not None
        self.is_sink = self.operator is None and self.contract is None

    @cached_property
    def windows(self) -> OpenWindows | None:
        """A source's, if its stream is LATE BY WINDOW: which rows below the stream's bound it takes."""
        return open_windows(self.outlet)

    def reached(self, until: Microseconds) -> Microseconds:
        """The bound of a source while that of its edge is `until`."""
        return until if self.windows is None else self.windows.reached(until)

    @property
    def senses_bounds(self) -> bool:
        """True if an ETS must reach it: it does more with bounds than pass them on."""
        return self.takes_bounds or (self.operator is not None and self.operator.senses_bounds)

    def keep_ready(self, more: bool) -> None:
        """Count the work that its operator has postponed as one element that waits; with False, no longer."""
        if more == self.unfinished:
            return
        self.unfinished = more
        self.waiting += 1 if more else -1
        if more and self.waiting == 1 and self.ready is not None:
            self.ready(self)
        if not self.waiting and self.done is not None:
            self.done(self)

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Graph:
    """Nodes by name, in an order in which every node follows the nodes it reads."""

    def __init__(self) -> None:
        self.nodes: dict[str, GraphNode] = {}

    def source(self, name: str, contract: TimeContract, outlet: str = "") -> GraphNode:
        """Add a source with a time contract; `outlet` says which attribute of a stream its rows come by."""
        return self._add(GraphNode(name, contract=contract, stream=name, stream_contract=contract, outlet=outlet), ())

    def outlet(self, name: str, stream: str, contract: TimeContract, outlet: str) -> GraphNode:
        """Add a source that is filled with the rows of a stream of this contract, by another attribute."""
        own = contract.outlet(outlet)
        return self._add(GraphNode(name, contract=own, stream=stream, stream_contract=contract, outlet=outlet), ())

    def operator(self, name: str, operator: Operator, inputs: Sequence[GraphNode], strategy: str = "dfs") -> GraphNode:
        """Add an operator that reads `inputs`, port by port, and is scheduled by `strategy`."""
        return self._add(GraphNode(name, operator, strategy=strategy), inputs)

    def sink(self, name: str, input: GraphNode, share: float = 1.0, *, takes_bounds: bool = False) -> GraphNode:
        """Add a sink that takes what `input` yields."""
        return self._add(GraphNode(name, share=share, takes_bounds=takes_bounds), (input,))

    def _add(self, node: GraphNode, inputs: Sequence[GraphNode]) -> GraphNode:
        assert node.name not in self.nodes, node.name
        for port, producer in enumerate(inputs):
            arc = Arc(producer, node, port, head=producer.buffer.following)
            if producer.promised > NO_BOUND:
                # A consumer that comes later learns at once what has been promised before.
                arc.enable(producer.promised)
            node.inputs.append(arc)
            producer.outputs.append(arc)
            producer.buffer.arcs.append(arc)
        self.nodes[node.name] = node
        return node

    def keep(self, names: Iterable[str]) -> None:
        """Remove all nodes but these, and what only the others had still to take."""
        kept = set(names)
        for node in [node for node in self.nodes.values() if node.name not in kept]:
            for arc in node.inputs:
                arc.producer.outputs.remove(arc)
                arc.producer.buffer.arcs.remove(arc)
                arc.producer.buffer.release()
            del self.nodes[node.name]

    def trace(self) -> bool:
        """Trace what releases rows, upstream of all operators that report it; True if some operator does."""
        for node in reversed(self.nodes.values()):
            below = any(arc.consumer.traced for arc in node.outputs)
            node.traced = below or node.tells_releases or isinstance(node.operator, Released)
            node.buffer.trace(below)
        return any(node.traced for node in self.nodes.values())

    def sources(self) -> list[GraphNode]:
        """The nodes a host fills."""
        return [node for node in self.nodes.values() if node.is_source]

    def sinks(self) -> list[GraphNode]:
        """The nodes a host empties."""
        return [node for node in self.nodes.values() if node.is_sink]

    def operators(self) -> list[GraphNode]:
        """The nodes that work, upstream first."""
        return [node for node in self.nodes.values() if node.operator is not None]

    def components(self, *, cut: bool = False) -> list[list[GraphNode]]:
        """The connected parts, each a list of nodes in graph order; with `cut`, arcs that are broken do not connect."""
        color: dict[str, int] = {}
        for node in self.nodes.values():
            joined = {color[arc.producer.name] for arc in node.inputs if not (cut and arc.broken)}
            color[node.name] = min(joined, default=len(color))
            for name, part in color.items():
                if part in joined:
                    color[name] = color[node.name]
        parts: dict[int, list[GraphNode]] = {}
        for node in self.nodes.values():
            parts.setdefault(color[node.name], []).append(node)
        return list(parts.values())


def sinks_below(node: GraphNode) -> set[str]:
    """The names of the sinks that a node leads to."""
    if node.is_sink:
        return {node.name}
    return {sink for arc in node.outputs for sink in sinks_below(arc.consumer)}
