"""Counts that are part of the kernel's result; hosts only export them."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.kernel.elements import ARRIVED, Batch, Microseconds, column_times


@dataclass(slots=True)
class NodeMetrics:
    """What went through one node."""

    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    peak_held: int = 0


@dataclass(slots=True)
class SinkMetrics:
    """What left through one sink; latency only where rows carry their arrival."""

    rows: int = 0
    timed_rows: int = 0
    latency_sum: Microseconds = 0
    latency_max: Microseconds = 0

    def count(self, batch: Batch, now: Microseconds) -> None:
        """Take a delivered batch into account."""
        self.rows += len(batch)
        if ARRIVED in batch.rows.schema.names:
            latency = now - column_times(batch.rows, ARRIVED)
            self.timed_rows += len(latency)
            self.latency_sum += int(latency.sum())
            self.latency_max = max(self.latency_max, int(latency.max()))


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """The accounting of one stream: received = admitted + late + quarantined."""

    received: int
    late: int
    quarantined: int
    bound: Microseconds
    greatest: Microseconds
    enabled: int

    @property
    def admitted(self) -> int:
        """Rows let in."""
        return self.received - self.late - self.quarantined


@dataclass(frozen=True, slots=True)
class Metrics:
    """A snapshot of a graph at work."""

    sources: dict[str, SourceMetrics]
    nodes: dict[str, NodeMetrics]
    sinks: dict[str, SinkMetrics]
    held: dict[str, int]
    state_bytes: dict[str, int]
