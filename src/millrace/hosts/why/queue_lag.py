"""Queries whose queues are behind: found in a graph, and put together over the graphs of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from millrace.hosts.why.waits import Queued
from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.executor import Executor

_A_WHILE = 100_000
"""Microseconds: what has just come into a queue is not behind."""


def queues_behind(executor: Executor, sinks: Mapping[str, Iterable[str]], now: Microseconds) -> dict[str, Any]:
    """By sink what waits in queues, if it has waited for a while; `sinks` says by queue which ones it leads to."""
    found = []
    for name, queue in executor.queue_gate.queues().items():
        seen = queue.queue_metrics(now)
        if seen.waiting and seen.oldest >= _A_WHILE:
            queued = Queued(seen.waiting, seen.oldest, queue.by_key)
            found += [(sink, queued) for sink in sinks[name]]
    return {name: asdict(each) for name, each in together(found).items()}


def together(found: Iterable[tuple[str, Queued]]) -> dict[str, Queued]:
    """What waits under each name.

    >>> together([("q", Queued(2, 50)), ("q", Queued(1, 70))])
    {'q': Queued(waiting=3, oldest=70, keyed=True)}
    """
    queries: dict[str, Queued] = {}
    for name, each in found:
        queries[name] = queries[name] + each if name in queries else each
    return queries
