"""How a run ends, and what it says of itself while it goes on and when it is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from millrace.kernel.elements import Microseconds
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import (
    AggregateMetrics,
    JoinMetrics,
    Metrics,
    OperatorMetrics,
    QueueMetrics,
    SourceMetrics,
)
from millrace.plan.explain.html_text import html_table
from millrace.plan.explain.time_text import clock_text

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
    queues: Mapping[str, QueueMetrics] = field(default_factory=dict)
    """The queue of each query that has one; further ones of a query are `name#2` and so on."""
    joins: Mapping[str, JoinMetrics] = field(default_factory=dict)
    """The join of each query whose results leave in order of time; further ones like queues."""
    aggregates: Mapping[str, AggregateMetrics] = field(default_factory=dict)
    """The aggregate of each query that keeps rows or panes; further ones like queues."""
    malformed: Mapping[str, int] = field(default_factory=dict)
    """By query the texts that from_json could not read, if there were any."""
    in_vain: int = 0
    """Rows of as-of joins that have met nothing at all so far, though there are rows to meet."""
    operators: Mapping[str, OperatorMetrics] = field(default_factory=dict)
    """By its name in `explain`; on Spark added up over the tasks that read streams, and over buckets."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds that tasks of micro-batches on Spark have spent in this run, by part (see spark/batch_times.py)."""
    now: int = 0
    """The host's clock, in microseconds."""
    batches: Sequence[Mapping[str, Any]] = ()
    """The last micro-batches on Spark: their length by Spark's parts, our work in tasks, state, buckets."""
    latency: Mapping[str, Latency] = field(default_factory=dict)
    """By query how long rows took from their arrival to the result; on Spark at most, until the commit."""
    arcs: Mapping[tuple[str, str, int], tuple[int, Microseconds]] = field(default_factory=dict)
    """By producer, consumer and input the rows that wait on the arc, and the bound in its register; not on Spark."""

    def __repr__(self) -> str:
        rows = max(self.received - self.earlier, 0)
        lines = [f"{rows:,} rows in {self.elapsed:.1f} s", *map(_stream_text, self.sources.items())]
        return "\n".join([*lines, *(f"  -> {name}: {rows:,} results" for name, rows in self.results.items())])

    def _repr_html_(self) -> str:
        """What a notebook shows: a line per stream and per query, with times as times."""
        streams = [[name, *_stream_counts(source).values()] for name, source in self.sources.items()]
        names = ["stream", *(_stream_counts(next(iter(self.sources.values()))) if self.sources else ())]
        queries = html_table("queries", ["query", "results"], list(self.results.items()))
        return html_table("streams", names, streams) + queries

    @classmethod
    def of(
        cls, metrics: Metrics, results: dict[str, int], elapsed: float, steps: int, earlier: int = 0, now: int = 0
    ) -> Report:
        """A report of what the kernel counted."""
        held = sum(rows for name, rows in metrics.held.items() if name not in metrics.queues)
        size, turned_away = sum(metrics.state_bytes.values()), sum(metrics.turned_away.values())
        queues = {metrics.titles[name]: queue for name, queue in metrics.queues.items()}
        counts = (held, size, elapsed, steps, earlier, turned_away)
        return cls(
            metrics.sources,
            results,
            *counts,
            queues=queues,
            joins=metrics.joins,
            aggregates=metrics.aggregates,
            malformed=metrics.malformed,
            in_vain=sum(each.in_vain for each in metrics.lookups.values()),
            operators=metrics.operators,
            now=now,
            latency={name: sink.latency for name, sink in metrics.sinks.items()},
            arcs=metrics.arcs,
        )

    @property
    def received(self) -> int:
        """Rows received on all streams."""
        return sum(source.received for source in self.sources.values())


def _stream_counts(source: SourceMetrics) -> dict[str, object]:
    """What became of a stream's rows, with times as times."""
    counts = {name: getattr(source, name) for name in ("received", "processed", "late", "quarantined", "buffered")}
    times = {name: clock_text(getattr(source, name), exact=True, unit=source.unit) for name in ("bound", "greatest")}
    return {**counts, **times}


def _stream_text(named: tuple[str, SourceMetrics]) -> str:
    name, source = named
    return f"  {name}: " + ", ".join(f"{what} {value}" for what, value in _stream_counts(source).items())


OnProgress = Callable[[Report], None]
OnResults = Callable[[str, pa.Table], None]
OnWarning = Callable[[str], None]
OnPhase = Callable[[str], None]


@dataclass
class Listeners:
    """The callbacks of a run: with each report, with results as they come, with what goes wrong and stops nothing.

    `phase` learns what the run waits for before it can report anything, such as the start of Spark.
    """

    progress: OnProgress = field(default=lambda report: None)
    results: OnResults = field(default=lambda query, rows: None)
    warning: OnWarning = field(default=lambda text: _say(text))
    phase: OnPhase = field(default=lambda text: None)


def _say(text: str) -> None:
    sys.stderr.write(f"warning: {text}\n")
