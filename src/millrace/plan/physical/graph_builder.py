"""Builds the operators of one query into a graph."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from millrace.kernel import operator_index as kernel
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.updates.queue import Queue
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.content_names import content_name, meaning
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import OrderByTime, Scan, is_latent
from millrace.plan.nodes.update_nodes import AnyQueue
from millrace.plan.physical.levels import Crossing, Cut
from millrace.plan.physical.operator_choice import (
    Method,
    content_of,
    is_in_order,
    low_aggregate,
    method_of,
    operator_of,
)
from millrace.plan.physical.scheduling_options import breaks_after, strategy_of
from millrace.plan.updates.queue_configuration import access_at, options_at, settings_of

Leaf = Callable[[Node, str], GraphNode | None]
"""Says where a tree ends and a source stands, given a node and its place."""


@dataclass
class GraphBuilder:
    """Adds the operators of one query to a graph, where they are not there yet.

    Operators that other queries have `known` keep their set-up. `root` is the query's whole tree. A `whole` graph has
    the low levels of aggregates too, which else stand below an exchange.
    """

    graph: Graph
    query: Query | None
    leaf: Leaf
    known: Container[str]
    root: Node | None = None
    whole: bool = False
    names: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """The name of the operator that gives what a tree gives, by place in the query's tree."""

    @cached_property
    def options(self) -> Mapping[str, str]:
        """Those of the query; the low levels of streams have none."""
        return {} if self.query is None else self.query.options

    def build(self, node: Node, path: str, *, top: bool = False) -> GraphNode:
        """The graph's node for a tree; the root of what is built is never taken for a leaf."""
        found = None if top else self.leaf(node, path)
        if found is None:
            found = self._build(node, path)
        self.places[path] = found.name
        return found

    def _build(self, node: Node, path: str) -> GraphNode:
        method = method_of(node, self.options)
        if method is not None:
            return self._ordered(node, path, method)
        inputs = self._inputs(node, path)
        lower = low_aggregate(node, self.options) if self.whole and isinstance(node, Aggregate) else None
        if lower is not None:
            inputs = [self._add(lower, (lower.label, meaning(node), lower.size, lower.policy), inputs)]
        if isinstance(node, Join) and is_in_order(self.options):
            inputs = [self._sorted(each) for each in inputs]
            return self._sorted(self._added(node, inputs))
        added = self._added(node, inputs)
        if isinstance(node, AnyQueue):
            assert self.query is not None and self.root is not None and isinstance(added.operator, Queue)
            # No other query shares the queue, so it follows the options that its query has now.
            added.operator.configure(
                settings_of(options_at(node, self.options), access_at(path, self.query, self.root))
            )
        return added

    def _inputs(self, node: Node, path: str) -> list[GraphNode]:
        """What an operator reads; latent rows are stamped in front of the first one that needs a time.

        Where a graph is cut, rows cross with their time: that of the micro-batch, which stands still until it ends.
        """
        operands = node.operands()
        built = [self.build(each, f"{path}.{position}") for position, each in enumerate(operands)]
        if not self.whole or is_latent(node):
            return built
        return [
            self._add(kernel.Stamp(), "stamp", [given]) if is_latent(each) else given
            for each, given in zip(operands, built, strict=True)
        ]

    def _ordered(self, node: Node, path: str, method: Method) -> GraphNode:
        """An order by time, down to the join that keeps it by itself."""
        if isinstance(node, Join):
            return self._added(node, self._inputs(node, path), method)
        ordered = self._ordered(node.children()[0], f"{path}.0", method)
        self.places[f"{path}.0"] = ordered.name
        return ordered if isinstance(node, OrderByTime) else self._added(node, [ordered])

    def _sorted(self, input: GraphNode) -> GraphNode:
        return self._add(kernel.Merge(), "sorted", [input])

    def _added(self, node: Node, inputs: Sequence[GraphNode], method: Method | None = None) -> GraphNode:
        operator = operator_of(node, self.options, method)
        return self._add(operator, content_of(node, self.options, method), inputs)

    def _add(self, operator: kernel.Operator, content: object, inputs: Sequence[GraphNode]) -> GraphNode:
        # Stamps are not in every graph of a plan, and an operator has one name in all of them.
        below = [each.inputs[0].producer if isinstance(each.operator, kernel.Stamp) else each for each in inputs]
        name = content_name(operator.label, (content, [each.name for each in below]))
        node = self.graph.nodes.get(name) or self.graph.operator(name, operator, inputs)
        if name in self.names:
            return node
        self.names.append(name)
        if name not in self.known:
            node.strategy = strategy_of(name, self.options)
            node.breaks_after = breaks_after(name, self.options)
            node.ets_arcs = self.options.get("ets_arcs") != "off"
            node.chain = self.options.get("breaks") == "chain"
        return node


def scan_leaf(graph: Graph) -> Leaf:
    """Ends trees at their scans: each has the source of its stream, or that of an outlet of it."""

    def leaf(node: Node, path: str) -> GraphNode | None:
        if not isinstance(node, Scan):
            return None
        name, stream = node.source, node.stream
        if name in graph.nodes:
            return graph.nodes[name]
        if node.outlet:
            return graph.outlet(name, stream.name, stream.time, node.outlet)
        return graph.source(name, stream.time)

    return leaf


def port_source(graph: Graph, cut: Cut) -> GraphNode:
    """The source where rows come in over an exchange or a crossing."""
    if cut.port in graph.nodes:
        return graph.nodes[cut.port]
    if isinstance(cut, Crossing):
        return graph.source(cut.port, TimeContract("external"))
    time = cut.stream.time.outlet(cut.outlet) if cut.outlet else cut.stream.time
    return graph.source(cut.port, time, cut.outlet)
