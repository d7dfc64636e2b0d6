"""What the joins of a graph say of themselves, by query."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.kernel.graph.graph import GraphNode, sinks_below
from millrace.kernel.metrics import JoinMetrics


def joins_of(nodes: Iterable[GraphNode]) -> dict[str, JoinMetrics]:
    """The joins whose results leave in order: under each query that they lead to, numbered from the second on.

    >>> joins_of([])
    {}
    """
    found: dict[str, JoinMetrics] = {}
    count: dict[str, int] = {}
    for node in nodes:
        metrics = None if node.operator is None else node.operator.join_metrics()
        if metrics is None:
            continue
        for query in sorted(sinks_below(node)):
            count[query] = number = count.get(query, 0) + 1
            found[query if number == 1 else f"{query}#{number}"] = metrics
    return found
