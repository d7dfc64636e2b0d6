"""What the joins and aggregates of buckets say of themselves, as plain data whose numbers add up over buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from millrace.kernel.metrics import AggregateMetrics, JoinMetrics

_Modal = TypeVar("_Modal", JoinMetrics, AggregateMetrics)


def mode_reports(found: Mapping[str, _Modal], crossing: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What one bucket tells by query; `crossing` says which query a port to a later level belongs to."""
    told = {}
    for title, metrics in found.items():
        sink, number, which = title.partition("#")
        counts = {name: count for name, count in asdict(metrics).items() if name != "mode"}
        told[f"{crossing.get(sink, sink)}{number}{which}"] = {**counts, "modes": {metrics.mode: 1}}
    return told


def modes_of(kind: type[_Modal], told: Mapping[str, Mapping[str, Any]]) -> dict[str, _Modal]:
    """The metrics by query as all buckets told them; the mode is that of most.

    >>> modes_of(AggregateMetrics, {"q": {"modes": {"rows": 1, "panes": 2}, "switches": 2}})
    {'q': AggregateMetrics(mode='panes', switches=2)}
    """
    return {
        title: kind(mode=max(each["modes"], key=each["modes"].get), **{k: v for k, v in each.items() if k != "modes"})
        for title, each in told.items()
    }
