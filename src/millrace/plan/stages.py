"""From a network to query graphs: whole for one process, or cut into a low and a high level at its exchanges.

Rules:
- The low level of a stream is the stateless prefix above its scan; everything above is the high level.
- Between them stands an exchange, a virtual break node: rows go to the bucket of their keys, bounds to every bucket.
- A query ordered by time meets in one bucket; one without keyed operators may be spread at will.
- Node names depend on the query text alone, so that saved state finds its operator again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.errors import RequestError
from millrace.kernel import operators as kernel
from millrace.kernel.expressions import Column
from millrace.kernel.graph import Graph
from millrace.kernel.graph import Node as GraphNode
from millrace.kernel.partials import Aggregation, Partials
from millrace.plan.nodes import (
    Aggregate,
    Filter,
    Network,
    Node,
    OrderByTime,
    Project,
    Query,
    Scan,
    Stream,
    Union,
    inputs_of,
    walk,
)
from millrace.plan.rules import optimize


@dataclass(frozen=True)
class Exchange:
    """Where the prefix of a stream meets the rest of a query.

    `keys` are the columns whose equal values must meet; () sends all to one bucket, None leaves the choice open.
    """

    port: str
    stream: Stream
    prefix: Node
    keys: tuple[str, ...] | None
    aggregate: Aggregate | None = None
    """The aggregate above, if nothing but an order-agnostic union stands between: then partials are exchanged."""


@dataclass(frozen=True)
class Physical:
    """A network after all rules, ready to be built as graphs."""

    network: Network
    roots: tuple[tuple[Query, Node], ...]

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that some query or its time contract reads, in declared order."""
        scans = [scan for _, root in self.roots for scan in _uses(root, stream)]
        read: set[str | None] = {name for columns in scans for name in columns}
        declared = next(each for each in self.network.streams() if each.name == stream)
        read |= {declared.time.column, declared.replay.column if declared.replay else None}
        return [name for name in declared.schema.names if name in read]

    def whole(self) -> Graph:
        """One graph for all queries; streams are shared, and the exchanges disappear."""
        graph = Graph()
        sources: dict[str, GraphNode] = {}

        def leaf(scan: Node, name: str) -> GraphNode | None:
            if not isinstance(scan, Scan):
                return None
            stream = scan.stream
            if stream.name not in sources:
                sources[stream.name] = graph.source(stream.name, stream.time)
            return sources[stream.name]

        for query, root in self.roots:
            graph.sink(query.name, _Builder(graph, query, leaf).build(root, query.name))
        return graph

    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges of the network, in a fixed order."""
        return tuple(each for query, root in self.roots for each in _cuts(root, query.name, query))

    def low(self, stream: str) -> Graph:
        """The low level of one stream: its prefixes, each ending in a sink named after its exchange."""
        graph = Graph()
        own = [each for each in self.exchanges() if each.stream.name == stream]
        source = graph.source(stream, own[0].stream.time)
        builder = _Builder(graph, None, lambda node, name: source if isinstance(node, Scan) else None)
        for exchange in own:
            end = builder.build(exchange.prefix, f"{exchange.port}.low")
            if exchange.aggregate is not None:
                lower = kernel.PreAggregate(_partials(exchange.aggregate))
                end = graph.operator(f"{exchange.port}.pre_aggregate", lower, [end])
            graph.sink(exchange.port, end)
        return graph

    def high(self) -> Graph:
        """Everything above the exchanges; a source a port."""
        graph = Graph()
        for query, root in self.roots:

            def leaf(node: Node, name: str) -> GraphNode | None:
                return graph.source(_port(name), _stream_of(node).time) if _is_prefix(node) else None

            graph.sink(query.name, _Builder(graph, query, leaf).build(root, query.name))
        return graph


def physical(network: Network) -> Physical:
    """The network after all rules."""
    streams = {stream.name for stream in network.streams()}
    for query in network.queries:
        if query.name in streams:
            raise RequestError(f'"{query.name}" is both a stream and a query', hint="Give the query a name of its own.")
    return Physical(network, tuple((query, optimize(query.root)) for query in network.queries))


class _Builder:
    """Adds the operators of one query to a graph; `leaf` says where a tree ends and a source stands."""

    def __init__(self, graph: Graph, query: Query | None, leaf: Callable[[Node, str], GraphNode | None]) -> None:
        self.graph = graph
        self.leaf = leaf
        options = query.options if query is not None else {}
        self.in_order = options.get("order") == "in"
        self.strategy = options.get("strategy", "dfs")

    def build(self, node: Node, name: str) -> GraphNode:
        found = self.leaf(node, name)
        if found is not None:
            return found
        operator, inputs = self._operator(node)
        built = [self.build(each, f"{name}.{position}") for position, each in enumerate(inputs)]
        return self.graph.operator(f"{name}.{operator.label.replace(' ', '_')}", operator, built, self.strategy)

    def _operator(self, node: Node) -> tuple[kernel.Operator, tuple[Node, ...]]:
        match node:
            case Filter():
                return kernel.Filter(node.predicate), (node.input,)
            case Project():
                return kernel.Project(node.columns), (node.input,)
            case Union():
                return (kernel.Merge() if self.in_order else kernel.Union()), node.inputs
            case OrderByTime():
                return kernel.Merge(), _merged(node)
            case Aggregate():
                return kernel.WindowAggregate(_partials(node)), (node.input,)
            case Scan():
                raise AssertionError("a scan is a leaf")


def _merged(node: OrderByTime) -> tuple[Node, ...]:
    """An ordered union is one operator, not a union and a sort."""
    return node.input.inputs if isinstance(node.input, Union) else (node.input,)


def _partials(node: Aggregate) -> Partials:
    aggregations = [
        Aggregation(each.name, each.function, None if each.argument is None else _name(each.argument))
        for each in node.aggregations
    ]
    return Partials(node.window.range, node.window.slide, [name for name, _ in node.keys], aggregations)


def _name(expression: object) -> str:
    assert isinstance(expression, Column), "keys and arguments have been prepared"
    return expression.name


def _port(name: str) -> str:
    return f"{name}.exchange"


def _is_prefix(node: Node) -> bool:
    """Whether a tree is a scan under filters and projections alone."""
    return all(isinstance(each, Scan | Filter | Project) for each in walk(node))


def _stream_of(prefix: Node) -> Stream:
    scan = next(iter(walk(prefix)))
    assert isinstance(scan, Scan)
    return scan.stream


def _cuts(
    node: Node,
    name: str,
    query: Query,
    keys: tuple[str, ...] | None = None,
    aggregate: Aggregate | None = None,
) -> list[Exchange]:
    """The exchanges below a node, named by their place in the tree."""
    if _is_prefix(node):
        return [Exchange(_port(name), _stream_of(node), node, keys, aggregate)]
    in_order = query.options.get("order") == "in" and isinstance(node, Union)
    if isinstance(node, OrderByTime):
        keys, aggregate = keys if keys is not None else (), None
    elif isinstance(node, Aggregate):
        keys = keys if keys is not None else tuple(key for key, _ in node.keys)
        aggregate = node
    elif in_order or not isinstance(node, Union):
        aggregate = None
    inputs = _merged(node) if isinstance(node, OrderByTime) else inputs_of(node)
    return [
        cut for position, each in enumerate(inputs) for cut in _cuts(each, f"{name}.{position}", query, keys, aggregate)
    ]


def _uses(root: Node, stream: str) -> list[set[str]]:
    """For each scan of a stream in a tree the columns read of it."""
    if isinstance(root, Scan):
        return [set(root.schema.names)] if root.stream.name == stream else []
    uses = []
    for child in inputs_of(root):
        if isinstance(child, Scan) and isinstance(root, Project):
            read = {name for _, each in root.columns for name in each.columns()}
            uses += [read] if child.stream.name == stream else []
        else:
            uses += _uses(child, stream)
    return uses
