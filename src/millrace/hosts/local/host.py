"""The local host: one process, the machine's clock, milliseconds.

Rules:
- A turn reads every stream (see stream_reader.py) and lets the kernel work a moment after each, so that a flood on one
  stream does not delay the rows of another.
- The ETS of a silent stream is that of the moment when it was last read and had no row. Of a stream that has rows all
  the time partitions may be silent, up to when it has been read.
- A turn opens the queues, each for its budget of rows, or for the time that its rows are expected to take. A commit and
  a change shut them: what they hold is saved, not processed. They are empty when a run ends by itself.
- With nothing to do the run sleeps until a row or an ETS is due, rows are pushed, or a request comes.
- The run holds its lock (see control/run_lock.py) while it works, and lets those who look at it have it between two
  steps and wherever it waits: other threads see counts of one moment.
- A commit saves an epoch; one without any work is not committed. With a checkpoint an epoch is committed as a whole:
  state, positions in the input, result files, and the changes made to the network (see checkpoint.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.errors import machine_faults
from millrace.hosts.checkpoint.checkpoint import Checkpoint, Resumed, check_operator_names
from millrace.hosts.checkpoint.read_log import ReadLog
from millrace.hosts.control.live_changes import LiveChanges, reshape
from millrace.hosts.local.intake import Intake
from millrace.hosts.local.pace import PacedInput
from millrace.hosts.local.stream_reader import StreamReader
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_control import RunControl
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.outputs import Outputs
from millrace.hosts.system_clock import SystemClock
from millrace.hosts.tables.run_tables import ReadTable, RunTables
from millrace.hosts.why.lag import Lag
from millrace.kernel.graph.executor import Executor
from millrace.kernel.metrics import Metrics
from millrace.kernel.updates.queue import Queue
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical, physical

_MOMENT = 10_000
"""Microseconds that the kernel works before the streams are read again."""
_WHILE = 1_000
"""Microseconds of work, or of reading, after which results are delivered and rows are processed before the rest."""
_STEP = 10_000
"""Microseconds that functions of a user may take before others get their turn (see kernel/graph/step_size.py)."""
_AT_LEAST = 200
"""Microseconds to sleep when a wake-up that should have come is overdue."""
_INTERVAL = 1_000_000
"""Microseconds between two commits, unless the run is asked for others."""


class LocalRun:
    """A network at work in this process; it commits an epoch at every `commit_interval` of its options."""

    def __init__(
        self,
        network: QueryNetwork,
        options: RunOptions | None = None,
        *,
        feeds: Mapping[str, Iterable[Any]] | None = None,
        listeners: Listeners | None = None,
        changes: LiveChanges | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        options = options or RunOptions("local")
        self.ending = options.ending
        self._interval = (_INTERVAL if options.commit_interval is None else options.commit_interval) / 1e6
        self._clock = clock or SystemClock()
        self._listeners = listeners or Listeners()
        with machine_faults():
            self._control = RunControl(network, changes, options.control, options.checkpoint)
            self.changes = self._control.changes
            try:
                self._open(network, options.checkpoint, feeds)
            except BaseException:
                self._control.close()
                raise

    def _open(self, network: QueryNetwork, checkpoint: Path | None, feeds: Mapping[str, Iterable[Any]] | None) -> None:
        self._checkpoint = Checkpoint(checkpoint, physical(network)) if checkpoint is not None else None
        resumed = self._loaded(self._checkpoint) if self._checkpoint is not None else None
        plan = physical(self.changes.network)
        self._live = self._live_streams(plan)
        self.executor = Executor(plan.whole(), live=self._live, moment=_STEP)
        self._open_tables(plan, checkpoint, feeds)
        positions, epoch, kept = (resumed.positions, resumed.epoch, resumed.kept) if resumed else (None, None, None)
        wake, read = self.changes.woken.set, lambda stream, count: ReadLog(checkpoint or Path(), stream).load(count)
        self.intake = Intake(plan, self._clock.now, feeds, positions, self.ending, wake, read)
        ran, renamed = self.changes.ran or plan.network, self.changes.renamed
        self.outputs = Outputs(
            ran.queries, self._listeners, fresh=resumed is None, checkpoint=checkpoint, epoch=epoch, kept=kept
        )
        if resumed is not None:
            self.outputs.reach(plan.network.queries, renamed)
            # First: what belongs to queries that leave now stays until their leaving is committed.
            self.outputs.publish(resumed.staged)
            self.outputs.sweep(resumed.staged)
        self.outputs.prepare(plan.network.queries, renamed)()
        self.memory, self.answers = self.outputs.sinks.memory, self.outputs.sinks.answers
        self._results = {query.name: 0 for query in plan.network.queries}
        self._epoch = self._earlier = 0
        self._replay()
        live, waiting = self.ending == "stopped", self.changes.lock.wait
        self._reader = StreamReader(self.executor, self._clock.now, self._commit, waiting, live=live)
        self._started = self._clock.monotonic()
        self._commit_due = self._started + self._interval
        self._worked = 0
        """How much had been done at the last commit."""
        self._unsaved = False
        if resumed is not None:
            self._resume(resumed)
            results = {name: resumed.results.get(renamed.get(name, name), 0) for name in self._results}
            self._results.update(results)
            self._unsaved = len(self.changes.history) > len(resumed.changes["history"])
            self._unsaved |= self.changes.tables != resumed.changes["tables"]

    def _open_tables(self, plan: Physical, checkpoint: Path | None, feeds: Mapping[str, Any] | None) -> None:
        wake = self.changes.woken.set if type(self._clock) is SystemClock else None
        self.tables = RunTables(checkpoint, feeds, self.changes.tables, self._listeners.warning, wake)
        self.tables.open(plan.network, self._clock.now())
        self._use_tables()

    def _loaded(self, checkpoint: Checkpoint) -> Resumed | None:
        """What the run goes on from; its queries become what this run's text makes of them."""
        resumed = checkpoint.load(self.changes)
        if resumed is not None:
            self.changes.resume(resumed.changes, resumed.points)
            assert self.changes.ran is not None
            check_operator_names(resumed, physical(self.changes.ran), checkpoint.folder)
        return resumed

    def _live_streams(self, plan: Physical) -> set[str]:
        """The streams whose rows come as they happen."""
        if self.ending != "stopped":
            return set()
        return {stream.name for stream in plan.network.streams() if stream.replay is None}

    def _resume(self, resumed: Resumed) -> None:
        self.executor.restore(resumed.control, resumed.segments)
        for name in self._replay():
            # Replayed time stood still while no run was at work.
            self.executor.ingress[name].restart_silence(self._clock.now())
        self._epoch = resumed.epoch + 1
        self._earlier = sum(ingress.received for ingress in self.executor.ingress.values())

    def _replay(self) -> list[str]:
        """Let the ETS of replayed streams follow the replayed time; their names."""
        paced = {name: each.clock for name, each in self.intake.inputs.items() if isinstance(each, PacedInput)}
        for name, clock in paced.items():
            assert clock is not None, "replays start when they are taken into use"
            self.executor.ingress[name].replay(clock)
        return list(paced)

    def run(self) -> Report:
        """Work until the run ends in its way, or is stopped."""
        with machine_faults(), self.changes.lock.work():
            return self._run()

    def _run(self) -> Report:
        try:
            if self._unsaved:
                # What has become of the queries is settled before anything is built on it.
                self._commit()
            while not self._control.stopping.is_set():
                self._control.serve(self)
                for fresh in self.tables.take(self._clock.now()):
                    self._renew(fresh)
                if not self._turn():
                    if self._over():
                        break
                    self._sleep()
                self._commit_if_due()
            self._reader.take_begun(self.intake.inputs)
            if self.ending == "end" and not self._control.stopping.is_set():
                self._end()
            self._commit()
        finally:
            self.outputs.close()
            self._control.close()
        return self.report()

    def stop(self) -> None:
        """Let the run end after its present turn; everything so far is committed."""
        self._control.stop()

    # A turn

    def _turn(self) -> bool:
        """Read every stream once and let the kernel work; True if there is more to do at once."""
        queues = self.executor.queue_gate.queues()
        if queues:
            self._open_queues(queues)
        some, until = False, self._clock.now() + _WHILE
        for name, source in self.intake.inputs.items():
            some |= self._reader.take_all(name, source)
            if some and self._clock.now() > until:
                # A long read must not keep what was read before it waiting. Silence is judged below.
                self._work(())
                until = self._clock.now() + _WHILE
        if queues:
            self._fill_queues()
        return not self._work(self._silent_streams(), _moment(queues)) or some or self.executor.queue_gate.held_back

    def _open_queues(self, queues: Mapping[str, Queue]) -> None:
        for queue in queues.values():
            queue.careful = True
        self.executor.queue_gate.open({name: queue.budget for name, queue in queues.items()})

    def _fill_queues(self) -> None:
        """Let all that was read enter the queues: the moment that follows is for the rows that they release."""
        while self.executor.queue_gate.entering and not self.executor.run(self._clock, (), _WHILE):
            self._deliver()
            self.changes.lock.pause()

    def _silent_streams(self) -> Container[str]:
        """The streams that ETS may be made for: what a bounded run has not read yet is unread, not silent."""
        return self._reader.silent if self.ending == "stopped" else ()

    def _work(self, silent: Container[str], budget: int | None = _MOMENT) -> bool:
        """Let the kernel work for a moment and deliver its results as they come; True if it is at rest."""
        until = None if budget is None else self._clock.now() + budget
        while not (at_rest := self.executor.run(self._clock, silent, _WHILE)):
            self._deliver()
            self.changes.lock.pause()
            if until is not None and self._clock.now() >= until:
                break
        self._deliver()
        return at_rest

    def _deliver(self) -> None:
        results = self.executor.take(self._clock.now())
        for name, batches in results.items():
            self._results[name] += sum(map(len, batches))
        if results:
            with self.changes.lock.wait():
                self.outputs.deliver(results)

    def _over(self) -> bool:
        """True if nothing will come that this run waits for."""
        inputs = self.intake.inputs
        if self.ending == "stopped":
            # What silence will still release is waited for.
            ended = all(source.finished for source in inputs.values())
            return ended and self.executor.ets_demand.release_at(self._reader.silent) is None
        return all(name in self._reader.dry and not source.pending for name, source in inputs.items())

    def _sleep(self) -> None:
        """Wait until there may be something to do."""
        now = self._clock.now()
        due = self.executor.wake_at(self._silent_streams())
        wakes = [self.intake.next_look(), self.tables.next_due(), None if due is None else max(due, now + _AT_LEAST)]
        due_by_clock = [self._commit_due]
        if self._control.requests is not None:
            due_by_clock.append(self._control.next_look)
        until = [(wake - now) / 1e6 for wake in wakes if wake is not None]
        wait = min([*until, min(due_by_clock) - self._clock.monotonic()])
        if wait > 0:
            with self.changes.lock.wait():
                self._clock.wait(self.changes.woken, wait)

    def _end(self) -> None:
        for name in self.intake.inputs:
            self.executor.edges.end(name)
        self.settle()

    # What lasts

    def _commit_if_due(self) -> None:
        if self._clock.monotonic() < self._commit_due:
            return
        if self._worked != self.executor.steps + self._reader.chunks:
            self._commit()
        else:
            self._commit_due = self._clock.monotonic() + self._interval
            self._listeners.progress(self.report())

    def _commit(self) -> None:
        began = self._clock.monotonic()
        self.settle()
        with self.changes.lock.wait():
            if self._checkpoint is not None:
                self._checkpoint.fence()
            staged = self.outputs.stage(self._epoch)
        saved = self.executor.save() if self._checkpoint is not None else None
        with self.changes.lock.wait():
            if self._checkpoint is not None and saved is not None:
                positions = self.intake.positions()
                # A position may be that of a piece after those that were open until now.
                self._checkpoint.save_read(self.intake.take_pieces())
                changes, kept = self.changes.saved(), self.outputs.kept()
                self._checkpoint.save(self._epoch, saved, positions, staged, self._results, changes, kept)
            self.outputs.publish(staged)
        self._epoch += 1
        self._worked = self.executor.steps + self._reader.chunks
        ended = self._clock.monotonic()
        # Work goes on between two commits for as long as one takes, even where that is longer than the interval.
        self._commit_due = max(began + self._interval, ended + min(ended - began, self._interval))
        self._listeners.progress(self.report())

    # Tables

    def refresh_table(self, table: str) -> None:
        """Read a table again, and let it be in force from here on; or raise."""
        self._renew(self.tables.read(table, self._clock.now()))

    def _renew(self, fresh: ReadTable) -> None:
        """Let a table that was read be in force for rows after all that were seen."""
        if self.tables.put(fresh, self.changes.network, self.points()):
            self._use_tables()
            self._commit()
            self.tables.settled()

    def _use_tables(self) -> None:
        self.tables.equip(self.executor.graph, self.executor.ingress.values())
        self.changes.tables = self.tables.saved()

    # Changes (see live_changes.py)

    def settle(self) -> None:
        """Work until only rows in queues are left; without heartbeats, which would bring ever more work."""
        self.executor.queue_gate.shut()
        self.executor.ets_demand.periodic = False
        self._work((), None)
        self.executor.ets_demand.periodic = True

    def points(self) -> StreamProgress:
        """How far each stream has come."""
        return {name: ingress.save() for name, ingress in self.executor.ingress.items()}

    def shape(self, plan: Physical) -> None:
        """Make the graph at work that of a changed plan."""
        reshape(self.executor, self.changes.network, plan)

    def prepare(self, plan: Physical) -> Callable[[], None]:
        """Open the inputs and sinks of a changed plan."""
        take_inputs, take_sinks = self.intake.prepare(plan), self.outputs.prepare(plan.network.queries)
        self.tables.open(plan.network, self._clock.now())
        # The executor asks whether a stream is live when it adopts it.
        self._live |= self._live_streams(plan)

        def take_into_use() -> None:
            take_inputs()
            take_sinks()
            self._use_tables()
            self._replay()
            self._results = {query.name: self._results.get(query.name, 0) for query in plan.network.queries}
            self._reader.forget_all_but(self.intake.inputs)

        return take_into_use

    def keep(self) -> None:
        """Commit, so that the change is made when the answer is given."""
        self._commit()

    def close(self) -> None:
        """Nothing is held outside this process."""

    def metrics(self) -> Metrics:
        """The kernel's counts."""
        return self.executor.metrics(self._clock.now())

    def staleness(self, query: str) -> pa.Table:
        """How stale each key of a query is at this moment."""
        with self.changes.lock.look():
            return self.executor.queue_gate.staleness(query, self._clock.now())

    def refresh(self, query: str) -> None:
        """Poll the streams of a query now, and process what waits for it; other queries wait."""
        for source in self.intake.demand(self.changes.streams_of(query)):
            while self._reader.take(source.stream.name, source) and source.wakes:
                pass
        self.executor.queue_gate.open_query(query)
        self.executor.ets_demand.periodic = False
        self._work((), None)
        self.executor.ets_demand.periodic = True

    def lag(self) -> Lag:
        """What holds time back at this moment."""
        with self.changes.lock.look():
            return Lag.of(self.executor, self._clock.now(), live=self.ending == "stopped", silent=self._reader.silent)

    def report(self) -> Report:
        """The run at this moment."""
        with self.changes.lock.look():
            elapsed, now = self._clock.monotonic() - self._started, self._clock.now()
            return Report.of(self.metrics(), dict(self._results), elapsed, self._epoch, self._earlier, now)


def _moment(queues: Mapping[str, Queue]) -> int:
    """How long the kernel works before the streams are read again."""
    budgets = (queue.settings.budget_time for queue in queues.values())
    return max([_MOMENT, *(each for each in budgets if each is not None)])
