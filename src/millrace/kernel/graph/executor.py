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

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millrace.kernel.clock import Clock
from millrace.kernel.elements import (
    Batch,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
)
from millrace.kernel.graph import chain
from millrace.kernel.graph.delivery import Delivery, ets_arcs, users
from millrace.kernel.graph.ets_demand import EtsDemand, wanted
from millrace.kernel.graph.graph import Graph, GraphNode, sinks_below
from millrace.kernel.graph.operator_modes import by_query, operator_metrics
from millrace.kernel.graph.queue_gate import QueueGate
from millrace.kernel.graph.row_account import source_metrics
from millrace.kernel.graph.scheduler import Fragment, Scheduler
from millrace.kernel.graph.snapshot import Place, Snapshot, SnapshotLog, nodes_not_in
from millrace.kernel.graph.step import Step
from millrace.kernel.graph.step_size import StepSize
from millrace.kernel.graph.strategy import rule_of, with_breaks
from millrace.kernel.graph.stream_edges import StreamEdges
from millrace.kernel.metrics import Metrics, SinkMetrics
from millrace.kernel.progress.quarantine import Locate
from millrace.kernel.progress.released import PastRelease, Released, with_release
from millrace.kernel.progress.stamp import Stamp

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
        meter: Callable[[], Microseconds] | None = None,
    ) -> None:
        self.graph = graph
        self.step_size = StepSize(rows_per_step, moment)
        self.breaks: set[tuple[str, str]] = set()
        self.queue_gate = QueueGate()
        """The queues of the graph: how many rows each may release, and how stale its keys are."""
        self._scheduler = Scheduler(graph)
        self._meter = meter
        """What the work of operators is measured by; the clock if there is none."""
        self.steps = 0
        """How many times an operator has taken something."""
        self._delivery = Delivery(ets_arcs=ets_arcs, merge_punctuation=merge_punctuation)
        self.edges = StreamEdges(self._delivery, self.step_size, live)
        self.ingress = self.edges.ingress
        """The edge of each stream."""
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
        self.edges.adopt(graph)
        stamps = {node: node.operator.edge for node in self._operators if isinstance(node.operator, Stamp)}
        self.ets_demand.adopt(self.ingress, {**self.edges.of_sources, **stamps})
        self._delivered = {node.name: self._delivered.get(node.name) or SinkMetrics() for node in self._sinks}
        self._delivery.traces = graph.trace()
        for node in graph.nodes.values():
            node.ets_paths, node.users = ets_arcs(node), users(node)
        for ingress in self.ingress.values():
            ingress.order.announce_all()
        self._map()

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

    # Work

    def push(self, stream: str, rows: pa.RecordBatch, now: Microseconds, locate: Locate | None = None) -> None:
        """Raw rows of a stream, which enter the graph at its edge; `locate` finds the text of quarantined ones."""
        self.edges.push(stream, rows, now, locate)

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
        meter = self._meter
        started = began if meter is None else meter()
        rows = self._step.run(node, clock)
        fragment.taken += rows
        now = clock.now()
        node.metrics.cost += (now if meter is None else meter()) - started
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
                if sink.traced:
                    sink.release = arc.next_release()
                element = arc.take()
                self._delivery.queued += arc.producer.buffer.size - before
                if isinstance(element, Batch):
                    self._delivered[sink.name].count(element, now)
                    element = with_release(element, sink.release) if sink.traced else element
                    taken.setdefault(sink.name, []).append(element)
                if isinstance(element, JointPunctuation):
                    sink.joint = element.until
                elif not isinstance(element, GroupPunctuation) and element.until is not None:
                    arc.register = max(arc.register, element.until)
                    self.want(sink.name, sink.demand)
        return taken

    def name_streams(self, streams: Mapping[str, str]) -> None:
        """Say which streams the sources of a graph give, where they have other names."""
        self._delivery.streams = streams

    def releases(self) -> dict[str, list[PastRelease]]:
        """By query the last releases of its rows, where it tells them."""
        told = [node for node in self._operators if isinstance(node.operator, Released)]
        return {
            sink: list(node.operator.recent)
            for node in told
            for sink in sinks_below(node)
            if isinstance(node.operator, Released)
        }

    def forget_releases(self) -> None:
        """Begin anew with what `releases` gives."""
        for node in self._operators:
            if isinstance(node.operator, Released):
                node.operator.recent.clear()

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
            sources={name: source_metrics(edge, self.edges.outlets[name]) for name, edge in self.ingress.items()},
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
            lookups={
                node.name: found
                for node in self._operators
                if node.operator is not None and (found := node.operator.lookup_counts()) is not None
            },
            queues={name: queue.queue_metrics(at) for name, queue in self.queue_gate.queues().items()},
            titles=self.queue_gate.titles(),
            joins=by_query(self._operators, lambda each: each.join_metrics()),
            aggregates=by_query(self._operators, lambda each: each.aggregate_metrics()),
            malformed=self.malformed({}),
            operators={node.name: operator_metrics(node, at) for node in self._operators},
            arcs={
                (arc.producer.name, node.name, arc.port): (arc.rows, arc.register)
                for node in (*self._operators, *self._sinks)
                for arc in node.inputs
            },
        )

    def malformed(self, queries: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """By query the texts that its operators could not read; `queries` names those of sinks that are none."""
        found: Counter[str] = Counter()
        for node in self._operators:
            if node.malformed:
                leads = {query for sink in sinks_below(node) for query in queries.get(sink, [sink])}
                found.update(dict.fromkeys(leads, node.malformed))
        return dict(found)

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
            self.edges.promise(stream)
