"""How a run ends, and what it says of itself while it goes on and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from millrace.kernel.metrics import Metrics, SourceMetrics

Ending = Literal["stopped", "available", "end"]
"""Goes on until stopped; processes what is there and leaves windows open; takes the end of files as the end."""


@dataclass(frozen=True)
class Report:
    """A run at a moment: the accounting of each stream, result rows of each query, rows held, and steps made."""

    sources: dict[str, SourceMetrics]
    results: dict[str, int]
    held: int = 0
    state_bytes: int = 0
    elapsed: float = 0.0
    steps: int = 0
    """Checkpoints on the local host, micro-batches on Spark, events in virtual time."""
    earlier: int = 0
    """Rows that earlier runs on the same checkpoint had received."""
    turned_away: int = 0
    """Rows that were on time for their stream, but not for a query that makes its bounds of them (roll-up, slack)."""
    profile: Mapping[str, Any] | None = None
    """Where the time of micro-batches on Spark went, if that was asked for."""

    @classmethod
    def of(cls, metrics: Metrics, results: dict[str, int], elapsed: float, steps: int, earlier: int = 0) -> Report:
        """A report of what the kernel counted."""
        held, size = sum(metrics.held.values()), sum(metrics.state_bytes.values())
        turned_away = sum(metrics.turned_away.values())
        return cls(metrics.sources, results, held, size, elapsed, steps, earlier, turned_away)

    @property
    def received(self) -> int:
        """Rows received on all streams."""
        return sum(source.received for source in self.sources.values())


OnProgress = Callable[[Report], None]
OnResults = Callable[[str, pa.Table], None]


@dataclass
class Listeners:
    """Who wants to hear of a run: a progress line, and results as they come."""

    progress: OnProgress = field(default=lambda report: None)
    results: OnResults = field(default=lambda query, rows: None)
