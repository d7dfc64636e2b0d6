"""The contract of a queue of updates (002 section 3), on top of that of an operator.

Rules:
- What it holds is its state: a graph is at rest, and may be saved, while queues hold rows that may not leave yet.
- It takes all its input before it releases anything, so it chooses from all there is.
- It releases rows (`on_more`) only when all that it released before has been processed downstream; then it is told so
  (`on_rest`), which is the moment of delivery. A host whose results count only when they are committed says later when
  that was (`on_delivery`).
- It is told the time (`on_time`) before every other call: staleness is measured by the clock alone.
- How many rows it may release is its `allowance`, set from outside. The end of its input lifts it.
- By default they are worth a moment of work, by what a row was measured to cost. A `careful` queue begins with single
  rows until one has been processed, and releases at most twice as many at once as ever before.
- entered = let_go + superseded + shed + waiting, at any moment.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, NO_BOUND, Batch, Mask, Microseconds, Times
from millrace.kernel.metrics import InputCounts, QueueMetrics
from millrace.kernel.operator import Operator
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.row_counts import RowCounts
from millrace.kernel.updates.staleness import Lengths, Staleness

MOMENT: Microseconds = 10_000
"""How long the work may take that a queue releases at once, by default."""
MOST_ROWS = 65_536
"""The most rows that it releases at once."""
FIRST_ROWS = 64
"""How many it releases at once before it knows what a row costs, if it is not careful."""


class Queue(Operator):
    """Holds updates until those before them have been processed; a subclass says which of them leave, and when."""

    queues = True
    holds = False
    senses_bounds = True

    allowance: int | None = None
    """How many rows it may still release; None is any number. A subclass counts down."""
    ended = False
    """True if its input has ended: then all that it holds leaves, whatever the allowance."""
    now: Microseconds = 0
    """The time of the present call."""
    arrived: Microseconds | None = None
    """When the rows arrived that enter now and do not say it themselves, if a host knows better than `now`."""
    delivers_late = False
    """True if what it released is delivered when a host says so, and not when it has been processed."""
    settings = QueueSettings()
    by_key = False
    """True if at most one row per key waits."""
    careful = False
    """True if it begins with few rows: on hosts with a real clock, where work on one row may take long."""
    most_rows = 0
    """The most rows that it has released at once."""
    _rows = 0
    """How many it has released since it was last asked for some."""
    told_cost: float | None = None
    """What a row costs downstream, in microseconds, as a host has measured it: then the clock does not say it."""

    @property
    def due(self) -> bool:
        """True if it holds rows that could leave now."""
        return self.held > 0

    @property
    def unfinished(self) -> bool:  # type: ignore[override]
        """True if it can release something now."""
        return self.due and (self.ended or self.allowance != 0)

    @property
    def row_cost(self) -> float | None:
        """What a row costs downstream, in microseconds, as told or measured; None before that is known."""
        return self.told_cost

    @property
    def budget(self) -> int | None:
        """How many rows its settings let it release at a time; None is any number."""
        settings, cost = self.settings, self.row_cost
        if settings.budget_rows is not None or settings.budget_time is None:
            return settings.budget_rows
        return self._worth(settings.budget_time, cost)

    def portion(self, limit: int | None, cost: float | None) -> int:
        """How many rows `on_more(limit)` releases, if a row costs `cost` microseconds (None: not known yet).

        At least one; never more than the allowance.
        """
        self._rows = 0
        allowance = None if self.ended else self.allowance
        if limit is None:
            limit = min(self._worth(MOMENT, cost), MOST_ROWS) if allowance is None else allowance
        return limit if allowance is None else min(limit, allowance)

    def _worth(self, time: Microseconds, cost: float | None) -> int:
        """How many rows can be processed in a time, one at least; not too many if the cost is not known."""
        if cost is not None and cost <= 0:
            return MOST_ROWS
        rows = FIRST_ROWS if cost is None else max(1, int(time / cost))
        if not self.careful or self.told_cost is not None:
            return rows
        return 1 if cost is None else min(rows, max(1, 2 * self.most_rows))

    def use_up(self, rows: int) -> None:
        """Count rows that leave, against the allowance too."""
        self._rows += rows
        self.most_rows = max(self.most_rows, self._rows)
        if self.allowance is not None:
            self.allowance = max(0, self.allowance - rows)

    def on_time(self, now: Microseconds) -> None:
        """Called before every other call with the present time."""
        self.now = now

    def on_rest(self) -> None:
        """Called when all that it released has been processed: now is the moment of delivery, unless it is late."""

    def deliver_late(self) -> None:
        """From now on what it releases is delivered when it is told so."""
        self.delivers_late = True

    def on_delivery(self, at: Microseconds) -> None:
        """Called if it `delivers_late`, before anything else enters: all that it released was delivered at a moment."""

    def learn_cost(self, micros: float) -> None:
        """Called by a host that measures itself what a row costs downstream."""
        self.told_cost = micros

    def urgency(self, now: Microseconds) -> float:
        """How much is gained if it may release rows next; among several queues the greatest is first."""
        raise AssertionError("a queue says how urgent it is")

    def configure(self, settings: QueueSettings) -> None:
        """Follow other settings from now on; what it holds stays."""
        self.settings = settings

    def input_counts(self) -> tuple[InputCounts, ...]:
        """What became of the rows of each input: known at any time, whatever the number of keys."""
        raise AssertionError("a queue counts")

    def queue_metrics(self, now: Microseconds) -> QueueMetrics:
        """Its counts, and how stale its keys are."""
        raise AssertionError("a queue counts")

    @property
    def mode(self) -> str:
        """What it does at present: its policy, if it does not choose by itself."""
        return self.settings.policy

    def staleness(self, now: Microseconds) -> pa.Table:
        """A row per key: the key columns, `waiting`, `queue_now`, `queue_mean`, `application_now`, `application_mean`
        (microseconds) and `per_second`, how often it is updated."""
        raise AssertionError("a queue knows how stale its keys are")

    # For subclasses

    def arrivals(self, batch: Batch) -> Times:
        """When each row arrived: as the host has stamped it, or else now."""
        otherwise = self.now if self.arrived is None else self.arrived
        if ARRIVED not in batch.block.rows.schema.names:
            return np.full(len(batch), otherwise, np.int64)
        arrived = batch.block.integers(ARRIVED)[batch.start : batch.stop]
        return np.where(arrived == NO_BOUND, otherwise, arrived)

    def metrics_of(self, now: Microseconds, counts: RowCounts, staleness: Staleness, **more: int) -> QueueMetrics:
        """The metrics of a queue with these counts and keys as stale as that."""
        queue, application = staleness.present(now, late=self.delivers_late)
        means = staleness.means(now, late=self.delivers_late)
        now_and_mean = [float(each.mean()) if len(each) else 0.0 for each in (queue, means[0], application, means[1])]
        return QueueMetrics(
            self.settings.policy,
            len(queue),
            mode=self.mode,
            **asdict(counts.whole()),
            queue_now=now_and_mean[0],
            queue_mean=now_and_mean[1],
            application_now=now_and_mean[2],
            application_mean=now_and_mean[3],
            cost=self.row_cost or 0.0,
            oldest=int(queue.max(initial=0)),
            by_input=counts.by_input(),
            **more,
        )

    def staleness_of(
        self, now: Microseconds, keys: pa.Table, staleness: Staleness, waiting: Mask, per_second: Lengths
    ) -> pa.Table:
        """The table of `staleness` for some keys."""
        queue, application = staleness.present(now, late=self.delivers_late)
        queue_mean, application_mean = staleness.means(now, late=self.delivers_late)
        columns = {
            "waiting": waiting, "queue_now": queue, "queue_mean": queue_mean,
            "application_now": application, "application_mean": application_mean, "per_second": per_second,
        }  # fmt: skip
        arrays = [*keys.columns, *(pa.array(each) for each in columns.values())]
        return pa.table(arrays, names=[*keys.column_names, *columns])
