"""A network's plan as text: each query as a tree, its stages on Spark, and the query graph with its state table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from millrace.kernel.graph.delivery import ets_arcs
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.strategy import state_table, with_breaks
from millrace.kernel.progress.time_contract import LATE, SEQUENCE
from millrace.plan.explain.contract_words import contract_text
from millrace.plan.explain.cost_words import Expected, cost_notes
from millrace.plan.explain.intervals import clock_text, interval_text
from millrace.plan.explain.join_words import (
    following_label,
    is_one_of_several,
    join_label,
    join_notes,
    rows_join_label,
)
from millrace.plan.explain.update_words import access_text, filter_notes, queue_label, queue_notes, update_join_label
from millrace.plan.joins.join_order import reason
from millrace.plan.nodes.aggregate_nodes import (
    Aggregate,
    Aggregation,
    AnyWindow,
    CalendarWindow,
    DividedWindow,
    InstantWindow,
    PairWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Window,
)
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import (
    Distinct,
    Filter,
    Numbered,
    OrderByTime,
    Project,
    Rank,
    RollUp,
    Scan,
    Since,
    Slack,
    Union,
)
from millrace.plan.nodes.update_nodes import AnyQueue, MarkedAggregate, UpdateJoin, UpdateQueue, WindowQueue
from millrace.plan.physical.levels import Cut, Exchange
from millrace.plan.physical.operator_choice import Method, is_in_order, method_of
from millrace.plan.physical.pane_choice import low_level, pane_choice
from millrace.plan.physical.stages import Physical

_IN_ORDER = "union in order: a row leaves when no input can send an earlier one"


def explain(plan: Physical, expected: Expected | None = None) -> str:
    """The whole plan as text; with what is expected of streams and machine, what in-order joins will cost."""
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
    """Writes the tree of a query, a line an operator, and lines behind a bar for what there is to say about one."""

    options: Mapping[str, str]
    cuts: Mapping[str, Cut]
    expected: Expected

    def lines(self, node: Node, path: str, method: Method | None = None, *, cut_here: bool = True) -> Iterator[str]:
        """The lines of a tree; `method` says how the join below gives its rows in order, if it does."""
        cut = self.cuts.get(path) if cut_here else None
        if isinstance(cut, Exchange):
            what = "partials " if cut.aggregate is not None else ""
            yield f"exchange {what}{_keys(cut.keys)}    (on Spark: a break node, from the low level to {_buckets(cut)})"
            yield from (f"  {line}" for line in _prefix(node))
            return
        if cut is not None:
            yield f"crossing {_keys(cut.keys)}    (on Spark: a break node, from one stage to {_buckets(cut)})"
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
            return _IN_ORDER
        if isinstance(node, OrderByTime) and method is not None:
            return "order by time: as the join below gives its rows"
        if isinstance(node, AnyQueue):
            return queue_label(node, self.options)
        return _label(node) + (_kept(node, self.options) if isinstance(node, Aggregate) else "")

    def _notes(self, node: Node, method: Method | None) -> Iterator[str]:
        if isinstance(node, UpdateQueue | WindowQueue):
            yield from queue_notes(node, self.options)
        if isinstance(node, Filter):
            yield from filter_notes(node, self.options)
        if not isinstance(node, Join):
            return
        yield from join_notes(node)
        if is_one_of_several(node):
            yield reason(node)
        if is_in_order(self.options):
            yield "baseline in_order: the inputs are sorted before, the results after it"
        elif method is None:
            yield "order-agnostic: a row is joined when it comes"
        else:
            yield from cost_notes(node, method, self.options, self.expected)


def _buckets(cut: Cut) -> str:
    return "the buckets" if cut.level == 1 else f"the buckets of stage {cut.level}"


def _kept(node: Aggregate, options: Mapping[str, str]) -> str:
    """How an aggregate keeps what it has seen, where there is a choice, and why; and the low level below it."""
    return _choice_text(node, options) + _low_level_text(node, options)


def _low_level_text(node: Aggregate, options: Mapping[str, str]) -> str:
    asked = low_level(node, options)
    if asked is None:
        return ""
    baseline = " (baseline)" if asked[1] == "in_order" else ""
    return f", over a low level: low_level_groups = {asked[0]}, flush = {asked[1]}{baseline}"


def _choice_text(node: Aggregate, options: Mapping[str, str]) -> str:
    if not isinstance(node.window, Window) or node.window.range == node.window.slide:
        return ""
    choice = pane_choice(node, options)
    return f", {'rows buffered' if choice.buffered else 'panes'}: {choice.why}"


def _prefix(node: Node) -> Iterator[str]:
    yield _label(node)
    for child in node.children():
        yield from (f"  {line}" for line in _prefix(child))


def _keys(keys: tuple[str, ...] | None) -> str:
    if keys is None:
        return "anywhere"
    return f"by {', '.join(keys)}" if keys else "to one bucket"


def _label(node: Node) -> str:
    match node:
        case Scan():
            return f"stream {node.stream.name}: {contract_text(node.stream.time)}{_outlet_text(node)}"
        case Filter():
            return f"filter {node.predicate}"
        case Project():
            columns = ", ".join(name if str(each) == name else f"{each} AS {name}" for name, each in node.columns)
            return f"project {columns or '(time alone)'}"
        case Union():
            return "union, order-agnostic: rows pass as they come, the bound is the least of all inputs"
        case Numbered():
            return "number: by time, then input, then order in the input"
        case OrderByTime():
            return "order by time: a row leaves when no input can send an earlier one"
        case Since():
            return f"rows from {clock_text(node.time, exact=True)} on"
        case RollUp():
            return "roll up: the promises of single groups to the least of all groups seen"
        case Slack():
            return (
                f"slack {interval_text(node.slack)}: the bound is made of the rows, and rows below it are turned away"
            )
        case Distinct():
            return "distinct: forgets a row when time has passed it"
        case Rank():
            order = ", ".join(name + (" DESC" if descending else "") for name, descending in node.order)
            limit = "" if node.limit is None else f", up to {node.limit}"
            return f"{node.function} among rows of equal time{_by(node.partition)}, ordered by {order}{limit}"
        case Join():
            return join_label(node)
        case RowsJoin():
            return rows_join_label(node)
        case Following():
            return following_label(node)
        case UpdateJoin():
            return update_join_label(node)
        case UpdateQueue() | WindowQueue():
            return queue_label(node, {})
        case MarkedAggregate():
            return f"{_label(node.aggregate)}, of the windows that the queue has committed to"
        case Aggregate():
            calls = ", ".join(_call_text(each) for each in node.aggregations)
            return f"window aggregate {calls}{_by([name for name, _ in node.keys])}, {_window_text(node.window)}"
    raise AssertionError(node)


def _by(names: Sequence[str]) -> str:
    return f" by {', '.join(names)}" if names else ""


def _outlet_text(scan: Scan) -> str:
    words = {"": "", SEQUENCE: ", by sequence number", LATE: ", the rows that came too late"}
    return words.get(scan.outlet, f", by {scan.outlet}")


def _call_text(each: Aggregation) -> str:
    function = each.function if isinstance(each.function, str) else each.function.name
    values = ", ".join([*map(str, each.arguments), *map(str, each.parameters)])
    where = "" if each.where is None else f" FILTER (WHERE {each.where})"
    return f"{function}({values or '*'}){where} AS {each.name}"


def _window_text(window: AnyWindow) -> str:
    match window:
        case Window(unit="rows"):
            return f"rows {window.range} slide {window.slide}"
        case Window():
            origin = f" from {clock_text(window.origin, exact=True)} on" if window.origin else ""
            return f"range {interval_text(window.range)} slide {interval_text(window.slide)}{origin}"
        case CalendarWindow():
            return f"each {window.every}"
        case DividedWindow():
            return f"each {window.count} times {interval_text(window.tick)}, towards zero"
        case InstantWindow():
            return "each instant"
        case PairWindow():
            return f"each pair of {window.first} and {window.second}"
        case SessionWindow():
            return f"sessions with a gap of {interval_text(window.gap)}"
        case TrailingWindow(range=None):
            return "a result a row, over all rows of its group up to it"
        case TrailingWindow(range=int() as reach):
            length = f"{reach + 1} rows" if window.unit == "rows" else interval_text(reach)
            return f"a result a row, over the last {length}"
        case PartitionedRows():
            often = "a result a row" if window.slide is None else f"a result every {window.slide} rows"
            return f"{often}, over the last {window.rows} rows of its group"
    raise AssertionError(window)


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
