"""Panes or buffered rows: how a window aggregate keeps what it has seen (004 section 5.5).

With panes a row is reduced to partials at once, shared by all windows that hold it. Rows are kept, and aggregated at
the end, if a pane holds so few of them that partials would be larger, or if an aggregate cannot merge partials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.aggregates.functions import mergeable, partial_bytes
from millrace.plan.nodes.aggregate_nodes import Aggregate, ClockWindow, Window
from millrace.plan.nodes.relational_nodes import scans_of

FLUSH = "lazy_flush(1)"
_LOW_LEVEL_GROUPS = 65_536
"""The low level of an aggregate, where a query asks for one and does not say more."""
_TEXT_BYTES = 32
_SECOND = 1_000_000
_RATED = ("generate", "nexmark")
"""The connectors whose `rate` is in rows per second."""


@dataclass(frozen=True)
class PaneChoice:
    """`buffered` is True if rows are kept instead of partials; `why` says for what reason.

    If it `adapts`, that is the beginning: the aggregate measures both, and goes on with what takes less.
    """

    buffered: bool
    why: str
    adapts: bool = False


def takes_partials(node: Aggregate, options: Mapping[str, str]) -> bool:
    """True if an aggregate can be given partials that were made before an exchange, or by a low level."""
    return node.window.is_same_for_groups and not pane_choice(node, options).buffered


def low_level(node: Aggregate, options: Mapping[str, str]) -> tuple[int, str] | None:
    """How many groups the table below an aggregate holds, and its flush policy; None where there is no table."""
    flush, groups = options.get("flush"), options.get("low_level_groups")
    if (flush is None and groups is None) or not takes_partials(node, options):
        return None
    return int(groups or _LOW_LEVEL_GROUPS), flush or FLUSH


def can_merge(node: Aggregate) -> bool:
    """True if its windows may share panes: they are the same for all groups, and its functions merge partials."""
    return node.window.is_same_for_groups and all(mergeable(each.function) for each in node.aggregations)


def pane_choice(node: Aggregate, options: Mapping[str, str]) -> PaneChoice:
    """How an aggregate whose windows are the same for all groups keeps what it has seen."""
    for each in node.aggregations:
        if not mergeable(each.function):
            name = each.function if isinstance(each.function, str) else each.function.name
            return PaneChoice(True, f"{name} cannot merge partials")
    asked = options.get("panes", "auto")
    if asked != "auto":
        return PaneChoice(asked == "off", f"panes = {asked}")
    given = node.input.schema
    partial = sum(
        partial_bytes(each.function, [one.type_in(given) for one in each.arguments]) for each in node.aggregations
    )
    row = sum(_width(each.type_in(given)) for each in node.expressions()) or 1
    rows = _rows_per_pane(node)
    overlaps = isinstance(node.window, Window | ClockWindow) and node.window.range > node.window.slide
    if rows is None:
        known = f"a partial takes {partial} bytes, a row {row}; the number of rows per pane is "
        return PaneChoice(False, known + ("measured while it runs" if overlaps else "not known"), overlaps)
    words = f"a pane holds {rows:g} rows of {row} bytes, a partial takes {partial}"
    is_tumbling = not isinstance(node.window, Window) or node.window.range == node.window.slide
    return PaneChoice(rows * row < partial and not is_tumbling, words, overlaps)


def _rows_per_pane(node: Aggregate) -> float | None:
    """How many rows a pane holds, where that is known: by count, or by the rates of sources that say them."""
    if not isinstance(node.window, Window):
        return None
    width = math.gcd(node.window.range, node.window.slide)
    if node.window.unit == "rows":
        return width
    sources = [each.stream.connector for each in scans_of(node)]
    rates = [each.options.get("rate") if each.format in _RATED else None for each in sources]
    if not rates or None in rates:
        return None
    return sum(float(rate) for rate in rates if rate is not None) * width / _SECOND


def _width(kind: pa.DataType) -> int:
    return kind.bit_width // 8 or 1 if pa.types.is_primitive(kind) else _TEXT_BYTES
