"""How far streams have come, as a run saves it, and where a query starts that joins them.

Rules:
- A query starts one microsecond after the greatest time seen on its streams: no row from there on has been admitted.
- What an operator has emitted is below that, or below the bound of a stream: bounds may be ahead of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.progress.time_contract import ASIDE, SEQUENCE
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Scan, scans_of

StreamProgress = Mapping[str, Mapping[str, Any]]
"""What `Ingress.save` or `Ingress.progress` gives, by stream; without streams that no query has read."""
StartPoints = tuple[Microseconds, tuple[tuple[str, Microseconds], ...]]
"""Where a query starts: a time of its streams, and for each outlet that it reads a point of its own."""

_KEPT = ("greatest", "bound", "sequence")


def start_of(query: Query, points: StreamProgress) -> StartPoints:
    """Where a query starts that joins now: after all that has been seen on the streams that it shares with others."""
    scans = [each for each in scans_of(query.root) if each.has_other_time]
    found = {each.source: _outlet_start(points.get(each.stream.name), each.outlet) for each in scans}
    for outlet in {each.outlet for each in scans} - {SEQUENCE}:
        # Inputs of a union by a further column start together, as those by their own time do.
        sources = [each.source for each in scans if each.outlet == outlet]
        found |= dict.fromkeys(sources, max(found[source] for source in sources))
    return _start(_of(query, points)), tuple(found.items())


def unreached(query: Query, points: StreamProgress) -> Microseconds:
    """A time that neither rows nor bounds of a query's streams have reached yet."""
    streams = _of(query, points)
    return max([_start(streams), *(each["bound"] for each in streams)])


def unreached_points(network: QueryNetwork, points: StreamProgress) -> dict[str, Microseconds]:
    """By source a point that neither rows nor bounds have reached yet; rows set aside have been passed."""
    return {
        scan.source: max(start, bounds_of(network, points).get(scan.source, NO_BOUND))
        for query in network.queries
        for scan in scans_of(query.root)
        if scan.outlet not in ASIDE
        for start in [_scan_start(scan, points)]
    }


def _scan_start(scan: Scan, points: StreamProgress) -> Microseconds:
    point = points.get(scan.stream.name)
    if scan.has_other_time:
        return _outlet_start(point, scan.outlet)
    return _start([] if point is None else [point])


def bounds_of(network: QueryNetwork, points: StreamProgress) -> dict[str, Microseconds]:
    """By source its bound; the number of rows is that of a sequence."""
    found: dict[str, Microseconds] = {}
    for scan in (each for query in network.queries for each in scans_of(query.root)):
        point = points.get(scan.stream.name)
        if point is None:
            continue
        edge = point["outlets"].get(scan.outlet, point) if scan.has_other_time else point
        found[scan.source] = int(point["sequence"] if scan.outlet == SEQUENCE else edge["bound"])
    return found


def reduced(points: StreamProgress) -> dict[str, dict[str, Any]]:
    """The part of streams' progress that decides where queries start, as plain data."""
    return {
        name: {**{each: point[each] for each in _KEPT}, "outlets": reduced(point.get("outlets", {}))}
        for name, point in points.items()
    }


def _of(query: Query, points: StreamProgress) -> list[Mapping[str, Any]]:
    return [points[stream.name] for stream in QueryNetwork((query,)).streams() if stream.name in points]


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
