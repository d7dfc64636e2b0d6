"""The query graph of a plan as a picture without a layout: what `explain` draws and the live page shows.

Rules:
- A node is a stream, an operator or a query, under the name that it has in the graph at work. Metrics have that name.
- The operators that a high level of Spark has instead are told apart: what they read comes by an exchange, so they have
  other names.
- A part that several queries compute alike is one node, which names them all.
- An arc that is cut on Spark says how its rows are spread. ETS arcs are apart: no rows flow there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from millrace.kernel.graph.delivery import ets_arcs
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.plan.explain.labels import contract_text, label
from millrace.plan.explain.state_labels import state_text
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.physical.graph_builder import GraphBuilder, scan_leaf
from millrace.plan.physical.levels import Cut
from millrace.plan.physical.stages import Physical

NodeKind = Literal["stream", "operator", "query"]


@dataclass(frozen=True)
class PictureNode:
    """A stream, an operator or a query."""

    name: str
    kind: NodeKind
    title: str
    """What it is, in a word or two."""
    text: str
    """What it does, in the words of `explain`."""
    queries: tuple[str, ...]
    """The queries that it works for."""
    clause: str = ""
    """The part of a query's text that it carries out: where, select, group, from, order; empty if there is none."""
    on_spark: tuple[str, ...] = ()
    """The names of the operators that do the same in the buckets of Spark."""
    state: str = ""
    """What it keeps, and until when; empty for one without state."""


@dataclass(frozen=True)
class PictureArc:
    """Rows flow from a producer to an input of a consumer."""

    producer: str
    consumer: str
    port: int
    exchange: str = ""
    """How rows are spread where the arc is cut on Spark; empty if it is not."""


@dataclass(frozen=True)
class QueryPicture:
    """The nodes, each after those that it reads, and the arcs between them."""

    nodes: tuple[PictureNode, ...]
    arcs: tuple[PictureArc, ...]
    ets_arcs: tuple[tuple[str, str], ...]
    """From a stream to the operator that its ETS reach at once, past others."""

    def data(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)


def query_picture(plan: Physical) -> QueryPicture:
    """The picture of a whole plan."""
    graph = plan.whole()
    nodes = {each.name: each for each in map(_bare, graph.nodes.values())}
    exchanges: dict[tuple[str, str], str] = {}
    on_spark = plan.operators_on_spark()
    for query, root in plan.roots:
        names, told = _places(query, root), set[str]()
        for path, node in _walk(root, query.name):
            if (name := names.get(path, "")) in nodes and name not in told:
                nodes[name] = _told(nodes[name], query, node, on_spark.get(path))
                told.add(name)
        exchanges |= _exchanges(names, plan.cuts(), query.name)
        sink = nodes[query.name]
        nodes[query.name] = replace(sink, text=_sink_text(query), queries=(query.name,))
    arcs = tuple(
        PictureArc(arc.producer.name, node.name, arc.port, exchanges.get((arc.producer.name, node.name), ""))
        for node in graph.nodes.values()
        for arc in node.inputs
    )
    return QueryPicture(tuple(nodes.values()), arcs, tuple(dict.fromkeys(_ets_arcs(graph))))


def _bare(node: GraphNode) -> PictureNode:
    """A node of the graph, before a query has said what it does."""
    if node.is_source:
        assert node.contract is not None
        return PictureNode(node.name, "stream", node.name, contract_text(node.contract), ())
    if node.is_sink:
        return PictureNode(node.name, "query", node.name, "", ())
    assert node.operator is not None
    title = node.operator.label.replace("_", " ")
    return PictureNode(node.name, "operator", title, title, ())


def _told(known: PictureNode, query: Query, node: Node, on_spark: str | None) -> PictureNode:
    """What is known of a node of the graph, after one more query uses it for a node of its tree."""
    queries = tuple(dict.fromkeys([*known.queries, query.name]))
    if known.kind == "stream":
        return replace(known, text=label(node).partition(": ")[2] or known.text, queries=queries)
    names = known.on_spark if on_spark is None else tuple(dict.fromkeys([*known.on_spark, on_spark]))
    state = known.state or state_text(node, query.options)
    return replace(known, text=label(node), queries=queries, clause=_clause(node), on_spark=names, state=state)


def _clause(node: Node) -> str:
    """Which part of a text a node carries out, by its kind."""
    kind = type(node).__name__
    words = {
        "Filter": "where",
        "Project": "select",
        "Explode": "select",
        "Aggregate": "group",
        "MarkedAggregate": "group",
        "Distinct": "select",
        "Rank": "select",
        "OrderByTime": "order",
        "OrderByColumns": "order",
        "Union": "from",
        "Numbered": "from",
    }
    return words.get(kind, "from" if "Join" in kind or kind == "Following" else "")


def _walk(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Each node of a tree with its place, lower ones first: an operator that does the work of two nodes is described by
    the lower one."""
    for place, child in enumerate(node.operands()):
        yield from _walk(child, f"{path}.{place}")
    yield path, node


def _places(query: Query, root: Node) -> dict[str, str]:
    """The name of the graph's node for each place in a tree."""
    graph = Graph()
    builder = GraphBuilder(graph, query, scan_leaf(graph), set(), root=root, whole=True)
    builder.build(root, query.name)
    return builder.places


def _exchanges(names: dict[str, str], cuts: dict[str, Cut], query: str) -> dict[tuple[str, str], str]:
    """By arc how its rows are spread where a query is cut."""
    found = {}
    for path, cut in cuts.items():
        above = path.rpartition(".")[0]
        if path in names and path.split(".")[0] == query:
            consumer = names.get(above, query) if above else query
            keys = cut.keys
            spread = "to any bucket" if keys is None else f"by {', '.join(keys)}" if keys else "to one bucket"
            found[names[path], consumer] = spread
    return found


def _sink_text(query: Query) -> str:
    sink = query.sink.connector
    where = sink.options.get("path", sink.options.get("writer", ""))
    return f"into {query.sink.name} ({sink.format}{' ' + where if where else ''})"


def _ets_arcs(graph: Graph) -> Iterator[tuple[str, str]]:
    for node in graph.nodes.values():
        for path in ets_arcs(node) if node.is_source or node.senses_bounds else ():
            if len(path) > 1:
                yield node.name, path[-1].consumer.name
