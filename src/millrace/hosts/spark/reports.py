"""What the buckets of a batch report, as one.

Rules:
- What is known of a source only grows: the greatest number wins, and a source that no report names keeps its entry.
- Metrics are counts of the batch: they add up.
- The network wants to be woken when the first of its buckets does, and waits for the least bound of a port that one
  of them waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]


def merge(before: Report | None, reports: Sequence[Report]) -> dict[str, Any]:
    """The batch's share of a commit record, given the record before it and the reports of its buckets.

    >>> merge(None, [{"sources": {"a": {"files": 1}}, "wake_at": 9, "now": 5}, {"wake_at": None, "now": 4}])
    {'sources': {'a': {'files': 1}}, 'wake_at': 9, 'wants': {}, 'metrics': {}, 'now': 5}
    """
    earlier = before or {}
    sources: Any = dict(earlier.get("sources", {}))
    metrics: Any = {}
    wants: Any = {} if reports else earlier.get("wants", {})
    for report in reports:
        sources = _joined(sources, report.get("sources") or {}, max)
        metrics = _joined(metrics, report.get("metrics") or {}, lambda one, other: one + other)
        wants = _joined(wants, report.get("wants") or {}, min)
    wakes = [report["wake_at"] for report in reports if report.get("wake_at") is not None]
    wake_at = min(wakes, default=None) if reports else earlier.get("wake_at")
    now = max([report.get("now") or 0 for report in [earlier, *reports]])
    return {"sources": sources, "wake_at": wake_at, "wants": wants, "metrics": metrics, "now": now}


def _joined(one: Any, other: Any, numbers: Callable[[Any, Any], Any]) -> Any:
    """Two trees of values as one: numbers are joined by `numbers`, of other values the later one wins."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [*one, *(name for name in other if name not in one)]
        return {name: _joined(one.get(name), other.get(name), numbers) for name in names}
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, int | float) and isinstance(other, int | float):
        return numbers(one, other)
    return other
