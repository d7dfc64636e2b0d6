"""A network's plan as text: each query as a tree, its stages on Spark, and the state table."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.progress import TimeContract
from millrace.kernel.strategy import state_table
from millrace.plan.intervals import interval_text
from millrace.plan.nodes import Aggregate, Filter, Node, OrderByTime, Project, Scan, Union, inputs_of
from millrace.plan.stages import Exchange, Physical


def explain(plan: Physical) -> str:
    """The whole plan as text."""
    parts: list[str] = []
    exchanges = {id(each.prefix): each for each in plan.exchanges()}
    for query, root in plan.roots:
        sink = query.sink.connector
        where = sink.options.get("path", "")
        parts.append(f"query {query.name} -> {query.sink.name} ({sink.format}{' ' + where if where else ''})")
        parts += [f"  {line}" for line in _tree(root, plan, exchanges)]
        parts.append(f"  columns: {', '.join(query.root.schema.names)}")
        parts.append("")
    parts += ["state table:", *_table(plan)]
    return "\n".join(parts)


def _tree(node: Node, plan: Physical, exchanges: dict[int, Exchange]) -> Iterator[str]:
    exchange = exchanges.get(id(node))
    if exchange is not None:
        what = "partials " if exchange.aggregate is not None else ""
        yield f"exchange {what}{_keys(exchange.keys)}    (on Spark: from the low level to the buckets)"
        yield from (f"  {line}" for line in _prefix(node))
        return
    yield _label(node)
    for child in inputs_of(node):
        yield from (f"  {line}" for line in _tree(child, plan, exchanges))


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
        case Aggregate():
            calls = ", ".join(f"{each.function}({each.argument or '*'}) AS {each.name}" for each in node.aggregations)
            by = f" by {', '.join(name for name, _ in node.keys)}" if node.keys else ""
            span = f"range {interval_text(node.window.range)} slide {interval_text(node.window.slide)}"
            return f"window aggregate {calls}{by}, {span}"


def contract_text(contract: TimeContract) -> str:
    """What a stream promises, in words."""
    order = "ordered" if not contract.disorder else f"disorder {interval_text(contract.disorder)}"
    if contract.kind == "external":
        words = f"external time {contract.column}, {order}"
    else:
        words = f"{contract.kind} time" + (f" {contract.column}" if contract.column else "")
    skew = f" skew {interval_text(contract.skew)}" if contract.skew is not None else ""
    return f"{words}, ETS {contract.ets.replace('_', ' ')}{skew}"


def _table(plan: Physical) -> Iterator[str]:
    rows = [("state", "pred", "succ", "rule")]
    for state in state_table(plan.whole()).values():
        before, after = ", ".join(state.predecessors) or "-", ", ".join(state.successors) or "-"
        rows.append((state.node.name, before, after, state.rule_name))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for state_name, before, after, rule in rows:
        yield f"  {state_name:<{widths[0]}}  {before:<{widths[1]}}  {after:<{widths[2]}}  {rule}"
