"""How far streams have come, as a run keeps it, and where a query starts that joins them.

Rules:
- A query starts one microsecond after the greatest time that its streams have shown: no such row has passed the edge.
- What an operator has given before is below that, or below the bound of a stream: bounds may be ahead of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import Network, Query
from millrace.plan.nodes.relational_nodes import Scan

Points = Mapping[str, Mapping[str, Any]]
"""What `Ingress.save` or `Ingress.progress` gives, by stream; a stream that nobody has read is not among them."""
Outlets = tuple[tuple[str, Microseconds], ...]
Starts = tuple[Microseconds, Outlets]
"""Where a query starts: a time of its streams, and points of the outlets that it reads."""

_KEPT = ("greatest", "bound", "sequence")


def start_of(query: Query, points: Points) -> Starts:
    """Where a query starts that joins now: after all that the streams it shares with others have seen."""
    scans = [each for each in walk(query.root) if isinstance(each, Scan) and each.outlet]
    found = {each.source: _outlet_start(points.get(each.stream.name), each.outlet) for each in scans}
    for outlet in {each.outlet for each in scans} - {SEQUENCE}:
        # Inputs of a union by a further column start together, as those by their own time do.
        sources = [each.source for each in scans if each.outlet == outlet]
        found |= dict.fromkeys(sources, max(found[source] for source in sources))
    return _start(_of(query, points)), tuple(found.items())


def passed(query: Query, points: Points) -> Microseconds:
    """A time that neither rows nor bounds of a query's streams have reached yet."""
    streams = _of(query, points)
    return max([_start(streams), *(each["bound"] for each in streams)])


def reduced(points: Points) -> dict[str, dict[str, Any]]:
    """What of the points decides where queries start, as plain data."""
    return {name: _reduced(point) for name, point in points.items()}


def _reduced(point: Mapping[str, Any]) -> dict[str, Any]:
    outlets = {name: _reduced(outlet) for name, outlet in point.get("outlets", {}).items()}
    return {**{name: point[name] for name in _KEPT}, "outlets": outlets}


def _of(query: Query, points: Points) -> list[Mapping[str, Any]]:
    return [points[stream.name] for stream in Network((query,)).streams() if stream.name in points]


def _start(streams: Iterable[Mapping[str, Any]]) -> Microseconds:
    return max((each["greatest"] + 1 for each in streams if each["greatest"] > NO_BOUND), default=NO_BOUND)


def _outlet_start(point: Mapping[str, Any] | None, outlet: str) -> Microseconds:
    """A point that no row of an outlet has reached yet."""
    if point is None:
        return NO_BOUND
    if outlet == SEQUENCE:
        return int(point["sequence"])
    edge = point["outlets"].get(outlet)
    return _start([] if edge is None else [edge])
