"""Queries over streams that are LATE BY WINDOW: each reads the rows that its windows can still take.

Rules:
- An aggregate over windows that follow each other reads the outlet of these windows.
- Windows that overlap are cut into as many aggregates as hold a row, each over windows that follow each other: so a row
  counts in those of its windows that are open, and in no other.
- A query without state reads every row. All others are refused: their rows have no window that says what is late.
"""

from __future__ import annotations

from dataclasses import replace

from millrace.errors import Place, QueryError
from millrace.kernel.progress.open_windows import ALWAYS, outlet_of
from millrace.kernel.progress.time_contract import ASIDE
from millrace.plan.nodes.aggregate_nodes import (
    Aggregate,
    AnyWindow,
    CalendarWindow,
    ClockWindow,
    DividedWindow,
    InstantWindow,
    Window,
)
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Explode, Filter, Project, Scan, Union
from millrace.plan.nodes.table_nodes import TableJoin

_MOST_OVERLAPPING = 64
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def with_open_windows(node: Node, place: Place | None) -> Node:
    """The tree with streams that are LATE BY WINDOW read by the outlets of its windows."""
    if not _late_by_window(node):
        return node
    if isinstance(node, Aggregate) and _is_stateless(node.input):
        return _aggregate(node, place)
    if _is_stateless(node):
        return _reading(node, ALWAYS)
    if _is_stateful(node) and any(_is_stateless(each) for each in node.children() if _late_by_window(each)):
        raise _refusal(node, "only windows can say which of its rows are late", place)
    return node.map_children(lambda each: with_open_windows(each, place))


def _late_by_window(node: Node) -> bool:
    return any(
        each.stream.time.late_by_window and each.outlet not in ASIDE for each in walk(node) if isinstance(each, Scan)
    )


def _is_stateless(node: Node) -> bool:
    return all(isinstance(each, Scan | Filter | Project | Explode | TableJoin | Union) for each in walk(node))


def _is_stateful(node: Node) -> bool:
    return not isinstance(node, Scan | Filter | Project | Explode | TableJoin | Union)


def _aggregate(node: Aggregate, place: Place | None) -> Node:
    window = node.window
    if isinstance(window, InstantWindow):
        return node
    if isinstance(window, Window | ClockWindow) and _can_be_cut(window) and window.slide < window.range:
        return _overlapping(node, window, place)
    outlet = _outlet(window)
    if outlet is None:
        gaps = isinstance(window, Window) and window.unit != "rows"
        kind = "a window that leaves rows out" if gaps else window.sql_name
        raise _refusal(node, f"{kind} cannot say for every row when it is late", place)
    return replace(node, input=_reading(node.input, outlet))


def _can_be_cut(window: Window | ClockWindow) -> bool:
    """True if windows that overlap are several times windows that follow each other, by lengths of time or numbers."""
    return not window.months if isinstance(window, ClockWindow) else window.unit != "rows"


def _overlapping(node: Aggregate, window: Window | ClockWindow, place: Place | None) -> Node:
    count, rest = divmod(window.range, window.slide)
    if rest or count > _MOST_OVERLAPPING:
        raise _refusal(node, f"RANGE must be a multiple of SLIDE, at most {_MOST_OVERLAPPING} times as long", place)
    origins = [window.origin + number * window.slide for number in range(count)]
    parts = [replace(window, slide=window.range, origin=origin % window.range) for origin in origins]
    return Union(tuple(_aggregate(replace(node, window=part), place) for part in parts))


def _outlet(window: AnyWindow) -> str | None:
    match window:
        case Window(range=length, slide=slide, origin=origin, unit="time" | "number") if length == slide:
            return outlet_of("range", length, origin)
        case ClockWindow(range=length, slide=slide, origin=origin, zone=zone, months=months) if length == slide:
            return outlet_of("clock", length, origin, int(months), zone=zone)
        case CalendarWindow(every=every):
            return outlet_of("calendar", _MONTHS[every])
        case DividedWindow(tick=tick, count=count, origin=origin):
            return outlet_of("divided", tick, count, origin)
    return None


def _reading(node: Node, outlet: str) -> Node:
    if isinstance(node, Scan):
        return replace(node, outlet=outlet) if node.stream.time.late_by_window and not node.outlet else node
    return node.map_children(lambda each: _reading(each, outlet))


def _refusal(node: Node, why: str, place: Place | None) -> QueryError:
    scans = (each for each in walk(node) if isinstance(each, Scan) and each.stream.time.late_by_window)
    return QueryError(
        f'stream "{next(scans).stream.name}" is LATE BY WINDOW, and this query cannot read it: {why}',
        hint="Use a window such as [RANGE 1 MINUTE SLIDE 1 MINUTE], or declare the stream without LATE BY WINDOW.",
        place=place,
    )
