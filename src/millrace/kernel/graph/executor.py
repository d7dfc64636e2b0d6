"""The two-step cycle over a query graph (001 Fig. 4).

Rules:
- Execution step (step.py): an operator takes one element, of a batch some rows or all (step_size.py). Continuation
  step: its rule (strategy.py) names the next operator. When a rule gives control back, the scheduler chooses
  (scheduler.py).
- A bound that comes with rows rides on their batch; one that stands alone is a punctuation (delivery.py).
- When nothing has input, and now and then before, the sources behind operators that wait are asked for an enabling
  timestamp (ets_demand.py).
- State may be saved only when the graph is at rest, so arcs are never part of it. Queues that are shut may hold rows
  then (queue_gate.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millrace.kernel.clock import Clock
from millrace.kernel.elements import (
    NO_BOUND,
    Batch,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
    Times,
)
from millrace.kernel.graph import chain
from millrace.kernel.graph.delivery import Delivery, ets_arcs, usable, users
from millrace.kernel.graph.ets_demand import EtsDemand, wanted
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.graph.operator_modes import by_query
from millrace.kernel.graph.queue_gate import QueueGate
from millrace.kernel.graph.row_account import source_metrics
from millrace.kernel.graph.scheduler import Fragment, Scheduler
from millrace.kernel.graph.snapshot import Place, Snapshot, SnapshotLog, nodes_not_in
from millrace.kernel.graph.step import Step
from millrace.kernel.graph.step_size import StepSize
from millrace.kernel.graph.strategy import rule_of, with_breaks
from millrace.kernel.metrics import Metrics, SinkMetrics
from millrace.kernel.progress.admission import Admission
from millrace.kernel.progress.ingress import Ingress, Progress
from millrace.kernel.progress.stamp import Stamp
from millrace.kernel.progress.time_contract import LATE

_CHAIN_EVERY = 4096
"""Steps between two looks at where break nodes would free most memory."""

_OTHERS_EVERY = 16
"""Steps between two looks at operators that wait elsewhere in the graph."""


class Executor:
    """Drives one query graph; a host pushes rows in, lets it run, and takes results out.

    `rows_per_step` and `moment` say how large steps are (see step_size.py).
    `ets_arcs` and `merge_punctuation` can be switched off to compare; `live` names the streams whose rows come as they
    happen, so that the clock tells which of them are from the future.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        rows_per_step: int | None = None,
        ets_arcs: bool = True,
        merge_punctuation: bool = True,
        live: Container[str] = (),
        moment: Microseconds | None = None,
    ) -> None:
        self.graph = graph
        self.step_size = StepSize(rows_per_step, moment)
        self.live = live
        self.ingress: dict[str, Ingress] = {}
        """The edge of each stream."""
        self.breaks: set[tuple[str, str]] = set()
        self.queue_gate = QueueGate()
        """The queues of the graph: how many rows each may release, and how stale its keys are."""
        self._scheduler = Scheduler(graph)
        self.steps = 0
        """How many times an operator has taken something."""
        self._delivery = Delivery(ets_arcs=ets_arcs, merge_punctuation=merge_punctuation)
        self.ets_demand = EtsDemand(self._delivery)
        self._step = Step(self._delivery, self.queue_gate, self.ets_demand, self.step_size)
        self._now: Microseconds = 0
        """The clock at the last step."""
        self._delivered: dict[str, SinkMetrics] = {}
        self._snapshots = SnapshotLog()
        self.adopt()

    # Topology

    def adopt(self) -> None:
        """Take over the graph as it is now, after nodes came or went: rules are mapped anew, nothing else changes."""
        graph = self.graph
        self._operators, self._sinks = graph.operators(), graph.sinks()
        self._snapshots.forget(graph)
        self.queue_gate.adopt(graph)
        self.ingress = {node.stream: self.ingress.get(node.stream) or self._ingress(node) for node in graph.sources()}
        self._edges = {node: self.edge(node) for node in graph.sources()}
        self._outlets: dict[str, list[GraphNode]] = {}
        for node in self._edges:
            self._outlets.setdefault(node.stream, []).append(node)
        for name, nodes in self._outlets.items():
            self.ingress[name].windows = tuple(node.windows for node in nodes if node.windows)
        stamps = {node: node.operator.edge for node in self._operators if isinstance(node.operator, Stamp)}
        self.ets_demand.adopt(self.ingress, {**self._edges, **stamps})
        self._delivered = {node.name: self._delivered.get(node.name) or SinkMetrics() for node in self._sinks}
        for node in graph.nodes.values():
            node.ets_paths, node.users = ets_arcs(node), users(node)
        for ingress in self.ingress.values():
            ingress.order.announce_all()
        self._map()

    def _ingress(self, node: GraphNode) -> Ingress:
        assert node.stream_contract is not None
        return Ingress(node.stream_contract, node.stream in self.live)

    def edge(self, source: GraphNode) -> Ingress:
        """The edge that a source's bound comes from: its stream's, or that of its outlet."""
        ingress = self.ingress[source.stream]
        return ingress if source.stream == source.name else ingress.outlet(source.outlet)

    def _map(self) -> None:
        """Break arcs, map rules, and count afresh what waits where."""
        with_breaks(self.graph, self.breaks)
        self.step_size.adopt(self.graph)
        self.queue_gate.recount()
        for node in self.graph.nodes.values():
            node.yielding = 0
            node.ready = node.done = None
            if node.operator is not None:
                node.rule = rule_of(node.strategy)[1]
            for arc in node.inputs:
                arc.pending = 0
        for node in self.graph.nodes.values():
            node.waiting = int(node.unfinished)
            for arc in node.inputs:
                arc.recount()
        self._scheduler = Scheduler(self.graph, self._scheduler)
        self.ets_demand.waiting = dict.fromkeys(node for node in (*self._operators, *self._sinks) if wanted(node))
        self._delivery.queued = sum(
            node.buffer.size + (node.operator.held if node.operator is not None else 0)
            for node in self.graph.nodes.values()
        )

    def set_breaks(self, breaks: Iterable[tuple[str, str]]) -> None:
        """Set virtual break nodes on these arcs, each named by its two operators, and unset all others."""
        self.breaks = set(breaks)
        self._map()

    def place_breaks(self) -> None:
        """Set break nodes where, as measured so far, operators free most memory per unit of work (Chain)."""
        placed = chain.place(self._operators)
        if placed.breaks != self.breaks:
            self.set_breaks(placed.breaks)
        self._scheduler.prefer(placed.priorities)

    # Input

    def push(self, source: str, rows: pa.RecordBatch, now: Microseconds) -> None:
        """Raw rows of a stream: stamped, checked against its bound, and put in its buffer."""
        self._enter(source, self.ingress[source].admit(rows, now), now)

    def push_stamped_ahead(self, source: str, batch: Batch, now: Microseconds) -> None:
        """Rows of a stream that were given their time by `Ingress.stamped_ahead`, as they arrive."""
        self._enter(source, self.ingress[source].enter(batch, now), now)

    def _enter(self, source: str, admission: Admission, now: Microseconds) -> None:
        """Fill the buffers of a stream and its outlets."""
        ingress = self.ingress[source]
        for node in self._outlets[source]:
            batch, bounds = admission.admitted, admission.bounds
            if node.outlet == LATE:
                late = self._edges[node].admit(admission.late.rows, now)
                batch, bounds = late.admitted, late.bounds
            elif node.windows:
                batch, bounds = admission.through(node.windows), ()
            elif node.outlet:
                batch, bounds = ingress.through(node.outlet, batch), ()
            for piece in self._pieces(node, batch, bounds):
                self._delivery.put(node, piece)
        self.promise(source)

    def _pieces(self, node: GraphNode, batch: Batch, bounds: Times | tuple[Microseconds, ...]) -> Iterable[Batch]:
        """The rows as an operator will take them, each piece ended by the bound that its last row has set."""
        size = self.step_size.piece(node) or len(batch) or 1
        for start in range(0, len(batch), size):
            stop = min(start + size, len(batch))
            until = usable(node, int(bounds[stop - 1])) if len(bounds) else NO_BOUND
            node.promised = max(node.promised, until)
            yield Batch.cut(batch.block, batch.start + start, batch.start + stop, until if until > NO_BOUND else None)

    def push_stamped(self, source: str, batch: Batch) -> None:
        """Rows that were stamped elsewhere, checked against the bound once more; `observe` follows them."""
        node, ingress = self.graph.nodes[source], self.ingress[source]
        admitted = ingress.readmit(batch, node.reached(ingress.bound)).admitted
        if len(admitted):
            self._delivery.put(node, admitted)

    def observe(self, source: str, progresses: Sequence[Progress]) -> None:
        """Learn how far a stream that is stamped elsewhere has come, file by file, and promise it."""
        outlet = "" if self.graph.nodes[source].windows else self.graph.nodes[source].outlet
        self.ingress[source].follow([each["outlets"][outlet] for each in progresses] if outlet else progresses)
        self.promise(source)

    def reject(self, source: str, rows: int) -> None:
        """Count rows that could not be read at all."""
        self.ingress[source].received += rows
        self.ingress[source].quarantined += rows

    def promise(self, source: str) -> None:
        """Send a stream's bounds to the operators that can use them, and what single groups of it promise."""
        groups = self.ingress[source].order.group_promises()
        for node in self._outlets[source]:
            bound = Punctuation(node.reached(self._edges[node].bound))
            self._delivery.send(node, [bound] if groups is None or node.outlet else [bound, groups])

    def promise_jointly(self, source: str, until: tuple[Microseconds, Microseconds]) -> None:
        """Send a promise about pairs of times to the operators that read a source."""
        self._delivery.send(self.graph.nodes[source], [JointPunctuation(until)])

    def end(self, source: str) -> None:
        """Take the stream as ended: its last bound closes everything."""
        self.ingress[source].end()
        self.promise(source)

    def backlog(self, source: str) -> int:
        """How many rows of a stream wait for an operator to take them."""
        return max((arc.rows for node in self._outlets[source] for arc in node.outputs), default=0)

    # Work

    def run(self, clock: Clock, silent: Container[str] = (), budget: Microseconds | None = None) -> bool:
        """Work until nothing is left to do, or the budget is spent; True if the graph is at rest.

        `silent` names the streams that are silent (see ets_demand.py).
        """
        until = None if budget is None else clock.now() + budget
        while self.step(clock, silent):
            if until is not None and clock.now() >= until:
                return False
        return True

    def step(self, clock: Clock, silent: Container[str] = ()) -> bool:
        """One turn of the cycle; False when the graph is at rest."""
        began, scheduler, demand = clock.now(), self._scheduler, self.ets_demand
        self._now = began
        demand.send_periodic(began, silent)
        chosen = scheduler.next(began)
        if chosen is None:
            return bool(demand.waiting) and demand.send_demanded(demand.waiting, began, silent)
        fragment, node = chosen
        rows = self._step.run(node, clock)
        fragment.taken += rows
        now = clock.now()
        node.metrics.cost += now - began
        if node.timed:
            self.step_size.measured(node, rows, now - began)
        scheduler.charge(fragment, now - began)
        self._continue(fragment, node)
        self.steps += 1
        if demand.waiting and (fragment.current is None or self.steps % _OTHERS_EVERY == 0):
            # An operator without input never gets control, and must not wait until all others have no more input.
            everyone = self.steps % _OTHERS_EVERY == 0
            nodes = [each for each in demand.waiting if everyone or each in fragment.nodes]
            demand.send_demanded(nodes, now, silent)
        if self.steps % _CHAIN_EVERY == 0 and any(each.chain for each in self._operators):
            self.place_breaks()
        return True

    def _continue(self, fragment: Fragment, node: GraphNode) -> None:
        """Follow the rules to the next operator with input; None where they give control back."""
        assert node.rule is not None
        following = node.rule(node, fragment.taken)
        if following is not node:
            fragment.taken = 0
        while following is not None and not following.waiting:
            assert following.rule is not None
            following = following.rule(following, 0)
        fragment.current = following

    def wake_at(self, silent: Container[str]) -> Microseconds | None:
        """When an ETS is due or will release something, if the streams stay silent; None is never.

        At once if a queue has releasable rows but no allowance.
        """
        if self.queue_gate.held_back:
            return self._now
        times = (self.ets_demand.next_beat(), self.ets_demand.release_at(silent))
        return min([time for time in times if time is not None], default=None)

    # Output

    @property
    def has_results(self) -> bool:
        """True if `take` would give anything."""
        return any(sink.waiting for sink in self._sinks)

    def take(self, now: Microseconds) -> dict[str, list[Batch]]:
        """The results since the last call, by sink; punctuation ends here."""
        taken: dict[str, list[Batch]] = {}
        for sink in self._sinks:
            while sink.waiting:
                arc = sink.inputs[0]
                before = arc.producer.buffer.size
                element = arc.take()
                self._delivery.queued += arc.producer.buffer.size - before
                if isinstance(element, Batch):
                    self._delivered[sink.name].count(element, now)
                    taken.setdefault(sink.name, []).append(element)
                if isinstance(element, JointPunctuation):
                    sink.joint = element.until
                elif not isinstance(element, GroupPunctuation) and element.until is not None:
                    arc.register = max(arc.register, element.until)
                    self.want(sink.name, sink.demand)
        return taken

    def promised(self, sink: str) -> Microseconds:
        """The bound of all that a sink will give after what has been taken; only of one that takes bounds."""
        return self.graph.nodes[sink].inputs[0].register

    def promised_jointly(self, sink: str) -> tuple[Microseconds, Microseconds] | None:
        """The last promise about pairs of times that a sink has been given."""
        return self.graph.nodes[sink].joint

    def want(self, sink: str, until: Microseconds | None) -> None:
        """Note which bound the consumer of a sink waits for: the sources upstream may be asked for an ETS."""
        node = self.graph.nodes[sink]
        node.demand = None if until is None or until <= self.promised(sink) else until
        self.ets_demand.note(node)

    def metrics(self, now: Microseconds | None = None) -> Metrics:
        """A snapshot of all counts; staleness as of now, or of the last step."""
        at = self._now if now is None else now
        return Metrics(
            sources={name: source_metrics(edge, self._outlets[name]) for name, edge in self.ingress.items()},
            nodes={node.name: node.metrics.copy() for node in self._operators},
            sinks={name: metrics.copy() for name, metrics in self._delivered.items()},
            held={node.name: node.operator.held for node in self._operators if node.operator is not None},
            state_bytes={node.name: node.operator.state_bytes for node in self._operators if node.operator is not None},
            peak_queued=self._delivery.peak,
            turned_away={
                node.name: node.operator.turned_away
                for node in self._operators
                if node.operator is not None and node.operator.turned_away
            },
            queues={name: queue.queue_metrics(at) for name, queue in self.queue_gate.queues().items()},
            titles=self.queue_gate.titles(),
            joins=by_query(self._operators, lambda each: each.join_metrics()),
            aggregates=by_query(self._operators, lambda each: each.aggregate_metrics()),
        )

    # State

    def save(self) -> Snapshot:
        """What changed since the last save; only at rest, with all results taken."""
        assert not any(node.waiting for node in self.graph.nodes.values()), "state is saved at rest"
        return self._snapshots.save(self.graph, self.ingress)

    def restore(self, control: Mapping[str, Any], segments: Mapping[Place, pa.Table]) -> None:
        """Go on from the last control and all live segments."""
        self._snapshots.restore(self.graph, self.ingress, control, segments)
        self._map()
        new = nodes_not_in(control, self.graph)
        for ingress in self.ingress.values() if new else ():
            ingress.order.announce_all()
        for stream in {node.stream for node in new if node.is_source}:
            # Other queries may have read the stream by another outlet before.
            self.promise(stream)
