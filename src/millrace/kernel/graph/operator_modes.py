"""What operators report: the counts of each; by query, the mode of those that choose between two ways of working."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import GraphNode, sinks_below
from millrace.kernel.metrics import OperatorMetrics
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


def operator_metrics(
    node: GraphNode, now: Microseconds, queries: Mapping[str, Sequence[str]] | None = None
) -> OperatorMetrics:
    """An operator at a moment; `queries` names those of sinks that are none."""
    assert node.operator is not None, "a source or a sink does no work"
    counts, sinks = node.metrics, sinks_below(node)
    return OperatorMetrics(
        tuple(sorted({query for sink in sinks for query in (queries or {}).get(sink, [sink])})),
        counts.rows_in,
        counts.rows_out,
        counts.punctuations_in,
        counts.punctuations_out,
        counts.cost,
        counts.idle_at(now),
        sum(arc.rows for arc in node.inputs),
        node.operator.held,
        node.operator.state_bytes,
        node.bound,
    )
