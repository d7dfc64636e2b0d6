"""What operators say of themselves in the tasks of a micro-batch, as plain data whose numbers add up.

Rules:
- A bucket tells of its own operators; tasks that read a stream tell every bucket of those below the exchanges.
- The least bound of all buckets counts, so it is told apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.graph.graph import GraphNode
from millrace.kernel.graph.operator_modes import operator_metrics
from millrace.kernel.metrics import OperatorMetrics

Told = Mapping[str, Mapping[str, Any]]
"""By the name of an operator its counts."""


def meter() -> Microseconds:
    """What the work of operators is measured by: the clock of a micro-batch stands still."""
    return time.perf_counter_ns() // 1_000


def operator_reports(nodes: Iterable[GraphNode], now: Microseconds, queries: Mapping[str, Sequence[str]]) -> Told:
    """What each operator of a graph says of itself; `queries` names those of each port."""
    found = {node.name: asdict(operator_metrics(node, now, queries)) for node in nodes}
    return {name: {k: v for k, v in each.items() if k != "bound"} for name, each in found.items()}


def counts_with(before: Told, told: Sequence[Told]) -> Told:
    """The counts so far with those of some tasks, of the operators that the last of these still has.

    >>> counts_with(
    ...     {"a": {"queries": ["q"], "rows_in": 1}, "gone": {"rows_in": 2}}, [{"a": {"queries": ["q"], "rows_in": 4}}]
    ... )
    {'a': {'queries': ['q'], 'rows_in': 5}}
    """
    all_told = [before, *told]
    return {
        name: {
            key: value if key == "queries" else sum(each[name][key] for each in all_told if name in each)
            for key, value in newest.items()
        }
        for name, newest in told[-1].items()
    }


def metrics_of(told: Sequence[Told], bounds: Mapping[str, int]) -> dict[str, OperatorMetrics]:
    """Each operator as all tasks told of it, given the least bound of each."""
    return {
        name: OperatorMetrics(**{**each, "queries": tuple(each["queries"])}, bound=bounds.get(name, NO_BOUND))
        for operators in told
        for name, each in operators.items()
    }
