"""Which column of a relation's rows holds their time, as its plan tells."""

from __future__ import annotations

from millrace.plan.nodes import network as nodes


def outermost(root: nodes.Node) -> nodes.Aggregate | None:
    """The aggregate whose results the rows are, if they are."""
    found = [each for each in nodes.walk(root) if isinstance(each, nodes.Aggregate)]
    return found[-1] if found else None


def time_column(root: nodes.Node) -> str | None:
    """The name of the time column: a bound of an aggregate's window, or as its stream declares it, if it does."""
    aggregate = outermost(root)
    if aggregate is not None:
        return _time_of(aggregate)
    scan = next(each for each in nodes.walk(root) if isinstance(each, nodes.Scan))
    return scan.stream.time.column


def ends_windows(root: nodes.Node) -> bool:
    """Whether the rows are results of windows that have an end, and are looked for from that end on."""
    aggregate = outermost(root)
    return aggregate is not None and not isinstance(aggregate.window, nodes.InstantWindow | nodes.TrailingWindow)


def _time_of(aggregate: nodes.Aggregate) -> str:
    """The column of an aggregate's results that grows with their time."""
    match aggregate.window:
        case nodes.InstantWindow():
            return aggregate.keys[0][0]
        case nodes.SessionWindow() | nodes.TrailingWindow():
            return nodes.WINDOW_END
        case _:
            return nodes.WINDOW_START
