"""What bounds the state of a node, in words: how long it keeps what it has seen."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.plan.explain.join_labels import join_notes, names_of, unit_of
from millrace.plan.explain.time_text import interval_text
from millrace.plan.nodes import aggregate_nodes as windows
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node


def state_text(node: Node, options: Mapping[str, str]) -> str:
    """What a node keeps, and until when; nothing for one without state. `options` are those of its query."""
    match node:
        case Join():
            return next(join_notes(node))
        case RowsJoin():
            return _limited("the rows of its windows, per key", options)
        case Following():
            return _following(node, options)
        case windows.Aggregate():
            return _window(node.window, options)
    return node.state_words


def _following(node: Following, options: Mapping[str, str]) -> str:
    answered, looked_up = names_of(node.inputs)
    if node.mode != "recent":
        kept = "until it is used" if node.within is None else f"until it is used, or {_length(node)} old"
        return _limited(
            f"each row of {looked_up} {kept}; rows of {answered} until the bound passes their time", options
        )
    kept = "" if node.within is None else f", up to {_length(node)} old"
    return _limited(
        f"rows of {answered} until the bound passes their time; of {looked_up} the latest per key{kept}", options
    )


def _length(node: Following) -> str:
    assert node.within is not None
    return interval_text(node.within, unit_of(node))


def _window(window: windows.AnyWindow, options: Mapping[str, str]) -> str:
    match window:
        case windows.TrailingWindow(range=None):
            return _limited("a partial result per group", options)
        case windows.TrailingWindow(range=int() as reach):
            length = f"{reach + 1} rows" if window.unit == "rows" else interval_text(reach, window.unit)
            return f"the rows of the last {length}, by the bound"
        case windows.PartitionedRows():
            return _limited(f"the last {window.rows} rows per group", options)
        case windows.SessionWindow():
            return f"a session until the bound is {interval_text(window.gap, window.unit)} past its last row"
        case windows.InstantWindow() | windows.PairWindow():
            return "groups until the bound passes their time"
    return "windows until the bound passes their end"


def _limited(words: str, options: Mapping[str, str]) -> str:
    limit = options.get("state_limit")
    return words if limit is None else f"{words}; at most {int(limit):,} (state_limit)"
