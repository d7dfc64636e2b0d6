"""What the joins of buckets say of themselves, as plain data whose numbers add up over buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from millrace.kernel.metrics import JoinMetrics


def join_reports(joins: Mapping[str, JoinMetrics], crossing: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The joins of one bucket by query; `crossing` says which query a port to a later level belongs to."""
    found = {}
    for title, join in joins.items():
        sink, number, which = title.partition("#")
        counts = {name: count for name, count in asdict(join).items() if name != "mode"}
        found[f"{crossing.get(sink, sink)}{number}{which}"] = {**counts, "modes": {join.mode: 1}}
    return found


def joined_of(told: Mapping[str, Any]) -> JoinMetrics:
    """The metrics of a join as all buckets told them; the mode is that of most.

    >>> joined_of({"modes": {"sync_filter": 1, "filter_order": 2}, "switches": 2, "waiting": 0, "hold": 9})
    JoinMetrics(mode='filter_order', switches=2, waiting=0, hold=9)
    """
    modes = told["modes"]
    return JoinMetrics(max(modes, key=modes.get), told["switches"], told["waiting"], told["hold"])
