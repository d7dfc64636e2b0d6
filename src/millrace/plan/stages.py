"""From a network to query graphs: whole for one process, or cut into a low and a high level at its exchanges.

Rules:
- The low level of a stream is the stateless prefix above its scan; everything above is the high level.
- Between them stands an exchange, a virtual break node: rows go to the bucket of their keys, bounds to every bucket.
- A query ordered by time meets in one bucket; one without keyed operators may be spread at will.
- A node's name is made from what it computes: equal parts of several queries are one node, and saved state finds its
  operator again whatever other queries come and go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from millrace.errors import RequestError
from millrace.kernel import operators as kernel
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.expressions import Column
from millrace.kernel.frames import Calendar, Frames, Instants
from millrace.kernel.graph import Graph
from millrace.kernel.graph import Node as GraphNode
from millrace.kernel.partials import Aggregation, Partials
from millrace.plan.nodes import (
    Aggregate,
    AnyWindow,
    CalendarWindow,
    Distinct,
    Filter,
    InstantWindow,
    Network,
    Node,
    Numbered,
    OrderByTime,
    Project,
    Query,
    Rank,
    Scan,
    Since,
    Stream,
    Union,
    Window,
    inputs_of,
    walk,
    with_inputs,
)
from millrace.plan.parts import breaks_after, check_parts, strategy_of
from millrace.plan.rules import optimize
from millrace.plan.rules.prune_columns import reads


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
        uses = (_uses(root, list(root.schema.names), stream) for _, root in self.roots)
        read: set[str | None] = {name for names in uses for name in names}
        declared = next(each for each in self.network.streams() if each.name == stream)
        read |= {*declared.time.columns(), declared.replay.column if declared.replay else None}
        return [name for name in declared.schema.names if name in read]

    def whole(self) -> Graph:
        """One graph for all queries: what they have in common is there once, and the exchanges disappear."""
        graph = Graph()
        self.shape(graph)
        return graph

    def shape(self, graph: Graph) -> dict[str, list[str]]:
        """Make a graph of this process what the plan says: nodes come and go, those that stay keep their state.

        The names of each query's operators.
        """

        def leaf(scan: Node, path: str) -> GraphNode | None:
            return _source(graph, scan.stream.name, scan.stream) if isinstance(scan, Scan) else None

        built = self._build(graph, leaf)
        for query, _ in self.roots:
            check_parts(query.name, built[query.name], query.options)
        used = {name for names in built.values() for name in names}
        graph.keep({*used, *built, *(stream.name for stream in self.network.streams())})
        return built

    def _build(self, graph: Graph, leaf: Leaf) -> dict[str, list[str]]:
        """Add what a graph lacks of all queries; the names of each query's operators.

        Of several queries that use an operator the first says how it is scheduled.
        """
        built: dict[str, list[str]] = {}
        for query, root in self.roots:
            builder = _Builder(graph, query, leaf, {name for names in built.values() for name in names})
            end = builder.build(root, query.name)
            if query.name not in graph.nodes:
                graph.sink(query.name, end)
            graph.nodes[query.name].share = float(query.options.get("share", 1))
            built[query.name] = builder.names
        return built

    def cuts(self) -> dict[str, Exchange]:
        """Where each query is cut, by place in its tree; several places may share an exchange."""
        return {path: cut for query, root in self.roots for path, cut in _cuts(root, query.name, query)}

    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges of the network, each once, in a fixed order."""
        return tuple({cut.port: cut for cut in self.cuts().values()}.values())

    def low(self, stream: str) -> Graph:
        """The low level of one stream: its prefixes, each ending in a sink named after its exchange."""
        graph = Graph()
        own = [each for each in self.exchanges() if each.stream.name == stream]
        source = graph.source(stream, own[0].stream.time)
        builder = _Builder(graph, None, lambda node, path: source if isinstance(node, Scan) else None, set())
        for exchange in own:
            end = builder.build(exchange.prefix, exchange.port)
            if exchange.aggregate is not None:
                lower = kernel.PreAggregate(_partials(exchange.aggregate))
                end = graph.operator(f"pre_{exchange.port}", lower, [end])
            graph.sink(exchange.port, end)
        return graph

    def high(self) -> Graph:
        """Everything above the exchanges; a source a port."""
        graph, cuts = Graph(), self.cuts()

        def leaf(node: Node, path: str) -> GraphNode | None:
            return _source(graph, cuts[path].port, cuts[path].stream) if path in cuts else None

        self._build(graph, leaf)
        return graph


def physical(network: Network) -> Physical:
    """The network after all rules."""
    streams = {stream.name for stream in network.streams()}
    for query in network.queries:
        if query.name in streams:
            raise RequestError(f'"{query.name}" is both a stream and a query', hint="Give the query a name of its own.")
    return Physical(network, tuple((query, _since(optimize(query.root), query.since)) for query in network.queries))


def starting_at(query: Query, time: int) -> Query:
    """The query over the rows from a time on."""
    return replace(query, since=time)


def _since(node: Node, time: int) -> Node:
    """A tree over the rows from a time on; what comes before any state is left as it is, to be shared."""
    if time == NO_BOUND:
        return node
    return Since(node, time) if _is_prefix(node) else with_inputs(node, lambda each: _since(each, time))


Leaf = Callable[[Node, str], GraphNode | None]
"""Says where a tree ends and a source stands, given a node and its place."""


class _Builder:
    """Adds the operators of one query to a graph, where they are not there yet; `known` ones keep their set-up."""

    def __init__(self, graph: Graph, query: Query | None, leaf: Leaf, known: Container[str]) -> None:
        self.graph = graph
        self.leaf = leaf
        self.known = known
        self.options = query.options if query is not None else {}
        self.in_order = self.options.get("order") == "in"
        self.names: list[str] = []

    def build(self, node: Node, path: str) -> GraphNode:
        found = self.leaf(node, path)
        if found is not None:
            return found
        operator, inputs = self._operator(node)
        built = [self.build(each, f"{path}.{position}") for position, each in enumerate(inputs)]
        name = _content_name(operator.label, node, built, self.in_order)
        place = self.graph.nodes.get(name) or self.graph.operator(name, operator, built)
        if name not in self.known and name not in self.names:
            self._set_up(place)
        if name not in self.names:
            self.names.append(name)
        return place

    def _set_up(self, node: GraphNode) -> None:
        node.strategy = strategy_of(node.name, self.options)
        node.breaks_after = breaks_after(node.name, self.options)
        node.ets_arcs = self.options.get("ets_arcs") != "off"
        node.chain = self.options.get("breaks") == "chain"

    def _operator(self, node: Node) -> tuple[kernel.Operator, tuple[Node, ...]]:
        match node:
            case Filter():
                return kernel.Filter(node.predicate), (node.input,)
            case Project():
                return kernel.Project(node.columns), (node.input,)
            case Union():
                return (kernel.Merge() if self.in_order else kernel.Union()), node.inputs
            case OrderByTime():
                return (kernel.Union() if _is_latent(node) else kernel.Merge()), _merged(node)
            case Aggregate():
                return kernel.WindowAggregate(_partials(node), in_order=self.in_order), (node.input,)
            case Since():
                return kernel.Since(node.time), (node.input,)
            case Numbered() | Distinct() | Rank():
                raise NotImplementedError
            case Scan():
                raise AssertionError("a scan is a leaf")


def _content_name(label: str, node: Node, inputs: Sequence[GraphNode], in_order: bool) -> str:
    """A name that depends on what an operator computes, and on nothing else."""
    content = repr((node, [each.name for each in inputs], in_order and not _is_prefix(node)))
    return f"{label.replace(' ', '_')}#{_digest(content)}"


def _digest(content: str) -> str:
    """Enough of a hash to tell the nodes of any network apart."""
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _source(graph: Graph, name: str, stream: Stream) -> GraphNode:
    return graph.nodes.get(name) or graph.source(name, stream.time)


def _is_latent(node: Node) -> bool:
    """Whether nothing below has a time to be ordered by: then rows come as they come."""
    below = list(walk(node))
    scans = [each for each in below if isinstance(each, Scan)]
    return not any(isinstance(each, Aggregate) for each in below) and all(
        scan.stream.time.kind == "latent" for scan in scans
    )


def _merged(node: OrderByTime) -> tuple[Node, ...]:
    """An ordered union is one operator, not a union and a sort."""
    return node.input.inputs if isinstance(node.input, Union) else (node.input,)


def _partials(node: Aggregate) -> Partials:
    aggregations = [
        Aggregation(
            each.name,
            each.function,
            tuple(map(_name, each.arguments)),
            None if each.where is None else _name(each.where),
            each.parameters,
        )
        for each in node.aggregations
    ]
    return Partials(_frames(node.window), [name for name, _ in node.keys], aggregations)


def _frames(window: AnyWindow) -> Frames:
    match window:
        case CalendarWindow():
            return Calendar({"month": 1, "quarter": 3, "year": 12}[window.every])
        case InstantWindow():
            return Instants()
        case _:
            assert isinstance(window, Window)
            return Frames(window.range, window.slide, window.origin)


def _name(expression: object) -> str:
    assert isinstance(expression, Column), "keys and arguments have been prepared"
    return expression.name


def _is_prefix(node: Node) -> bool:
    """Whether a tree is a scan under filters and projections alone."""
    return all(isinstance(each, Scan | Filter | Project | Since) for each in walk(node))


def _stream_of(prefix: Node) -> Stream:
    scan = next(iter(walk(prefix)))
    assert isinstance(scan, Scan)
    return scan.stream


def _cuts(
    node: Node,
    path: str,
    query: Query,
    keys: tuple[str, ...] | None = None,
    aggregate: Aggregate | None = None,
) -> Iterator[tuple[str, Exchange]]:
    """The exchanges below a node, by their place in the tree."""
    if _is_prefix(node):
        content = repr((node, keys, aggregate and (aggregate.window, aggregate.keys, aggregate.aggregations)))
        port = f"exchange#{_digest(content)}"
        yield path, Exchange(port, _stream_of(node), node, keys, aggregate)
        return
    in_order = query.options.get("order") == "in" and isinstance(node, Union)
    if isinstance(node, OrderByTime):
        keys, aggregate = keys if keys is not None else (), None
    elif isinstance(node, Aggregate):
        keys = keys if keys is not None else tuple(key for key, _ in node.keys)
        aggregate = node
    elif in_order or not isinstance(node, Union):
        aggregate = None
    inputs = _merged(node) if isinstance(node, OrderByTime) else inputs_of(node)
    for position, each in enumerate(inputs):
        yield from _cuts(each, f"{path}.{position}", query, keys, aggregate)


def _uses(node: Node, wanted: list[str], stream: str) -> Iterator[str]:
    """The columns of a stream that a tree reads to give the wanted ones."""
    match node:
        case Scan():
            yield from wanted if node.stream.name == stream else ()
        case Filter():
            yield from _uses(node.input, reads([node.predicate], wanted), stream)
        case Project():
            yield from _uses(node.input, reads(each for _, each in node.columns), stream)
        case Aggregate():
            yield from _uses(node.input, reads(node.expressions()), stream)
        case _:
            for each in inputs_of(node):
                yield from _uses(each, wanted, stream)
