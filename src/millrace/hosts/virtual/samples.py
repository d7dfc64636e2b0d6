"""Samples of the queues of a run in virtual time, for its figures.

Rules:
- Samples are evenly spaced in virtual time, so an average over them is one over time. A sample sees what has entered
  and what has been delivered up to then; the results of an operator at work are not delivered before it is done.
- They end with the input: the last one shows what the queues hold before that is processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.executor import Executor
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import QueueMetrics


@dataclass(frozen=True)
class QueueSample:
    """A queue at one moment: rows that wait, and the staleness of its keys on average, in microseconds.

    `allocated` and `used` are the locations that it keeps, and those of them that hold a row.
    """

    time: Microseconds
    waiting: int
    queue: float
    application: float
    allocated: int = 0
    used: int = 0


@dataclass
class QueueSamples:
    """What was seen of one queue."""

    samples: list[QueueSample] = field(default_factory=list)
    queue: Latency = field(default_factory=Latency)
    """Queue staleness over keys and looks: `queue.mean`, `queue.quantile(0.99)`."""
    application: Latency = field(default_factory=Latency)
    """Application staleness likewise."""
    peak_waiting: int = 0
    """The most rows that it has held, at any moment while input came."""
    metrics: QueueMetrics | None = None
    """Its counts and averages at the end of the input."""
    keys: pa.Table | None = None
    """Its keys at the end of the input, see `Queue.staleness`."""

    @property
    def mean_allocated(self) -> float:
        """How many locations it kept on average."""
        return float(np.mean([look.allocated for look in self.samples])) if self.samples else 0.0

    @property
    def mean_used(self) -> float:
        """How many locations held a row on average."""
        return float(np.mean([look.used for look in self.samples])) if self.samples else 0.0

    def add(self, time: Microseconds, metrics: QueueMetrics, keys: pa.Table) -> None:
        """Add a sample."""
        queue, application = (keys.column(name).to_numpy() for name in ("queue_now", "application_now"))
        if len(queue):
            self.queue.add(queue.astype(np.int64))
            self.application.add(application.astype(np.int64))
        means = metrics.queue_now, metrics.application_now
        self.samples.append(QueueSample(time, metrics.waiting, *means, metrics.allocated, metrics.used))


class QueueSampler:
    """Looks at all queues of a run, each under the name of its query (further ones of a query: `name#2`)."""

    def __init__(self) -> None:
        self.seen: dict[str, QueueSamples] = {}

    def look(self, executor: Executor, at: Microseconds) -> None:
        """Sample every queue at a moment."""
        titles = executor.queue_gate.titles()
        for name, queue in executor.queue_gate.queues().items():
            self.seen.setdefault(titles[name], QueueSamples()).add(at, queue.queue_metrics(at), queue.staleness(at))

    def end(self, executor: Executor, at: Microseconds) -> None:
        """The input has ended: keep what the queues are then."""
        titles, nodes = executor.queue_gate.titles(), executor.graph.nodes
        for name, queue in executor.queue_gate.queues().items():
            watched = self.seen.setdefault(titles[name], QueueSamples())
            watched.peak_waiting = nodes[name].metrics.peak_held
            watched.metrics, watched.keys = queue.queue_metrics(at), queue.staleness(at)
