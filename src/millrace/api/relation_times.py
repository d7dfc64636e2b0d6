"""The column that holds the time of a relation's rows, found in its plan."""

from __future__ import annotations

from millrace.plan.nodes.aggregate_nodes import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    InstantWindow,
    SessionWindow,
    TrailingWindow,
)
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Scan


def outermost(root: Node) -> Aggregate | None:
    """The aggregate whose results the rows are; None if they are no results of an aggregate."""
    found = [each for each in walk(root) if isinstance(each, Aggregate)]
    return found[-1] if found else None


def time_column(root: Node) -> str | None:
    """The name of the time column: a bound of an aggregate's window, or that of the stream; None if it has none."""
    aggregate = outermost(root)
    if aggregate is not None:
        return _time_of(aggregate)
    scan = next(each for each in walk(root) if isinstance(each, Scan))
    return scan.stream.time.column


def ends_windows(root: Node) -> bool:
    """True if the rows are results of windows that have an end, which an as-of join matches by that end."""
    aggregate = outermost(root)
    return aggregate is not None and not isinstance(aggregate.window, InstantWindow | TrailingWindow)


def _time_of(aggregate: Aggregate) -> str:
    """The column of an aggregate's results that grows with their time."""
    match aggregate.window:
        case InstantWindow():
            return aggregate.keys[0][0]
        case SessionWindow() | TrailingWindow():
            return WINDOW_END
        case _:
            return WINDOW_START
