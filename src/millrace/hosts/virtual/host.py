"""The virtual host: discrete events, exact and fast.

Rows arrive at the times their stream says (see arrivals.py); an operator's work takes what `cost` says; the clock jumps
from one event to the next. Everything that happens is a function of the input, so a run can be repeated exactly.
With a `tick` all rows of a tick arrive together at its end: coarser, and faster by as much.
What queues hold after the last arrival is processed before the run ends; `samples` shows the queues until then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millrace.hosts.control.live_changes import LiveChanges, reshape
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_control import RunControl
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.outputs import Outputs
from millrace.hosts.tables.run_tables import ReadTable, RunTables
from millrace.hosts.virtual.clock import Costs, VirtualClock
from millrace.hosts.virtual.intake import ArrivingRows, SilentStreams
from millrace.hosts.virtual.samples import QueueSampler, QueueSamples
from millrace.hosts.why.lag import Lag
from millrace.kernel.elements import END_OF_TIME, Batch, Microseconds, concat, user_table
from millrace.kernel.graph.executor import Executor
from millrace.kernel.metrics import Metrics
from millrace.kernel.progress.ingress import Ingress
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical


@dataclass(frozen=True)
class DeliveredRows:
    """Results of one query that came out at one moment."""

    now: Microseconds
    query: str
    rows: pa.Table


class VirtualRun:
    """A network at work in virtual time, from the first arrival to the end of its input.

    `scripted` changes the network at given times, as `changes` reads the texts. `sample_every` says how often
    queues are sampled, for `samples`.
    """

    def __init__(
        self,
        network: QueryNetwork,
        options: RunOptions | None = None,
        *,
        feeds: Mapping[str, Iterable[Any]] | None = None,
        listeners: Listeners | None = None,
        cost: Costs | None = None,
        rows_per_step: int | None = None,
        tick: Microseconds = 0,
        ets_arcs: bool = True,
        merge_punctuation: bool = True,
        changes: LiveChanges | None = None,
        scripted: Sequence[tuple[Microseconds, str]] = (),
        sample_every: Microseconds | None = None,
    ) -> None:
        plan = physical(network)
        self._ends = options is None or options.ending != "available"
        """True if the end of the input is the end of its streams: a run in virtual time ends by itself."""
        self.clock = VirtualClock(cost or Costs())
        self._control = RunControl(network, changes)
        self.changes = self._control.changes
        self._scripted = deque(sorted(scripted))
        self._listeners = listeners or Listeners()
        self.executor = Executor(
            plan.whole(), rows_per_step=rows_per_step, ets_arcs=ets_arcs, merge_punctuation=merge_punctuation
        )
        self._feeds, self._tick = feeds if feeds is not None else {}, tick
        self.tables = RunTables(None, feeds, {}, self._listeners.warning)
        self._streams: dict[str, ArrivingRows] = {}
        self._streams = {stream.name: self._arriving(stream, plan) for stream in network.streams()}
        self._silent = SilentStreams(self._streams, self.clock)
        self.outputs = Outputs(network.queries, self._listeners, fresh=True)
        self.memory, self.answers = self.outputs.sinks.memory, self.outputs.sinks.answers
        self._delivered: list[tuple[Microseconds, str, list[Batch]]] = []
        self._handed_out = 0
        self._input_over = False
        self._sample_every, self._sampler = sample_every, QueueSampler()
        self._events = self._epoch = 0
        self._started = self._reported = time.monotonic()

    def _arriving(self, stream: Stream, plan: Physical) -> ArrivingRows:
        columns, given = plan.columns_read(stream.name), self._streams.get(stream.name)
        if given is not None:
            return given if set(columns) <= set(given.columns) else given.again(columns)
        ingress = self.executor.ingress.get(stream.name) or Ingress(stream.time)
        return ArrivingRows(stream, ingress, columns, self._feeds.get(stream.name), self._tick)

    def run(self) -> Report:
        """Work through all events."""
        try:
            with self.changes.lock.work():
                self._work()
        finally:
            self.outputs.close()
            self._control.close()
        self._listeners.progress(self.report())
        return self.report()

    def _work(self) -> None:
        first = self._next_arrival()
        self.clock.time = first if first is not None else 0
        self.tables.open(self.changes.network, self.clock.time)
        self.tables.equip(self.executor.graph, self.executor.ingress.values())
        self._due = first
        if self._sample_every is not None:
            self.clock.at(self.clock.time + self._sample_every, self._look)
        while not self._control.stopping.is_set() and self._event():
            self._events += 1
            self.changes.lock.pause()
            if self._events % 1024 == 0:
                self._report_now_and_then()
        if self._ends and not self._control.stopping.is_set():
            for name in self._streams:
                self.executor.edges.end(name)
            self.settle()
        self._hand_out()
        self._publish()

    def stop(self) -> None:
        """End after the present event."""
        self._control.stop()

    def _event(self) -> bool:
        """Admit what has arrived and work one step, or jump to the next event; False if there is none."""
        if self._due is not None and self._due <= self.clock.time:
            self._let_in()
            self._due = self._next_arrival()
        if self._due is None and not self._input_over and not self.executor.queue_gate.entering:
            self._input_over = True
            self._sampler.end(self.executor, self.clock.time)
        self._change()
        self.executor.ets_demand.periodic = self._due is not None
        if self.executor.step(self.clock, self._silent):
            if self.executor.has_results:
                self._deliver()
            return True
        coming = [time for time in (self._due, self._wake(), self._next_change()) if time is not None]
        if not coming:
            return False
        self.clock.jump(max(self.clock.time, min(coming)))
        return True

    def _look(self, at: Microseconds) -> Microseconds:
        """Look at the queues; when to look again."""
        if self._input_over or self._sample_every is None:
            return END_OF_TIME
        self._sampler.look(self.executor, at)
        return at + self._sample_every

    def samples(self, queue: str) -> QueueSamples:
        """What was seen of a query's queue until the end of its input; of its second queue as `query#2`."""
        return self._sampler.seen[queue]

    def _let_in(self) -> None:
        """Push what has arrived by now."""
        now = self.clock.time
        for name, arriving in self._streams.items():
            while (due := arriving.next_time) is not None and due <= now:
                arriving.push(self.executor, now)
            while arriving.unread:
                self.executor.edges.reject(name, arriving.unread.pop(0), now)

    def _next_arrival(self) -> Microseconds | None:
        times = [due for each in self._streams.values() if (due := each.next_time) is not None]
        return min(times, default=None)

    def _wake(self) -> Microseconds | None:
        """When an ETS is due; after the last arrival only one that releases something, in a run that closes all."""
        if self._due is not None:
            return self.executor.wake_at(self._streams)
        return self.executor.ets_demand.release_at(self._streams) if self._ends else None

    def _deliver(self) -> None:
        for name, batches in self.executor.take(self.clock.time).items():
            self._delivered.append((self.clock.time, name, batches))

    def _hand_out(self) -> None:
        """Deliver to the sinks what has come out since the last time."""
        gathered: dict[str, list[Batch]] = {}
        for _, name, batches in self._delivered[self._handed_out :]:
            gathered.setdefault(name, []).extend(batches)
        self._handed_out = len(self._delivered)
        self.outputs.deliver({name: [concat(batches)] for name, batches in gathered.items()})

    @property
    def deliveries(self) -> list[DeliveredRows]:
        """All results, with the moment they came out."""
        return [DeliveredRows(now, name, user_table(batches)) for now, name, batches in self._delivered]

    def _report_now_and_then(self) -> None:
        if time.monotonic() - self._reported > 1:
            self._reported = time.monotonic()
            self._hand_out()
            self._listeners.progress(self.report())

    # Changes (see live_changes.py)

    def _change(self) -> None:
        self.changes.serve(self)
        for fresh in self.tables.take(self.clock.time) if self._due is not None else ():
            self._renew(fresh)
        while self._scripted and self._scripted[0][0] <= self.clock.time:
            self.changes.carry_out(self._scripted.popleft()[1], self)

    def _next_change(self) -> Microseconds | None:
        scripted = self._scripted[0][0] if self._scripted else None
        times = [each for each in (scripted, self.tables.next_due()) if each is not None]
        return min(times, default=None) if self._due is not None else None

    def refresh_table(self, table: str) -> None:
        """Read a table again, and let it be in force from here on; or raise."""
        self._renew(self.tables.read(table, self.clock.time))

    def _renew(self, fresh: ReadTable) -> None:
        if self.tables.put(fresh, self.changes.network, self.points()):
            self.tables.equip(self.executor.graph, self.executor.ingress.values())
            self.tables.settled()

    def settle(self) -> None:
        """Work until only rows in queues are left."""
        self.executor.queue_gate.shut()
        self.executor.run(self.clock)
        self.executor.queue_gate.open(None)
        self._deliver()

    def points(self) -> StreamProgress:
        """How far each stream has come."""
        return {name: ingress.save() for name, ingress in self.executor.ingress.items()}

    def shape(self, plan: Physical) -> None:
        """Make the graph at work that of a changed plan."""
        reshape(self.executor, self.changes.network, plan)

    def prepare(self, plan: Physical) -> Callable[[], None]:
        """Open the streams of a changed plan, and its sinks."""
        opened = {stream.name: self._arriving(stream, plan) for stream in plan.network.streams()}
        take_sinks = self.outputs.prepare(plan.network.queries)
        self.tables.open(plan.network, self.clock.time)

        def take_into_use() -> None:
            self._hand_out()
            take_sinks()
            self.tables.equip(self.executor.graph, self.executor.ingress.values())
            self._streams = opened
            self._silent = SilentStreams(opened, self.clock)
            self._due = self._next_arrival()

        return take_into_use

    def keep(self) -> None:
        """Write what queries that left have answered: others of their names may have joined."""
        self._publish()

    def _publish(self) -> None:
        self.outputs.publish(self.outputs.stage(self._epoch))
        self._epoch += 1

    def close(self) -> None:
        """Nothing is held outside this process."""

    def metrics(self) -> Metrics:
        """The kernel's counts."""
        return self.executor.metrics(self.clock.time)

    def staleness(self, query: str) -> pa.Table:
        """How stale each key of a query is at this moment."""
        with self.changes.lock.look():
            return self.executor.queue_gate.staleness(query, self.clock.time)

    def refresh(self, query: str) -> None:
        """Deliver what has come out so far."""
        self._hand_out()

    def lag(self) -> Lag:
        """What holds time back at this moment."""
        with self.changes.lock.look():
            return Lag.of(self.executor, self.clock.time, live=self._ends, silent=self._silent)

    def report(self) -> Report:
        """The run at this moment."""
        with self.changes.lock.look():
            metrics = self.metrics()
        results = {name: sink.rows for name, sink in metrics.sinks.items()}
        return Report.of(metrics, results, time.monotonic() - self._started, self._events, now=self.clock.time)
