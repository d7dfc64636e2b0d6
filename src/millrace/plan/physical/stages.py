"""From a network to query graphs: whole for one process, or cut into a low level per stream and high levels.

Rules:
- Where a plan is cut is said in levels.py; in one process the cuts disappear.
- A node's name is made from what it computes: equal parts of several queries are one node, and saved state finds its
  operator again whichever queries are added or dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from millrace.errors import RequestError
from millrace.kernel.columns.user_functions import UserCall, UserFunction, loaded
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, PartitionedRows, TrailingWindow, Window
from millrace.plan.nodes.content_names import columns_by_stream
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Released, RowSlack, Since, Slack, scan_of, scans_of
from millrace.plan.physical.graph_builder import GraphBuilder, port_source, scan_leaf
from millrace.plan.physical.group_promises import rolled_up
from millrace.plan.physical.levels import Crossing, Cut, Cuts, Exchange
from millrace.plan.physical.operator_choice import pre_aggregate
from millrace.plan.physical.scheduling_options import check_parts
from millrace.plan.rules import optimize
from millrace.plan.updates.queue_placement import with_queues


@dataclass(frozen=True)
class Physical:
    """A network after all rules, ready to be built as graphs."""

    network: QueryNetwork
    roots: tuple[tuple[Query, Node], ...]

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that some query or its time contract reads, in declared order."""
        declared = self._declared[stream]
        if declared.connector.knows_columns_by_place:
            return list(declared.schema.names)
        also = {*declared.time.columns(), declared.replay.column if declared.replay else None}
        return [name for name in declared.schema.names if name in self._read.get(stream, ()) or name in also]

    @cached_property
    def _read(self) -> dict[str, set[str]]:
        return columns_by_stream(root for _, root in self.roots)

    @cached_property
    def _declared(self) -> dict[str, Stream]:
        return {stream.name: stream for stream in self.network.streams()}

    def whole(self) -> Graph:
        """One graph for all queries: what they have in common is there once, and the exchanges disappear."""
        graph = Graph()
        self.shape(graph)
        return graph

    def shape(self, graph: Graph) -> dict[str, list[str]]:
        """Make a graph of this process what the plan says, and give the names of each query's operators.

        Nodes are added and removed; those that stay keep their state. Of several queries that use an operator the first
        says how it is scheduled.
        """
        built: dict[str, list[str]] = {}
        known: set[str] = set()
        for query, root in self.roots:
            builder = GraphBuilder(graph, query, scan_leaf(graph), known, root=root, whole=True)
            end = builder.build(root, query.name)
            if query.name not in graph.nodes:
                graph.sink(query.name, end)
            graph.nodes[query.name].share = float(query.options.get("share", 1))
            built[query.name] = builder.names
            known |= set(builder.names)
        for query, _ in self.roots:
            check_parts(query.name, built[query.name], query.options)
        sources = {scan.source for _, root in self.roots for scan in scans_of(root)}
        graph.keep({*known, *built, *sources})
        return built

    # Levels

    @cached_property
    def _levels(self) -> tuple[dict[str, dict[str, Cut]], dict[str, int]]:
        """The cuts of each query by place in its tree, and the level on which it ends."""
        cuts: dict[str, dict[str, Cut]] = {}
        ends: dict[str, int] = {}
        for query, root in self.roots:
            own = Cuts(query.options)
            ends[query.name] = own.root(root, query.name)
            cuts[query.name] = own.cuts
        return cuts, ends

    def cuts(self) -> dict[str, Cut]:
        """Where each query is cut, by place in its tree; several places may share an exchange."""
        return {path: cut for own in self._levels[0].values() for path, cut in own.items()}

    def queries_of_crossings(self) -> dict[str, str]:
        """By port to a later level a query whose rows cross there."""
        return {
            cut.port: query
            for query, own in self._levels[0].items()
            for cut in own.values()
            if isinstance(cut, Crossing)
        }

    def queries_of_ports(self) -> dict[str, list[str]]:
        """By port the queries whose rows go through it."""
        found: dict[str, dict[str, None]] = {}
        for query, own in self._levels[0].items():
            for cut in own.values():
                found.setdefault(cut.port, {})[query] = None
        return {port: list(queries) for port, queries in found.items()}

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
        """True if what becomes of a row depends on all rows of its stream before it: then one task reads them all."""
        own = [each for each in self.exchanges() if each.stream.name == stream]
        contract = own[0].stream.time
        return bool(contract.per or contract.also) or any(each.outlet == SEQUENCE for each in own)

    def low(self, stream: str, places: dict[str, str] | None = None) -> Graph:
        """The low level of one stream: its prefixes, each ending in a sink named after its exchange.

        The names of its operators are put into `places`, by port and place below it.
        """
        graph = Graph()
        builder = GraphBuilder(graph, None, scan_leaf(graph), set())
        for exchange in self.exchanges():
            if exchange.stream.name == stream:
                end = builder.build(exchange.prefix, exchange.port)
                if exchange.aggregate is not None:
                    end = graph.operator(f"pre_{exchange.port}", pre_aggregate(exchange), [end])
                graph.sink(exchange.port, end)
        if places is not None:
            places |= {path: name for path, name in builder.places.items() if name in builder.names}
        return graph

    def high(self, level: int = 1, places: dict[str, str] | None = None) -> Graph:
        """One high level: a source per port that it reads, a sink per query that ends there or port to a later one.

        The names of its operators are put into `places`, by place in the trees of the queries.
        """
        graph = Graph()
        cuts, ends = self._levels

        def leaf(node: Node, path: str) -> GraphNode | None:
            cut = own.get(path)
            return None if cut is None or cut.level != level else port_source(graph, cut)

        known: set[str] = set()
        for query, root in self.roots:
            own = cuts[query.name]
            builder = GraphBuilder(graph, query, leaf, known, root=root)
            for path, cut in own.items():
                if isinstance(cut, Crossing) and cut.start == level:
                    end = builder.build(cut.input, path, top=True)
                    if cut.port not in graph.nodes:
                        graph.sink(cut.port, end, takes_bounds=True)
                    graph.nodes[cut.port].tells_releases |= isinstance(root, Released)
            if ends[query.name] == level:
                graph.sink(query.name, builder.build(root, query.name), float(query.options.get("share", 1)))
            known |= set(builder.names)
            if places is not None:
                places |= {path: name for path, name in builder.places.items() if name in builder.names}
        return graph

    def operators_on_spark(self) -> dict[str, str]:
        """The names of all operators of the levels, by place in the trees of the queries."""
        places, low = dict[str, str](), dict[str, str]()
        for stream in dict.fromkeys(each.stream.name for each in self.exchanges()):
            self.low(stream, low)
        for path, cut in self.cuts().items():
            below = (place for place in low if place == cut.port or place.startswith(f"{cut.port}."))
            places |= {path + place.removeprefix(cut.port): low[place] for place in below}
        for level in range(1, self.depth + 1):
            self.high(level, places)
        return places


def physical(network: QueryNetwork) -> Physical:
    """The network after all rules, with the user functions that it calls imported and checked."""
    for function in _functions_of(network):
        loaded(function)
    streams = {stream.name for stream in network.streams()}
    for query in network.queries:
        if query.name in streams:
            raise RequestError(f'"{query.name}" is both a stream and a query', hint="Give the query a name of its own.")
    return Physical(network, tuple((query, _prepared(query)) for query in network.queries))


def _functions_of(network: QueryNetwork) -> list[UserFunction]:
    """The user functions that queries and the time contracts of their streams call, each once."""
    roots = (root for query in network.queries for root in (query.root, query.tree) if root is not None)
    computed = [each for root in roots for node in walk(root) for each in node.expressions()]
    promised = [each.time.punctuation for each in network.streams() if each.time.punctuation is not None]
    parts = (part for each in (*computed, *promised) if each.is_guarded for part in each.parts())
    return list(dict.fromkeys(part.function for part in parts if isinstance(part, UserCall)))


def _prepared(query: Query) -> Node:
    """A query's tree as it is carried out."""
    if query.tree is not None:
        return query.tree
    slack = query.options.get("slack")
    root = since_points(optimize(query.root, lambda tree: with_queues(tree, query)), query.starts)
    return rolled_up(root if slack is None else _with_slack(root, slack))


def _with_slack(node: Node, slack: str) -> Node:
    """The tree with aggregates over time that make their bounds themselves, of the rows that come."""
    node = node.map_children(lambda each: _with_slack(each, slack))
    if not isinstance(node, Aggregate) or _counts_rows(node.window):
        return node
    length, *rows = slack.split()
    return replace(node, input=(RowSlack if rows else Slack)(node.input, int(length)))


def _counts_rows(window: AnyWindow) -> bool:
    counts = isinstance(window, Window | TrailingWindow) and window.unit == "rows"
    return counts or isinstance(window, PartitionedRows)


def since_points(node: Node, starts: Mapping[str, int]) -> Node:
    """A tree over the rows from some points on, by source; prefixes themselves stay as they are, to be shared."""
    if not node.is_prefix:
        return node.map_children(lambda each: since_points(each, starts))
    scan = scan_of(node)
    start = starts.get(scan.source if scan.has_other_time else "", NO_BOUND)
    return node if start == NO_BOUND else Since(node, start)


def operators_by_place(query: Query, root: Node) -> dict[str, str]:
    """The names of the operators that carry out a query's tree, by place in it: its name, then numbers of inputs."""
    graph = Graph()
    builder = GraphBuilder(graph, query, scan_leaf(graph), set(), root=root, whole=True)
    builder.build(root, query.name)
    return builder.places
