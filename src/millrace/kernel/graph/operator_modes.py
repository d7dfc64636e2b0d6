"""What operators that choose between two ways of working say of themselves, by query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from millrace.kernel.graph.graph import GraphNode, sinks_below
from millrace.kernel.operator import Operator

_Told = TypeVar("_Told")


def by_query(nodes: Iterable[GraphNode], told: Callable[[Operator], _Told | None]) -> dict[str, _Told]:
    """What some operators say: under each query that they lead to, numbered from the second on.

    >>> by_query([], lambda operator: operator.join_metrics())
    {}
    """
    found: dict[str, _Told] = {}
    count: dict[str, int] = {}
    for node in nodes:
        metrics = None if node.operator is None else told(node.operator)
        if metrics is None:
            continue
        for query in sorted(sinks_below(node)):
            count[query] = number = count.get(query, 0) + 1
            found[query if number == 1 else f"{query}#{number}"] = metrics
    return found
