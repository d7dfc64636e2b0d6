"""A run of the local host whose promises are checked at every step.

Rules:
- The bound of an operator never goes back; nor does that of a query's results, and no result is below it.
- Results of a query with ORDER BY come in order of time.
- What a stream has received is what was read of it, and each row is in one of its counts.
- Per queue: entered = released + superseded + shed + waiting.
- Requests are carried out between two turns, as if another thread had made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from millrace.errors import MillraceError
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.host_run import HostRun
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.kernel.elements import NO_BOUND, Batch, Microseconds, Punctuation
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.nodes.relational_nodes import OrderByTime, below_maps
from millrace.plan.physical.stages import Physical
from millrace.testing.simulation.arriving_input import Arrivals
from millrace.testing.simulation.simulated_clock import SimulatedClock

_MOST_TURNS = 20_000


class BrokenPromise(AssertionError):
    """A run broke one of its promises."""


class ScriptedChanges(LiveChanges):
    """Requests that come after so many turns of the run, and jumps of its clock."""

    def script_events(self, events: list[tuple[int, str | Microseconds]], clock: SimulatedClock) -> None:
        """Have these requests, or jumps of the clock, come at their turns."""
        self._events, self._clock, self._turns = sorted(events, key=lambda each: each[0]), clock, 0
        self.refused: list[str] = []

    def serve(self, run: HostRun) -> None:
        """Carry out what is due by now."""
        self._turns += 1
        if self._turns > _MOST_TURNS:
            raise BrokenPromise(f"a run does not come to its end in {_MOST_TURNS} turns")
        while self._events and self._events[0][0] <= self._turns:
            event = self._events.pop(0)[1]
            if isinstance(event, int):
                self._clock.error += event
                continue
            try:
                self.carry_out(event, run)
            except MillraceError as error:
                self.check()
                self.refused.append(f"{event}: {error}")
        if self._clock.fate is not None and self._clock.fate.stopping:
            run.stop()


class CheckedRun(LocalRun):
    """The local host in simulated time, under watch."""

    def __init__(
        self,
        network: QueryNetwork,
        options: RunOptions,
        *,
        feeds: Mapping[str, Arrivals],
        changes: ScriptedChanges,
        clock: SimulatedClock,
        rows_per_step: int | None = None,
    ) -> None:
        self._bounds: dict[str, Microseconds] = {}
        self._promised: dict[str, Microseconds] = {}
        self._last: dict[str, Microseconds] = {}
        """The time of the last result of each query that is in order."""
        self._feeds = feeds
        self._rows_per_step = rows_per_step
        super().__init__(network, options, feeds=feeds, changes=changes, clock=clock)
        self._watch(self.changes.network)
        clock.stepped = self._check_bound

    def shape(self, plan: Physical) -> None:
        """Watch the changed graph as well."""
        super().shape(plan)
        self._watch(plan.network)

    def _watch(self, network: QueryNetwork) -> None:
        """Have bounds sent as far as the results go, and batches cut."""
        self.executor.step_size.rows = self._rows_per_step
        for sink in self.executor.graph.sinks():
            sink.takes_bounds = True
        self.executor.adopt()
        self._ordered = {each.name for each in network.queries if isinstance(below_maps(each.root), OrderByTime)}
        self._bounds = {name: self._bounds.get(name, NO_BOUND) for name in self.executor.graph.nodes}

    def _check_bound(self, name: str) -> None:
        node = self.executor.graph.nodes[name]
        if node.bound < self._bounds.get(name, NO_BOUND):
            raise BrokenPromise(f'the bound of "{name}" went back from {self._bounds[name]} to {node.bound}')
        self._bounds[name] = node.bound

    def _deliver(self) -> None:
        for sink in self.executor.graph.sinks():
            arc = sink.inputs[0]
            buffer, bound = arc.producer.buffer, max(arc.register, self._promised.get(sink.name, NO_BOUND))
            for element in islice(buffer.elements, arc.head - buffer.first, None):
                if isinstance(element, Batch) and len(element):
                    self._check_results(sink.name, element, bound)
                if isinstance(element, Batch | Punctuation) and element.until is not None:
                    bound = max(bound, element.until)
            self._promised[sink.name] = bound
        super()._deliver()

    def _check_results(self, query: str, batch: Batch, bound: Microseconds) -> None:
        times = batch.times
        if int(times.min()) < bound:
            raise BrokenPromise(f'query "{query}" gave a result below its bound {bound}')
        if query in self._ordered:
            if (np.diff(times) < 0).any() or int(times[0]) < self._last.get(query, NO_BOUND):
                raise BrokenPromise(f'the results of query "{query}" are not in order of time')
            self._last[query] = int(times[-1])

    def _commit(self) -> None:
        super()._commit()
        self.check_accounts()

    def check_accounts(self) -> None:
        """Raise where counts do not add up."""
        metrics = self.metrics()
        for name, source in metrics.sources.items():
            parts = source.late + source.quarantined + source.shed + source.superseded + source.buffered
            if source.received != source.processed + parts or source.processed < 0:
                raise BrokenPromise(f'the counts of stream "{name}" do not add up: {source}')
            if source.received > self._feeds[name].read:
                raise BrokenPromise(f'stream "{name}" received {source.received} rows of {self._feeds[name].read} read')
        for title, queue in metrics.queues.items():
            if queue.entered != queue.let_go + queue.superseded + queue.shed + queue.waiting:
                raise BrokenPromise(f'the counts of queue "{title}" do not add up: {queue}')
