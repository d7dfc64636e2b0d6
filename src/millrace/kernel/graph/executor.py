"""The two-step cycle over a query graph (001 Fig. 4), and enabling timestamps (000 section 4, 001 section 4).

Rules:
- Execution step: an operator takes one element (of a batch at most `rows_per_step` rows). Continuation step: its rule
  names the next operator. When a rule gives control back, the scheduler chooses (see scheduler.py).
- A bound that comes with rows rides on their batch. One that stands alone is sent only when it has advanced to a
  boundary that some operator downstream can use (004 A.1.1); an ETS is sent as it is.
- Control that has walked back without finding input asks the sources behind an operator that waits for an ETS, but
  only if all of them are silent and together they would release something: so every ETS helps, and the cycle ends.
- An ETS goes by ETS arcs past operators that only pass bounds on, straight into the register of the next one that
  senses them, if nothing stands in the buffers between (papers: the enhanced query graph); else as punctuation.
- State may be saved only when the graph is at rest, so arcs are never part of it. Queues that are shut may hold rows
  then (see releasing.py).
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
from millrace.kernel.graph.delivery import Sender, usable
from millrace.kernel.graph.graph import Graph, Node, ets_arcs, users
from millrace.kernel.graph.queue_gate import Allowance, Queues
from millrace.kernel.graph.row_account import counts_of
from millrace.kernel.graph.scheduler import Fragment, Scheduler
from millrace.kernel.graph.snapshot import Keeper, Place, Saved, newcomers
from millrace.kernel.graph.step import Stepper
from millrace.kernel.graph.strategy import rule_of, with_breaks
from millrace.kernel.metrics import Metrics, SinkMetrics, SourceMetrics
from millrace.kernel.progress.admission import LATE, Admission, Ingress, Progress
from millrace.kernel.progress.ets import enabling, possible_at, silent_until, speakers, wanted
from millrace.kernel.updates.queue import Queue

_CHAIN_EVERY = 4096
"""Steps between two looks at where break nodes would free most memory."""

_OTHERS_EVERY = 16
"""Steps between two looks at operators that wait elsewhere in the graph."""

__all__ = ["Executor", "Place", "Saved"]


class Executor:
    """Drives one query graph; a host pushes rows in, lets it run, and takes results out.

    `ets_arcs` and `merge_punctuation` can be switched off to compare; `live` names the streams whose rows come as they
    happen, which the guard against bad clocks measures by the clock.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        rows_per_step: int | None = None,
        ets_arcs: bool = True,
        merge_punctuation: bool = True,
        live: Container[str] = (),
    ) -> None:
        self.graph = graph
        self.rows_per_step = rows_per_step
        self.live = live
        self.ingress: dict[str, Ingress] = {}
        """The edge of each stream."""
        self.breaks: set[tuple[str, str]] = set()
        self.beats = True
        """Whether periodic ETS are made; a host whose streams have all ended needs no more of them."""
        self._scheduler = Scheduler(graph)
        self._steps = 0
        self._sender = Sender(ets_arcs=ets_arcs, merge_punctuation=merge_punctuation)
        self._queues = Queues()
        self._stepper = Stepper(self._sender, self._queues, rows_per_step)
        self._now: Microseconds = 0
        """The clock at the last step."""
        self._delivered: dict[str, SinkMetrics] = {}
        self._keeper = Keeper()
        self.adopt()

    # Topology

    def adopt(self) -> None:
        """Take over the graph as it is now, after nodes came or went: rules are mapped anew, nothing else changes."""
        graph = self.graph
        self._operators, self._sinks = graph.operators(), graph.sinks()
        self._keeper.forget(graph)
        self._queues.adopt(graph)
        self.ingress = {node.stream: self.ingress.get(node.stream) or self._ingress(node) for node in graph.sources()}
        self._edges = {node.name: self._edge(node) for node in graph.sources()}
        self._outlets: dict[str, list[Node]] = {}
        for node in graph.sources():
            self._outlets.setdefault(node.stream, []).append(node)
        self._delivered = {node.name: self._delivered.get(node.name) or SinkMetrics() for node in self._sinks}
        for node in graph.nodes.values():
            node.ets_paths, node.users = ets_arcs(node), users(node)
        for ingress in self.ingress.values():
            ingress.tell_anew()
        self._beating = [node for node in graph.sources() if self._edges[node.name].contract.every is not None]
        self._map()

    def _ingress(self, node: Node) -> Ingress:
        assert node.stream_contract is not None
        return Ingress(node.stream_contract, node.stream in self.live)

    def _edge(self, node: Node) -> Ingress:
        """The edge that a source's bound comes from: its stream's, or that of the outlet it stands for."""
        ingress = self.ingress[node.stream]
        return ingress if node.stream == node.name else ingress.outlet(node.outlet)

    def _map(self) -> None:
        """Break arcs, map rules, and count afresh what waits where."""
        with_breaks(self.graph, self.breaks)
        self._queues.recount()
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
        self._waiting = dict.fromkeys(node for node in (*self._operators, *self._sinks) if wanted(node))
        self._stepper.waiting = self._waiting
        self._sender.queued = sum(
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
                late = self._edges[node.name].admit(admission.late.rows, now)
                batch, bounds = late.admitted, late.bounds
            elif node.outlet:
                batch, bounds = ingress.through(node.outlet, batch), ()
            for piece in self._pieces(node, batch, bounds):
                self._sender.put(node, piece)
        self.promise(source)

    def _pieces(self, node: Node, batch: Batch, bounds: Times | tuple[Microseconds, ...]) -> Iterable[Batch]:
        """The rows as an operator will take them, each piece ended by the bound that its last row has set."""
        size = self.rows_per_step or len(batch) or 1
        for start in range(0, len(batch), size):
            stop = min(start + size, len(batch))
            until = usable(node, int(bounds[stop - 1])) if len(bounds) else NO_BOUND
            node.promised = max(node.promised, until)
            yield Batch.cut(batch.block, batch.start + start, batch.start + stop, until if until > NO_BOUND else None)

    def push_stamped(self, source: str, batch: Batch) -> None:
        """Rows that were stamped elsewhere, checked against the bound once more; `observe` follows them."""
        admitted = self.ingress[source].readmit(batch).admitted
        if len(admitted):
            self._sender.put(self.graph.nodes[source], admitted)

    def observe(self, source: str, progresses: Sequence[Progress]) -> None:
        """Learn how far a stream that is stamped elsewhere has come, file by file, and promise it."""
        outlet = self.graph.nodes[source].outlet
        self.ingress[source].follow([each["outlets"][outlet] for each in progresses] if outlet else progresses)
        self.promise(source)

    def reject(self, source: str, rows: int) -> None:
        """Count rows that could not be read at all."""
        self.ingress[source].received += rows
        self.ingress[source].quarantined += rows

    def promise(self, source: str) -> None:
        """Send a stream's bounds to those who can use them, and what single groups of it promise."""
        news = self.ingress[source].news()
        for node in self._outlets[source]:
            bound = Punctuation(self._edges[node.name].bound)
            self._sender.send(node, [bound] if news is None or node.outlet else [bound, news])

    def promise_jointly(self, source: str, until: tuple[Microseconds, Microseconds]) -> None:
        """Pass a promise about pairs of times on to those who read a source."""
        self._sender.send(self.graph.nodes[source], [JointPunctuation(until)])

    def end(self, source: str) -> None:
        """Take the stream as ended: its last bound closes everything."""
        self.ingress[source].end()
        self.promise(source)

    def backlog(self, source: str) -> int:
        """How many rows of a stream wait for an operator to take them."""
        return max((arc.rows for node in self._outlets[source] for arc in node.outputs), default=0)

    # Work

    def run(self, clock: Clock, silent: Container[str] = (), budget: Microseconds | None = None) -> bool:
        """Work until nothing is left to do, or the budget is spent; whether the graph is at rest.

        `silent` names the sources that may be spoken for.
        """
        until = None if budget is None else clock.now() + budget
        while self.step(clock, silent):
            if until is not None and clock.now() >= until:
                return False
        return True

    def step(self, clock: Clock, silent: Container[str] = ()) -> bool:
        """One turn of the cycle; False when the graph is at rest."""
        began, scheduler = clock.now(), self._scheduler
        self._now = began
        if self._beating and self.beats:
            self._beat(began, silent)
        chosen = scheduler.next(began)
        if chosen is None:
            return bool(self._waiting) and self._enable(self._waiting, began, silent)
        fragment, node = chosen
        fragment.taken += self._stepper.step(node, clock)
        now = clock.now()
        node.metrics.cost += now - began
        scheduler.charge(fragment, now - began)
        self._continue(fragment, node)
        self._steps += 1
        if self._waiting and (fragment.current is None or self._steps % _OTHERS_EVERY == 0):
            # Who has no input is never given control, and must not wait for others to run out of theirs.
            everyone = self._steps % _OTHERS_EVERY == 0
            self._enable([each for each in self._waiting if everyone or each in fragment.nodes], now, silent)
        if self._steps % _CHAIN_EVERY == 0 and any(each.chain for each in self._operators):
            self.place_breaks()
        return True

    def _continue(self, fragment: Fragment, node: Node) -> None:
        """Follow the rules to the next operator with input; None where they give control back."""
        assert node.rule is not None
        following = node.rule(node, fragment.taken)
        if following is not node:
            fragment.taken = 0
        while following is not None and not following.waiting:
            assert following.rule is not None
            following = following.rule(following, 0)
        fragment.current = following

    # Queues

    def open_queues(self, rows: Allowance | Mapping[str, Allowance]) -> None:
        """Let each queue let go of so many rows until the next call (None: any number), or each by name.

        Queues that a mapping does not name are shut.
        """
        self._queues.open(rows)

    def shut_queues(self) -> None:
        """Let no queue let go: the graph comes to rest with rows in them. One whose input has ended still empties."""
        self._queues.open(0)

    def open_queues_of(self, query: str) -> None:
        """Let the queues of one query let go of all they hold, and no other queue."""
        self._queues.open(dict.fromkeys((node.name for node in self._queues.of(query)), None))

    def queues(self) -> dict[str, Queue]:
        """The queues by the names of their nodes."""
        return {node.name: queue for node, queue in self._queues.nodes.items()}

    def queue_titles(self) -> dict[str, str]:
        """The queues as a person is told of them: by node the name of its query, with a number from the second on."""
        return self._queues.titles()

    def staleness(self, query: str, now: Microseconds) -> pa.Table:
        """How stale each key of a query is (see `Queue.staleness`)."""
        return self._queues.staleness(query, now)

    @property
    def entering(self) -> bool:
        """Whether something that has come is still on its way into a queue."""
        return self._queues.entering

    @property
    def held_back(self) -> bool:
        """Whether a queue holds rows that it could let go, if only it might."""
        return self._queues.held_back

    # Enabling timestamps

    def _beat(self, now: Microseconds, silent: Container[str]) -> None:
        """Send the periodic ETS that have come due."""
        for node in self._beating:
            edge = self._edges[node.name]
            if edge.contract.kind == "external" and node.stream not in silent:
                continue
            known = silent_until(node, now, silent, self._edges)
            for beat in edge.beats(known, every_one=not self._sender.merge_punctuation):
                until = edge.ets(beat)
                if until is not None:
                    self._speak(node, until, now, by_arc=False)

    def _enable(self, nodes: Iterable[Node], now: Microseconds, silent: Container[str]) -> bool:
        """Make the ETS that release something for one of the nodes; False when there are none."""
        for node in nodes:
            for asked in speakers(node, silent, self._edges):
                found = enabling(asked, now, silent, self._edges)
                for source, until in found.items():
                    self._speak(source, until, now, by_arc=True)
                if found:
                    return True
        return False

    def _speak(self, source: Node, until: Microseconds, now: Microseconds, *, by_arc: bool) -> None:
        self._edges[source.name].raise_bound(until, now)
        self.ingress[source.stream].enabled += 1
        self._sender.send(source, [Punctuation(until, ets=True)], by_arc)

    def wake_at(self, silent: Container[str]) -> Microseconds | None:
        """When an ETS is due or will release something, if the sources stay silent; None is never.

        At once if a queue holds rows that it may not let go now.
        """
        if self._queues.held_back:
            return self._now
        times = [beat for node in self._beating if (beat := self._edges[node.name].next_beat) is not None]
        release = self.release_at(silent)
        return min(times if release is None else [*times, release], default=None)

    def release_at(self, silent: Container[str]) -> Microseconds | None:
        """When an ETS on demand will release something, if the sources stay silent; None is never."""
        asked = [each for node in self._waiting for each in speakers(node, silent, self._edges)]
        reached = [possible_at(each, self._edges) for each in asked]
        return min([time for time in reached if time is not None], default=None)

    # Output

    @property
    def has_results(self) -> bool:
        """Whether `take` would give anything."""
        return any(sink.waiting for sink in self._sinks)

    def take(self, now: Microseconds) -> dict[str, list[Batch]]:
        """The results since the last call, by sink; punctuation ends here."""
        taken: dict[str, list[Batch]] = {}
        for sink in self._sinks:
            while sink.waiting:
                arc = sink.inputs[0]
                before = arc.producer.buffer.size
                element = arc.take()
                self._sender.queued += arc.producer.buffer.size - before
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
        """Say which bound whoever empties a sink waits for: the sources behind it may be asked for an ETS."""
        node = self.graph.nodes[sink]
        node.demand = None if until is None or until <= self.promised(sink) else until
        self._waiting.pop(node, None)
        if node.demand is not None:
            self._waiting[node] = None

    def metrics(self, now: Microseconds | None = None) -> Metrics:
        """A snapshot of all counts; staleness as of now, or of the last step."""
        at = self._now if now is None else now
        return Metrics(
            sources={name: self._source_metrics(name) for name in self.ingress},
            nodes={node.name: node.metrics.copy() for node in self._operators},
            sinks={name: metrics.copy() for name, metrics in self._delivered.items()},
            held={node.name: node.operator.held for node in self._operators if node.operator is not None},
            state_bytes={node.name: node.operator.state_bytes for node in self._operators if node.operator is not None},
            peak_queued=self._sender.peak,
            turned_away={
                node.name: node.operator.turned_away
                for node in self._operators
                if node.operator is not None and node.operator.turned_away
            },
            queues={node.name: queue.queue_metrics(at) for node, queue in self._queues.nodes.items()},
            titles=self._queues.titles(),
        )

    def _source_metrics(self, name: str) -> SourceMetrics:
        ingress, counts = self.ingress[name], counts_of(self._outlets[name])
        return SourceMetrics(
            received=ingress.received,
            late=ingress.late,
            quarantined=ingress.quarantined,
            buffered=counts.waiting,
            bound=ingress.bound,
            greatest=ingress.greatest,
            enabled=ingress.enabled,
            shed=counts.shed,
            superseded=counts.superseded,
        )

    # State

    def save(self) -> Saved:
        """What changed since the last save; only at rest, with all results taken."""
        assert not any(node.waiting for node in self.graph.nodes.values()), "state is saved at rest"
        return self._keeper.save(self.graph, self.ingress)

    def restore(self, control: Mapping[str, Any], segments: Mapping[Place, pa.Table]) -> None:
        """Go on from the last control and all live segments."""
        self._keeper.restore(self.graph, self.ingress, control, segments)
        self._map()
        new = newcomers(self.graph, control)
        for ingress in self.ingress.values() if new else ():
            ingress.tell_anew()
        for stream in {node.stream for node in new if node.is_source}:
            # Others may have read the stream by another outlet before.
            self.promise(stream)
