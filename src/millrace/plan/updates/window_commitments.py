"""Which windows of an update query a queue commits to, one key after another (002 section 6)."""

from __future__ import annotations

from typing import TypeGuard

from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, Window
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import below_maps
from millrace.plan.updates.update_keys import reads_updates


def committed(root: Node) -> tuple[Aggregate, ...]:
    """The aggregates at the top of an update query whose windows a queue commits to: one, or two in a chain.

    Windows of others are all computed, and a queue above them holds the newest result of each key.
    """
    upper = below_maps(root)
    if not isinstance(upper, Aggregate) or not _slides(upper.window) or not reads_updates(upper):
        return ()
    lower = below_maps(upper.input)
    if not isinstance(lower, Aggregate):
        return (upper,)
    single = not any(isinstance(each, Aggregate) for each in walk(lower.input))
    return (upper, lower) if single and _is_made_of(upper.window, lower.window) else ()


def _slides(window: AnyWindow) -> TypeGuard[Window]:
    return isinstance(window, Window) and window.unit != "rows"


def _is_made_of(upper: AnyWindow, lower: AnyWindow) -> bool:
    """True if each upper window holds whole lower windows: no row of these is in a lower window that ends elsewhere."""
    if not _slides(upper) or not _slides(lower):
        return False
    offset = upper.origin - lower.origin - lower.range
    return lower.slide <= lower.range and not any(each % lower.slide for each in (upper.range, upper.slide, offset))
