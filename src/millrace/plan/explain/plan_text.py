"""A network's plan as text: each query as a tree, its stages on Spark, and the query graph with its state table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from millrace.kernel.graph.delivery import ets_arcs
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.strategy import state_table, with_breaks
from millrace.plan.explain.cost_notes import Expected, cost_notes
from millrace.plan.explain.join_labels import join_notes
from millrace.plan.explain.labels import label
from millrace.plan.explain.update_labels import access_text, filter_notes, queue_label, queue_notes
from millrace.plan.nodes.aggregate_nodes import Aggregate, ClockWindow, Window
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, Union
from millrace.plan.nodes.update_nodes import AnyQueue, UpdateQueue, WindowQueue
from millrace.plan.physical.levels import Cut, Exchange
from millrace.plan.physical.operator_choice import Method, is_in_order, method_of
from millrace.plan.physical.pane_choice import low_level, pane_choice
from millrace.plan.physical.stages import Physical


def explain(plan: Physical, expected: Expected | None = None) -> str:
    """The whole plan as text. If rates and costs are `expected`, it also says what in-order joins will cost."""
    parts: list[str] = []
    for query, root in plan.roots:
        sink = query.sink.connector
        where = sink.options.get("path", sink.options.get("writer", ""))
        parts.append(f"query {query.name} -> {query.sink.name} ({sink.format}{' ' + where if where else ''})")
        tree = _Tree(query.options, plan.cuts(), expected or Expected())
        parts += [f"  read {access_text(query.access)}"] if query.access else []
        parts += [f"  {line}" for line in tree.lines(root, query.name)]
        parts.append(f"  columns: {', '.join(query.root.schema.names)}")
        parts.append("")
    graph = Graph()
    operators = plan.shape(graph)
    with_breaks(graph)
    parts += ["state table:", *_table(graph), "", "query graph:", *_graph(graph, operators), *_shared_exchanges(plan)]
    return "\n".join(parts)


@dataclass(frozen=True)
class _Tree:
    """Writes the tree of a query: one line per operator, and below it, behind a bar, notes on how it works."""

    options: Mapping[str, str]
    cuts: Mapping[str, Cut]
    expected: Expected

    def lines(self, node: Node, path: str, method: Method | None = None, *, cut_here: bool = True) -> Iterator[str]:
        """The lines of a tree; `method` says how the join below gives its rows in order, if it does."""
        cut = self.cuts.get(path) if cut_here else None
        if isinstance(cut, Exchange):
            what = "partials " if cut.aggregate is not None else ""
            yield f"exchange {what}{_keys(cut.keys)}    (on Spark: a break node, from the low level to {_buckets(cut)})"
        elif cut is not None:
            yield f"crossing {_keys(cut.keys)}    (on Spark: a break node, from one stage to {_buckets(cut)})"
        if cut is not None:
            yield from (f"  {line}" for line in self.lines(node, path, method, cut_here=False))
            return
        method = method_of(node, self.options) or method
        yield self._label(node, method)
        yield from (f"| {line}" for line in self._notes(node, method))
        passed = method if isinstance(node, OrderByTime | Filter | Project) else None
        for place, child in enumerate(node.operands()):
            yield from (f"  {line}" for line in self.lines(child, f"{path}.{place}", passed))

    def _label(self, node: Node, method: Method | None) -> str:
        if isinstance(node, Union) and is_in_order(self.options):
            return "union in order: a row leaves when no input can send an earlier one"
        if isinstance(node, OrderByTime) and method is not None:
            return "order by time: as the join below gives its rows"
        if isinstance(node, AnyQueue):
            return queue_label(node, self.options)
        return label(node) + (_kept(node, self.options) if isinstance(node, Aggregate) else "")

    def _notes(self, node: Node, method: Method | None) -> Iterator[str]:
        if isinstance(node, UpdateQueue | WindowQueue):
            yield from queue_notes(node, self.options)
        if isinstance(node, Filter):
            yield from filter_notes(node, self.options)
        if not isinstance(node, Join):
            return
        yield from join_notes(node)
        if is_in_order(self.options):
            yield "baseline in_order: the inputs are sorted before, the results after it"
        elif method is None:
            yield "order-agnostic: a row is joined when it arrives"
        else:
            yield from cost_notes(node, method, self.options, self.expected)


def _buckets(cut: Cut) -> str:
    return "the buckets" if cut.level == 1 else f"the buckets of stage {cut.level}"


def _kept(node: Aggregate, options: Mapping[str, str]) -> str:
    """How an aggregate keeps what it has seen, where there is a choice, and why; and the low level below it."""
    words = ""
    if isinstance(node.window, Window | ClockWindow) and node.window.range != node.window.slide:
        choice = pane_choice(node, options)
        words = f", {'rows buffered' if choice.buffered else 'panes'}: {choice.why}"
    asked = low_level(node, options)
    if asked is not None:
        baseline = " (baseline)" if asked[1].startswith("in_order") else ""
        words += f", over a low level: low_level_groups = {asked[0]}, flush = {asked[1]}{baseline}"
    return words


def _keys(keys: tuple[str, ...] | None) -> str:
    if keys is None:
        return "to any bucket"
    return f"by {', '.join(keys)}" if keys else "to one bucket"


def _table(graph: Graph) -> Iterator[str]:
    rows = [("state", "pred", "succ", "rule")]
    for state in state_table(graph):
        before, after = ", ".join(state.predecessors) or "-", ", ".join(state.successors) or "-"
        rows.append((state.name, before, after, state.rule))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for name, before, after, rule in rows:
        yield f"  {name:<{widths[0]}}  {before:<{widths[1]}}  {after:<{widths[2]}}  {rule}"


def _graph(graph: Graph, operators: Mapping[str, list[str]]) -> Iterator[str]:
    """The scheduling units with their shares, what queries have in common, and where an ETS may skip operators."""
    for number, nodes in enumerate(graph.components(), 1):
        queries = [node for node in nodes if node.is_sink]
        share = sum(node.share for node in queries)
        yield f"  component {number}, share {share:g}: {', '.join(node.name for node in queries)}"
    for name in graph.nodes:
        users = [query for query, names in operators.items() if name in names]
        if len(users) > 1:
            yield f"  shared: {name} is run once for {', '.join(users)}"
    for node in graph.nodes.values():
        for path in ets_arcs(node) if node.is_source or node.senses_bounds else ():
            past = ", ".join(arc.consumer.name for arc in path[:-1])
            yield f"  ETS arc: {node.name} to {path[-1].consumer.name}" + (f", past {past}" if past else "")


def _shared_exchanges(plan: Physical) -> Iterator[str]:
    """What several queries have in common up to the buckets."""
    users: dict[str, list[str]] = {}
    for query, root in plan.roots:
        for exchange in replace(plan, roots=((query, root),)).exchanges():
            users.setdefault(exchange.port, []).append(query.name)
    for port, queries in users.items():
        if len(queries) > 1:
            yield f"  shared: {port} is sent once for {', '.join(queries)} (on Spark)"
