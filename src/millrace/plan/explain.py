"""A network's plan as text: each query as a tree, its stages on Spark, and the query graph with its state table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millrace.kernel.graph import Graph, ets_arcs
from millrace.kernel.progress import TimeContract
from millrace.kernel.strategy import state_table, with_breaks
from millrace.plan.intervals import clock_text, interval_text
from millrace.plan.nodes import (
    Aggregate,
    Filter,
    Node,
    OrderByTime,
    Project,
    Scan,
    Since,
    Union,
    Window,
    inputs_of,
)
from millrace.plan.stages import Exchange, Physical

_IN_ORDER = "union in order: a row leaves when no input can send an earlier one"


def explain(plan: Physical) -> str:
    """The whole plan as text."""
    parts: list[str] = []
    exchanges = {id(each.prefix): each for each in plan.cuts().values()}
    for query, root in plan.roots:
        sink = query.sink.connector
        where = sink.options.get("path", "")
        parts.append(f"query {query.name} -> {query.sink.name} ({sink.format}{' ' + where if where else ''})")
        parts += [f"  {line}" for line in _tree(root, query.options.get("order") == "in", exchanges)]
        parts.append(f"  columns: {', '.join(query.root.schema.names)}")
        parts.append("")
    graph = Graph()
    operators = plan.shape(graph)
    with_breaks(graph)
    parts += ["state table:", *_table(graph), "", "query graph:", *_graph(graph, operators), *_shared_exchanges(plan)]
    return "\n".join(parts)


def _tree(node: Node, in_order: bool, exchanges: dict[int, Exchange]) -> Iterator[str]:
    exchange = exchanges.get(id(node))
    if exchange is not None:
        what = "partials " if exchange.aggregate is not None else ""
        yield f"exchange {what}{_keys(exchange.keys)}    (on Spark: a break node, from the low level to the buckets)"
        yield from (f"  {line}" for line in _prefix(node))
        return
    yield _IN_ORDER if in_order and isinstance(node, Union) else _label(node)
    for child in inputs_of(node):
        yield from (f"  {line}" for line in _tree(child, in_order, exchanges))


def _prefix(node: Node) -> Iterator[str]:
    yield _label(node)
    for child in inputs_of(node):
        yield from (f"  {line}" for line in _prefix(child))


def _keys(keys: tuple[str, ...] | None) -> str:
    if keys is None:
        return "anywhere"
    return f"by {', '.join(keys)}" if keys else "to one bucket"


def _label(node: Node) -> str:
    match node:
        case Scan():
            return f"stream {node.stream.name}: {contract_text(node.stream.time)}"
        case Filter():
            return f"filter {node.predicate}"
        case Project():
            columns = ", ".join(name if str(each) == name else f"{each} AS {name}" for name, each in node.columns)
            return f"project {columns or '(time alone)'}"
        case Union():
            return "union, order-agnostic: rows pass as they come, the bound is the least of all inputs"
        case OrderByTime():
            return "order by time: a row leaves when no input can send an earlier one"
        case Since():
            return f"rows from {clock_text(node.time, exact=True)} on"
        case Aggregate():
            calls = ", ".join(
                f"{each.function}({', '.join(map(str, each.arguments)) or '*'}) AS {each.name}"
                for each in node.aggregations
            )
            by = f" by {', '.join(name for name, _ in node.keys)}" if node.keys else ""
            assert isinstance(node.window, Window)
            span = f"range {interval_text(node.window.range)} slide {interval_text(node.window.slide)}"
            return f"window aggregate {calls}{by}, {span}"
        case _:
            return type(node).__name__


def contract_text(contract: TimeContract) -> str:
    """What a stream promises, in words."""
    words = f"{contract.kind} time" + (f" {contract.column}" if contract.column else "")
    if contract.kind == "external":
        words += f", {_order_text(contract)}"
    guard = contract.max_future_skew
    return f"{words}, {_ets_text(contract)}" + (f", {interval_text(guard)} ahead at most" if guard is not None else "")


def _order_text(contract: TimeContract) -> str:
    if contract.punctuation is not None:
        order = f"punctuated by {contract.punctuation}"
    elif contract.rows is not None:
        order = f"disorder {contract.rows} {'ROW' if contract.rows == 1 else 'ROWS'}"
    else:
        order = f"disorder {interval_text(contract.disorder)}" if contract.disorder else "ordered"
    return order + (f" in each partition of {', '.join(contract.partitions)}" if contract.partitions else "")


def _ets_text(contract: TimeContract) -> str:
    kind = "every" if contract.ets == "periodic" else contract.ets.replace("_", " ")
    lengths = (("", contract.every), ("skew ", contract.skew), ("lull ", contract.lull))
    return " ".join(["ETS", kind, *(f"{word}{interval_text(each)}" for word, each in lengths if each is not None)])


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
