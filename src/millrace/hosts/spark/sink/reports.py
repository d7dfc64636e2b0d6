"""The reports of a batch's buckets, merged into the batch's record.

Rules:
- The progress of a source only grows: the greatest number wins. The state of its order changes when rows of it were
  read, and is else that of the record before. A source that no report names has left the network; if it comes back, it
  is read from its beginning.
- Metrics are counts of the batch: they add up. Every bucket counts the operators below the exchanges, so that the
  greatest count is the newest. Tasks that have no bucket report nothing else, and no clock.
- The network is woken when the first of its buckets asks for it, and waits for the least bound of a port that one of
  them waits for. What its queues hold back are the rows that all of them could release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millrace.hosts.spark.stage import bucket_queues
from millrace.hosts.why import lag

Report = Mapping[str, Any]

_STANDING = ("lag", "queues", "queued", "bounds", "buckets", "releases", "low")
"""What stays as the record before it said, where no bucket has told of itself."""

_RECENT = 20
"""How many releases of a query the record of a batch has."""


def merge(before: Report | None, reports: Sequence[Report]) -> dict[str, Any]:
    """The batch's share of a commit record, given the record before it and the reports of its buckets.

    >>> merge(None, [{"sources": {"a": {"files": 1}}, "wake_at": 9, "now": 5}, {"wake_at": None, "now": 4}])
    {'sources': {'a': {'files': 1}}, 'wake_at': 9, 'wants': {}, 'metrics': {}, 'now': 5, 'plan': 0}
    """
    earlier, told = before or {}, [report for report in reports if "now" in report]
    named = {stream for report in told for stream in report.get("sources") or {}}
    sources: Any = {
        stream: known for stream, known in earlier.get("sources", {}).items() if stream in named or not told
    }
    metrics: Any = {}
    for report in reports:
        metrics = _joined(metrics, report.get("metrics") or {}, lambda one, other: one + other)
    wants: Any = {} if told else earlier.get("wants", {})
    bounds: Any = {}
    low: Any = {}
    for report in told:
        bounds = _joined(bounds, report.get("bounds") or {}, min)
        low = _joined(low, report.get("low") or {}, max)
        sources = _joined(sources, report.get("sources") or {}, max)
        wants = _joined(wants, report.get("wants") or {}, min)
    for stream, known in earlier.get("sources", {}).items():
        if "order" in known and stream in sources and sources[stream]["files"] == known["files"]:
            sources[stream]["order"] = known["order"]
    wakes = [report["wake_at"] for report in told if report.get("wake_at") is not None]
    wake_at = min(wakes, default=None) if told else earlier.get("wake_at")
    now, plan = (max(report.get(name) or 0 for report in [earlier, *told]) for name in ("now", "plan"))
    record: dict[str, Any] = {
        "sources": sources,
        "wake_at": wake_at,
        "wants": wants,
        "metrics": metrics,
        "now": now,
        "plan": plan,
    }
    if not told:
        return {
            **record,
            **{name: earlier[name] for name in _STANDING if name in earlier},
        }
    shares = [report["lag"] for report in told if "lag" in report]
    held = bucket_queues.merged(report.get("queues", {}) for report in told)
    if shares:
        record["lag"] = lag.merge(shares)
    if bounds:
        record["bounds"] = bounds
    if low:
        record["low"] = low
    if told_releases := _releases(earlier, told):
        record["releases"] = told_releases
    if filled := [each["metrics"] for each in told if "state_bytes" in each.get("metrics", {})]:
        record["buckets"] = [{name: each[name] for name in ("held", "state_bytes")} for each in filled]
    if held:
        record |= {"queues": held, "queued": sum(report["queued"] for report in told)}
    return record


def _releases(earlier: Report, told: Sequence[Report]) -> dict[str, Any]:
    """By query what has released its rows of late, in this batch and before."""
    found = {query: list(past) for query, past in earlier.get("releases", {}).items()}
    for query in dict.fromkeys(query for report in told for query in report.get("releases", {})):
        new = [each for report in told for each in report.get("releases", {}).get(query, [])]
        found[query] = [*found.get(query, []), *sorted(new, key=lambda each: each["at"])][-_RECENT:]
    return found


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
