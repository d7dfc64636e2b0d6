"""From a network to query graphs: whole for one process, or cut into a low level a stream and high levels.

Rules:
- Where a plan is cut is said in levels.py; in one process the cuts disappear.
- A node's name is made from what it computes: equal parts of several queries are one node, and saved state finds its
  operator again whatever other queries come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel import operators as kernel
from millrace.kernel.aggregates.low_aggregate import FlushPolicy
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.graph import Node as GraphNode
from millrace.kernel.progress.time_contract import SEQUENCE, TimeContract
from millrace.kernel.updates.queue import Queue
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.content_names import content_name, meaning, stream_columns
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Network, Query
from millrace.plan.nodes.relational_nodes import OrderByTime, Scan, Since, Slack, scan_of
from millrace.plan.nodes.update_nodes import AnyQueue
from millrace.plan.physical.group_promises import described
from millrace.plan.physical.levels import Crossing, Cut, Cuts, Exchange, read_by
from millrace.plan.physical.named_parts import breaks_after, check_parts, strategy_of
from millrace.plan.physical.operators import Method, content_of, is_in_order, method_of, operator_of, partials_of
from millrace.plan.physical.pane_choice import takes_partials
from millrace.plan.physical.user_code import load_functions
from millrace.plan.rules import optimize
from millrace.plan.updates.queue_options import access_at, settings_of
from millrace.plan.updates.queue_placement import with_queues

_FLUSH = "lazy_flush(1)"
_LOW_LEVEL_GROUPS = 65_536
"""What the low level of an aggregate does where a query asks for one and does not say how."""

__all__ = [
    "Crossing",
    "Cut",
    "Exchange",
    "Physical",
    "low_level",
    "operators_by_place",
    "physical",
    "starting_at",
]


@dataclass(frozen=True)
class Physical:
    """A network after all rules, ready to be built as graphs."""

    network: Network
    roots: tuple[tuple[Query, Node], ...]

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that some query or its time contract reads, in declared order."""
        uses = (stream_columns(root, root.column_names(), stream) for _, root in self.roots)
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

        sources: set[str] = set()

        def leaf(node: Node, path: str) -> GraphNode | None:
            if not isinstance(node, Scan):
                return None
            source = _scanned(graph, node)
            sources.add(source.name)
            return source

        built = self._build(graph, leaf)
        for query, _ in self.roots:
            check_parts(query.name, built[query.name], query.options)
        used = {name for names in built.values() for name in names}
        graph.keep({*used, *built, *sources})
        return built

    def _build(self, graph: Graph, leaf: Leaf) -> dict[str, list[str]]:
        """Add what a graph lacks of all queries; the names of each query's operators.

        Of several queries that use an operator the first says how it is scheduled.
        """
        built: dict[str, list[str]] = {}
        for query, root in self.roots:
            known = {name for names in built.values() for name in names}
            builder = _Builder(graph, query, leaf, known, root=root, whole=True)
            end = builder.build(root, query.name)
            if query.name not in graph.nodes:
                graph.sink(query.name, end)
            graph.nodes[query.name].share = float(query.options.get("share", 1))
            built[query.name] = builder.names
        return built

    # Levels

    @cached_property
    def _levels(self) -> tuple[dict[str, Cut], dict[str, int]]:
        """All cuts by place in the queries' trees, and the level on which each query ends."""
        cuts: dict[str, Cut] = {}
        ends: dict[str, int] = {}
        for query, root in self.roots:
            own = Cuts(query.options)
            ends[query.name] = own.root(root, query.name)
            cuts |= own.cuts
        return cuts, ends

    def cuts(self) -> dict[str, Cut]:
        """Where each query is cut, by place in its tree; several places may share an exchange."""
        return self._levels[0]

    def queries_of_crossings(self) -> dict[str, str]:
        """By port to a later level a query whose rows cross there."""
        return {
            cut.port: query.name
            for path, cut in self.cuts().items()
            for query, _ in self.roots
            if isinstance(cut, Crossing) and _is_below(path, query.name)
        }

    @property
    def depth(self) -> int:
        """How many high levels there are."""
        return max(self._levels[1].values(), default=1)

    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges of the network, each once, in a fixed order."""
        return tuple({cut.port: cut for cut in self.cuts().values() if isinstance(cut, Exchange)}.values())

    def crossings(self) -> tuple[Crossing, ...]:
        """All crossings between high levels, each once, in a fixed order."""
        return tuple({cut.port: cut for cut in self.cuts().values() if isinstance(cut, Crossing)}.values())

    def in_sequence(self, stream: str) -> bool:
        """Whether what becomes of a row depends on all rows of its stream before it, so that it is read in one go."""
        own = [each for each in self.exchanges() if each.stream.name == stream]
        contract = own[0].stream.time
        return bool(contract.per or contract.also) or any(each.outlet == SEQUENCE for each in own)

    def low(self, stream: str) -> Graph:
        """The low level of one stream: its prefixes, each ending in a sink named after its exchange."""
        graph = Graph()

        def leaf(node: Node, path: str) -> GraphNode | None:
            return _scanned(graph, node) if isinstance(node, Scan) else None

        builder = _Builder(graph, None, leaf, set())
        for exchange in self.exchanges():
            if exchange.stream.name == stream:
                end = builder.build(exchange.prefix, exchange.port)
                if exchange.aggregate is not None:
                    end = graph.operator(f"pre_{exchange.port}", _lower(exchange), [end])
                graph.sink(exchange.port, end)
        return graph

    def high(self, level: int = 1) -> Graph:
        """One high level: a source a port that it reads, a sink a query that ends there or a port to a later level."""
        graph = Graph()
        cuts, ends = self._levels

        def leaf(node: Node, path: str) -> GraphNode | None:
            cut = cuts.get(path)
            return None if cut is None or cut.level != level else _port(graph, cut)

        known: set[str] = set()
        for query, root in self.roots:
            builder = _Builder(graph, query, leaf, known, root=root)
            for path, cut in cuts.items():
                if isinstance(cut, Crossing) and cut.start == level and _is_below(path, query.name):
                    end = builder.build(cut.input, path, top=True)
                    if cut.port not in graph.nodes:
                        graph.sink(cut.port, end, takes_bounds=True)
            if ends[query.name] == level:
                graph.sink(query.name, builder.build(root, query.name), float(query.options.get("share", 1)))
            known |= set(builder.names)
        return graph


def physical(network: Network) -> Physical:
    """The network after all rules, with the functions that its queries call imported."""
    load_functions(network)
    streams = {stream.name for stream in network.streams()}
    for query in network.queries:
        if query.name in streams:
            raise RequestError(f'"{query.name}" is both a stream and a query', hint="Give the query a name of its own.")
    return Physical(network, tuple((query, _prepared(query)) for query in network.queries))


def _prepared(query: Query) -> Node:
    """A query's tree as it is carried out."""
    if query.tree is not None:
        return query.tree
    slack = query.options.get("slack")
    starts = {**dict(query.outlets_since), "": query.since}
    root = since_points(optimize(query.root, lambda tree: with_queues(tree, query)), starts)
    return described(root if slack is None else _with_slack(root, int(slack)))


def _with_slack(node: Node, slack: int) -> Node:
    """The tree with aggregates over time that make their bounds themselves, of the rows that come."""
    node = node.map_children(lambda each: _with_slack(each, slack))
    if not isinstance(node, Aggregate) or node.bounds_type == pa.int64():
        return node
    return replace(node, input=Slack(node.input, slack))


def starting_at(query: Query, time: int, outlets: Iterable[tuple[str, int]] = ()) -> Query:
    """The query over the rows from a time on, and of outlets from other points on."""
    return replace(query, since=time, outlets_since=tuple(outlets))


def since_points(node: Node, starts: Mapping[str, int]) -> Node:
    """A tree over the rows from some points on; what comes before any state is left as it is, to be shared."""
    if not node.is_prefix:
        return node.map_children(lambda each: since_points(each, starts))
    scan = scan_of(node)
    start = starts.get(scan.source if scan.outlet else "", NO_BOUND)
    return node if start == NO_BOUND else Since(node, start)


def operators_by_place(query: Query, root: Node) -> dict[str, str]:
    """The names of the operators that carry out a query's tree, by place in it: its name, then numbers of inputs."""
    graph = Graph()

    def leaf(node: Node, path: str) -> GraphNode | None:
        return _scanned(graph, node) if isinstance(node, Scan) else None

    builder = _Builder(graph, query, leaf, set(), root=root, whole=True)
    builder.build(root, query.name)
    return builder.places


Leaf = Callable[[Node, str], GraphNode | None]
"""Says where a tree ends and a source stands, given a node and its place."""


class _Builder:
    """Adds the operators of one query to a graph, where they are not there yet; `known` ones keep their set-up.

    `root` is the query's whole tree.
    """

    def __init__(
        self,
        graph: Graph,
        query: Query | None,
        leaf: Leaf,
        known: Container[str],
        *,
        root: Node | None = None,
        whole: bool = False,
    ) -> None:
        self.graph = graph
        self.whole = whole
        self.leaf = leaf
        self.known = known
        self.query = query
        self.root = root
        self.options = query.options if query is not None else {}
        self.names: list[str] = []
        self.places: dict[str, str] = {}
        """The name of the operator that gives what a tree gives, by place in the query's tree."""

    def build(self, node: Node, path: str, *, top: bool = False) -> GraphNode:
        """The graph's node for a tree; at the top of what is built a leaf is not looked for."""
        found = None if top else self.leaf(node, path)
        if found is None:
            found = self._build(node, path)
        self.places[path] = found.name
        return found

    def _build(self, node: Node, path: str) -> GraphNode:
        method = method_of(node, self.options)
        if method is not None:
            return self._ordered(node, path, method)
        inputs = [self.build(each, f"{path}.{position}") for position, each in enumerate(read_by(node))]
        if isinstance(node, Aggregate) and (lower := self._low_level(node)) is not None:
            inputs = [self._add(lower, (lower.label, meaning(node), lower.size, lower.policy), inputs)]
        if isinstance(node, Join) and is_in_order(self.options):
            inputs = [self._sorted(each) for each in inputs]
            return self._sorted(self._added(node, inputs))
        added = self._added(node, inputs)
        if isinstance(node, AnyQueue):
            self._configure(added, path)
        return added

    def _ordered(self, node: Node, path: str, method: Method) -> GraphNode:
        """An order by time, down to the join that keeps it by itself."""
        if isinstance(node, Join):
            inputs = [self.build(each, f"{path}.{position}") for position, each in enumerate(node.inputs)]
            return self._added(node, inputs, method)
        (below,) = node.children()
        ordered = self._ordered(below, f"{path}.0", method)
        self.places[f"{path}.0"] = ordered.name
        return ordered if isinstance(node, OrderByTime) else self._added(node, [ordered])

    def _sorted(self, input: GraphNode) -> GraphNode:
        return self._add(kernel.Merge(), "sorted", [input])

    def _added(self, node: Node, inputs: Sequence[GraphNode], method: Method | None = None) -> GraphNode:
        operator = operator_of(node, self.options, method)
        return self._add(operator, content_of(node, self.options, method), inputs)

    def _add(self, operator: kernel.Operator, content: object, inputs: Sequence[GraphNode]) -> GraphNode:
        name = content_name(operator.label, (content, [each.name for each in inputs]))
        place = self.graph.nodes.get(name) or self.graph.operator(name, operator, inputs)
        if name not in self.known and name not in self.names:
            self._set_up(place)
        if name not in self.names:
            self.names.append(name)
        return place

    def _low_level(self, node: Aggregate) -> kernel.LowAggregate | None:
        """The bounded table below an aggregate, if the query asks for one."""
        asked = low_level(node, self.options) if self.whole else None
        if asked is None:
            return None
        groups, flush = asked
        return kernel.LowAggregate(partials_of(node), groups, FlushPolicy.parse(flush))

    def _set_up(self, node: GraphNode) -> None:
        node.strategy = strategy_of(node.name, self.options)
        node.breaks_after = breaks_after(node.name, self.options)
        node.ets_arcs = self.options.get("ets_arcs") != "off"
        node.chain = self.options.get("breaks") == "chain"

    def _configure(self, queue: GraphNode, path: str) -> None:
        """Let a queue follow the options that its query has now; nobody else has it."""
        assert self.query is not None and self.root is not None and isinstance(queue.operator, Queue)
        queue.operator.configure(settings_of(self.options, access_at(path, self.query, self.root)))


def low_level(node: Aggregate, options: Mapping[str, str]) -> tuple[int, str] | None:
    """How many groups the table below an aggregate holds and how it is emptied; None where there is none."""
    flush, groups = options.get("flush"), options.get("low_level_groups")
    if (flush is None and groups is None) or not takes_partials(node, options):
        return None
    return int(groups or _LOW_LEVEL_GROUPS), flush or _FLUSH


def _lower(exchange: Exchange) -> kernel.PreAggregate | kernel.LowAggregate:
    """The low level of an aggregate: partials of the task at hand, by a bounded table if that is asked for."""
    assert exchange.aggregate is not None
    partials = partials_of(exchange.aggregate)
    if exchange.low_level_groups is None:
        return kernel.PreAggregate(partials)
    return kernel.LowAggregate(partials, exchange.low_level_groups, FlushPolicy.parse(_FLUSH))


def _scanned(graph: Graph, scan: Scan) -> GraphNode:
    """The source of a scan: its stream's, or that of an outlet of it."""
    name, stream = scan.source, scan.stream
    if name in graph.nodes:
        return graph.nodes[name]
    return graph.outlet(name, stream.name, stream.time, scan.outlet) if scan.outlet else graph.source(name, stream.time)


def _port(graph: Graph, cut: Cut) -> GraphNode:
    if cut.port in graph.nodes:
        return graph.nodes[cut.port]
    if isinstance(cut, Crossing):
        return graph.source(cut.port, TimeContract("external"))
    time = cut.stream.time.outlet(cut.outlet) if cut.outlet else cut.stream.time
    return graph.source(cut.port, time, cut.outlet)


def _is_below(path: str, other: str) -> bool:
    """Whether a place in a tree is another one, or below it."""
    return path == other or path.startswith(f"{other}.")
