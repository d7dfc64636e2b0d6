"""A join whose results leave in order of time (003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.joins.any_order.join_core import JoinCore
from millrace.kernel.joins.in_order.input_queues import InputQueues
from millrace.kernel.joins.in_order.join_monitor import JoinMonitor
from millrace.kernel.joins.sides import Side
from millrace.kernel.metrics import JoinMetrics
from millrace.kernel.operator import Operator
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.hold_buffer import HoldBuffer

Method = Literal["sync_filter", "filter_order", "adaptive"]
BACK = 0.5
"""An adaptive join goes back to Sync-Filter when the work is below this part of alpha, so that it does not flap.

Likewise it changes to Filter-Order only where no more than this part of the results that it may hold would wait.
"""
Mode = Literal["sync_filter", "filter_order", "draining"]


class OrderedJoin(Operator):
    """The rows that match, as `Join` gives them with the latest time of their parts, sorted by that time.

    - Sync-Filter (003 section 4): input rows wait until the bound of every input has reached them, then they are
      joined in order of time.
    - Filter-Order (003 section 5): input rows are joined as they come; results wait in the hold buffer. Those that a
      bound releases leave before the rows that brought the bound are joined.
    - Adaptive (003 section 6): the first until c|w|λ1λ2 reaches `alpha`, then the second until that has fallen to half
      of it; see join_monitor.py. It is a hybrid in memory, too (004 section 9): it is Filter-Order only while no more
      results wait than the join keeps rows. Where a row has many partners and one input is late, rows take less. On
      the way back it drains: rows wait again, but results may still go to the hold buffer. This ends when the buffer
      is empty and no joined row is newer than the least bound. (The paper's step K looks at the buffer alone, and can
      emit a result before an older one.)

    Results leave when their time is no later than the bound of every input. No side is outer.

    State: what `JoinCore` keeps; input rows that wait, and results that do. Punctuations: the least of all inputs, but
    no later than rows that are ready and not yet joined; after what it releases.
    """

    label = "join"
    holds = True
    senses_bounds = True
    uses_every_bound = True
    by_input = True
    leads = True
    few = 4096
    """So many results an adaptive join may hold, whatever else it keeps."""

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        sides: Sequence[Side],
        residual: Expression | None = None,
        *,
        method: Method,
        alpha: float,
    ) -> None:
        assert not any(side.outer for side in sides), "an outer join is put in order by what follows it"
        self.alpha = alpha
        self.mode: Mode = "filter_order" if method == "filter_order" else "sync_filter"
        """What it does at present; only the adaptive join changes it."""
        self.switches = 0
        """How often it changed from one method to the other."""
        self.monitor = JoinMonitor(sides) if method == "adaptive" else None
        self.learns_cost = method == "adaptive"
        self._core = JoinCore(schemas, sides, residual, "max")
        self._queues = InputQueues(len(sides))
        self._hold = HoldBuffer()
        self._bounds = [NO_BOUND] * len(sides)
        self._until: Microseconds = NO_BOUND
        """Up to where results have left."""
        self._newest: Microseconds = NO_BOUND
        """The greatest time of a row that was joined."""
        self._held: int | None = 0
        """How many rows it holds, if that has been counted since something changed."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._held = None
        if self.monitor is not None:
            self.monitor.arrived(port, batch)
        if self.mode == "filter_order":
            self._join(port, batch)
            yield from self._released()
        else:
            self._queues.add(port, batch)
            self._open()

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        self._held = None
        self._bounds[port] = punctuation.until
        if self.monitor is not None and (self.monitor.reached(port, punctuation.until) or self._is_crowded()):
            self._adapt(self.monitor)
        self._open()
        if not self.unfinished:
            yield from self._advanced(punctuation.ets)

    def on_more(self, limit: int | None) -> Iterator[Element]:
        self._held = None
        for port, rows in self._queues.take(limit):
            self._join(port, rows)
        yield from self._advanced()
        self._open()

    def on_cost(self, micros: Microseconds) -> None:
        if self.monitor is not None:
            self.monitor.spent(micros)

    # Joining and releasing

    def _open(self) -> None:
        """Make ready what may be joined."""
        if self.mode == "filter_order":
            self._queues.open_all()
        else:
            self._queues.open(min(self._bounds))
        self.unfinished = self._queues.ready

    def _join(self, port: int, rows: Batch) -> None:
        """Join rows with those that were joined before; what they make is held."""
        made = self._core.arrive(port, rows)
        if made is not None:
            self._hold.add(made)
        times = rows.times
        newest = int(times[0]) if len(times) == 1 else int(times.max())
        self._newest = max(self._newest, newest)
        if self.monitor is not None:
            results = 0 if made is None else len(made)
            self.monitor.worked(len(rows), self._core.compared - self.compared, results, newest)
        self.compared = self._core.compared

    def _advanced(self, ets: bool = False) -> Iterator[Element]:
        """Release rows and results as far as the bounds and the rows not yet joined allow."""
        for port, bound in enumerate(self._bounds):
            least = self._queues.least(port)
            reached = bound if least is None else min(bound, least)
            if reached > self._core.bounds[port]:
                self._core.raise_bound(port, reached)
        until = self._core.until()
        advanced, self._until = until > self._until, max(until, self._until)
        yield from self._released()
        if advanced:
            yield Punctuation(until, ets)
        if self.mode == "draining" and self._is_drained():
            self.mode = "sync_filter"

    def _released(self) -> Iterator[Batch]:
        released = self._hold.release(self._until)
        if released is not None:
            yield released

    # Adapting

    def _adapt(self, monitor: JoinMonitor) -> None:
        """Choose between the methods by the present work (003 section 6, steps B and D), and by what waits."""
        work = monitor.work
        if work is None or self.mode == "draining":
            return
        if self.mode == "sync_filter":
            if work >= self.alpha and monitor.would_make(len(self._queues)) <= self._may_hold * BACK:
                self.mode, self.switches = "filter_order", self.switches + 1
        elif work < self.alpha * BACK or self._is_crowded():
            self.mode, self.switches = "draining", self.switches + 1

    @property
    def _may_hold(self) -> int:
        """How many results may wait: as many as there are rows that take memory anyhow."""
        return max(self.few, len(self._queues) + len(self._core))

    def _is_crowded(self) -> bool:
        """True if more results wait than may."""
        return len(self._hold) > self.few and len(self._hold) > self._may_hold

    def _is_drained(self) -> bool:
        """True if no result waits, and none can come that is older than one emitted."""
        return not len(self._hold) and self._newest <= min(self._bounds)

    # What it waits for

    def wants(self) -> Sequence[Mapping[int, Microseconds]]:
        times = [time for time in (self._queues.wanted(), self._hold.least) if time is not None]
        # Whatever waits is later than the least bound: the earliest of it is released first.
        return (dict.fromkeys(range(len(self._bounds)), min(times)),) if times else ()

    @property
    def held(self) -> int:
        if self._held is None:
            self._held = len(self._queues) + len(self._core) + len(self._hold)
        return self._held

    @property
    def state_bytes(self) -> int:
        return self._queues.nbytes + self._core.nbytes + self._hold.nbytes

    def join_metrics(self) -> JoinMetrics:
        return JoinMetrics(self.mode, self.switches, len(self._queues), len(self._hold))

    def changes(self) -> Changes:
        note = {
            "bounds": self._bounds,
            "until": self._until,
            "newest": self._newest,
            "mode": self.mode,
            "switches": self.switches,
            "monitor": None if self.monitor is None else self.monitor.note(),
        }
        return combined([self._core.changes(), self._hold.changes(), *self._queues.changes()], note)

    def restore(self, changes: Changes) -> None:
        joining, hold, *queues = separated(changes)
        note = changes.note
        self._core.restore(joining)
        self._hold.restore(hold)
        self._queues.restore(queues)
        self._bounds = list(note["bounds"])
        self._until, self._newest, self.mode = note["until"], note["newest"], note["mode"]
        self.switches = note["switches"]
        if self.monitor is not None:
            self.monitor.restore(note["monitor"])
        self._held = None
        self.compared = self._core.compared
