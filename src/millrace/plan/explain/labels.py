"""The words of `explain` for nodes, windows and time contracts."""

from __future__ import annotations

from collections.abc import Sequence

from millrace.kernel.elements import PARTITION
from millrace.kernel.progress.open_windows import open_windows
from millrace.kernel.progress.time_contract import LATE, QUARANTINED, SEQUENCE, TimeContract
from millrace.plan.explain.join_labels import following_label, join_label, rows_join_label, table_join_label
from millrace.plan.explain.time_text import clock_text, interval_text
from millrace.plan.explain.update_labels import queue_label, update_join_label
from millrace.plan.nodes import aggregate_nodes as windows
from millrace.plan.nodes import relational_nodes as relational
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.table_nodes import TableJoin
from millrace.plan.nodes.update_nodes import AnyQueue, AnyUpdateJoin, MarkedAggregate


def label(node: Node) -> str:
    """What a node does, in words; the options of its query can say more."""
    match node:
        case relational.Scan():
            return f"stream {node.stream.name}: {contract_text(node.stream.time)}{_outlet_text(node)}"
        case relational.Filter():
            return f"filter {node.predicate}"
        case relational.Project():
            columns = ", ".join(name if str(each) == name else f"{each} AS {name}" for name, each in node.columns)
            return f"project {columns or '(time alone)'}"
        case relational.Explode():
            kept = ", also of rows without one" if node.outer else ""
            return f"explode {node.array}: a row per element{kept}"
        case TableJoin():
            return table_join_label(node)
        case relational.Union():
            return "union, order-agnostic: rows pass as they arrive, the bound is the least of all inputs"
        case relational.Numbered():
            return "number: by time, then input, then order in the input"
        case relational.OrderByColumns(further=further):
            order = ", ".join(name + (" DESC" if falls else "") for name, falls in further)
            return f"order by time, then {order}: a row leaves when no input can send one of its time"
        case relational.OrderByTime():
            return "order by time: a row leaves when no input can send an earlier one"
        case relational.Since():
            return f"rows from {clock_text(node.time, exact=True)} on"
        case relational.Released():
            return "released: each row with the promise that let it leave"
        case relational.RollUp():
            return "roll up: promises per group become one bound, the least of all groups seen"
        case relational.RowSlack():
            return f"slack {node.rows} rows: the bound is made of the rows, and rows below it are late"
        case relational.Slack():
            return f"slack {interval_text(node.slack)}: the bound is made of the rows, and rows below it are late"
        case relational.Distinct():
            return "distinct: forgets a row when the bound passes its time"
        case relational.Rank():
            order = ", ".join(name + (" DESC" if descending else "") for name, descending in node.order)
            limit = "" if node.limit is None else f", up to {node.limit}"
            return f"{node.function} among rows of equal time{_by(node.partition)}, ordered by {order}{limit}"
        case Join():
            return join_label(node)
        case RowsJoin():
            return rows_join_label(node)
        case Following():
            return following_label(node)
        case AnyUpdateJoin():
            return update_join_label(node)
        case AnyQueue():
            return queue_label(node, {})
        case MarkedAggregate():
            return f"{label(node.aggregate)}, of the windows that the queue has committed to"
        case windows.Aggregate():
            calls = ", ".join(_call_text(each) for each in node.aggregations)
            return f"window aggregate {calls}{_by([name for name, _ in node.keys])}, {_window_text(node.window)}"
    raise AssertionError(node)


def _by(names: Sequence[str]) -> str:
    return f" by {', '.join(names)}" if names else ""


def _outlet_text(scan: relational.Scan) -> str:
    if open_windows(scan.outlet):
        return ", rows below its bound as long as their window is open"
    words = {"": "", SEQUENCE: ", by sequence number", LATE: ", the late rows", QUARANTINED: ", the quarantined rows"}
    return words.get(scan.outlet, f", by {scan.outlet}")


def _call_text(each: windows.Aggregation) -> str:
    function = each.function if isinstance(each.function, str) else each.function.name
    values = ", ".join([*map(str, each.arguments), *map(repr, each.parameters)])
    where = "" if each.where is None else f" FILTER (WHERE {each.where})"
    return f"{function}({values or '*'}){where} AS {each.name}"


def _window_text(window: windows.AnyWindow) -> str:
    match window:
        case windows.Window(unit="rows"):
            return f"rows {window.range} slide {window.slide}"
        case windows.Window():
            unit = window.unit
            origin = f" from {clock_text(window.origin, exact=True, unit=unit)} on" if window.origin else ""
            return f"range {interval_text(window.range, unit)} slide {interval_text(window.slide, unit)}{origin}"
        case windows.ClockWindow():
            size, slide = (_clock_length(each, window) for each in (window.range, window.slide))
            offset = f" offset {interval_text(window.origin)}" if window.origin else ""
            return f"range {size} slide {slide}{offset} at time zone {window.zone}"
        case windows.CalendarWindow():
            return f"each {window.every}"
        case windows.DividedWindow():
            each = f"each {window.count} times {interval_text(window.tick, window.unit)}, towards"
            return f"{each} {clock_text(window.origin, exact=True, unit=window.unit) if window.origin else 'zero'}"
        case windows.InstantWindow():
            return "each instant"
        case windows.PairWindow():
            return f"each pair of {window.first} and {window.second}"
        case windows.SessionWindow():
            merging = ", rows exactly the gap apart together" if window.merges_at_gap else ""
            return f"sessions with a gap of {interval_text(window.gap, window.unit)}{merging}"
        case windows.TrailingWindow(range=None):
            return "a result per row, over all rows of its group up to it"
        case windows.TrailingWindow(range=int() as reach):
            length = f"{reach + 1} rows" if window.unit == "rows" else interval_text(reach, window.unit)
            return f"a result per row, over the last {length}"
        case windows.PartitionedRows():
            often = "a result per row" if window.slide is None else f"a result every {window.slide} rows"
            return f"{often}, over the last {window.rows} rows of its group"
    raise AssertionError(window)


def _clock_length(length: int, window: windows.ClockWindow) -> str:
    if not window.months:
        return interval_text(length)
    return "1 MONTH" if length == 1 else f"{length} MONTHS"


# Time contracts


def contract_text(contract: TimeContract) -> str:
    """What is known of a stream's time: its kind, its order, how its bound advances, and how far ahead rows may be."""
    what = "time" if contract.unit == "time" else "number"
    words = f"{contract.kind} {what}" + (f" {contract.column}" if contract.column else "")
    if contract.kind == "external":
        words += f", {_order_text(contract)}"
    if contract.kind == "latent":
        return words
    guard = f", {_guard_text(contract)}" if contract.max_future_skew is not None else ""
    return f"{words}, {_ets_text(contract)}{guard}"


def tuning_texts(contract: TimeContract) -> dict[str, str]:
    """What of a time contract may change under saved state, in words: order, ETS, and how far ahead rows may be."""
    return {"order": _order_text(contract), "ets": _ets_text(contract), "max_future_skew": _guard_text(contract)}


def _guard_text(contract: TimeContract) -> str:
    guard = contract.max_future_skew
    return "no limit ahead" if guard is None else f"at most {interval_text(guard)} ahead"


def _order_text(contract: TimeContract) -> str:
    if contract.punctuation is not None:
        per = f" for each {', '.join(contract.per)}" if contract.per else ""
        order = f"punctuated by {contract.punctuation}{per}"
    elif contract.rows is not None:
        order = f"disorder {contract.rows} {'ROW' if contract.rows == 1 else 'ROWS'}"
    else:
        order = f"disorder {interval_text(contract.disorder, contract.unit)}" if contract.disorder else "ordered"
    if contract.partitions:
        order += f" in each partition of {', '.join(contract.partitions).replace(PARTITION, 'its source')}"
    order += f", {len(contract.declared)} declared" if contract.declared else ""
    if (listed := contract.listed_in) is not None:
        order += f", declared in table {listed.name} ({', '.join(listed.columns)})"
    order += f", grace {interval_text(contract.grace, contract.unit)}" if contract.grace is not None else ""
    also = [
        f"{column} {f'disorder {interval_text(length, contract.unit)}' if length else 'ordered'}"
        for column, length in contract.also
    ]
    return order + "".join(f", also {each}" for each in also)


def _ets_text(contract: TimeContract) -> str:
    kind = "every" if contract.ets == "periodic" else contract.ets.replace("_", " ")
    lengths = (("", contract.every), ("skew ", contract.skew), ("lull ", contract.lull))
    return " ".join(["ETS", kind, *(f"{word}{interval_text(each)}" for word, each in lengths if each is not None)])
