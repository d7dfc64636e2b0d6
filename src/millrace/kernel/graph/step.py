"""The execution step: an operator takes one element, and what it yields goes to its consumers.

Rules:
- An operator that has postponed work goes on with it before it gets anything else.
- Where held rows may leave first, an operator is told the bound that holds before its next rows, then gets them.
- An operator is told the least bound of its inputs, or, if it works by input, that of the one which advanced.
- A queue takes all its input before it releases rows, and is told the time before every call (see queue_gate.py).
"""

from __future__ import annotations

import pyarrow as pa

from millrace.errors import MillraceError, RunError
from millrace.kernel.clock import Clock
from millrace.kernel.elements import (
    NO_BOUND,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.graph.delivery import Delivery
from millrace.kernel.graph.ets_demand import EtsDemand
from millrace.kernel.graph.graph import Arc, GraphNode
from millrace.kernel.graph.queue_gate import QueueGate
from millrace.kernel.graph.step_size import StepSize
from millrace.kernel.metrics import MALFORMED
from millrace.kernel.operator import Operator
from millrace.kernel.progress.released import Released
from millrace.kernel.progress.stamp import Stamp
from millrace.kernel.updates.queue import Queue


class Step:
    """Lets operators work, of a batch on as many rows at once as `size` says."""

    def __init__(self, delivery: Delivery, queue_gate: QueueGate, ets_demand: EtsDemand, size: StepSize) -> None:
        self.delivery = delivery
        self.queue_gate = queue_gate
        self.ets_demand = ets_demand
        self.size = size

    def run(self, node: GraphNode, clock: Clock) -> int:
        """Let an operator take one element; how many rows that was."""
        operator = node.operator
        assert operator is not None
        began, compared = clock.now() if operator.learns_cost else 0, operator.compared
        malformed = MALFORMED.get()
        try:
            if operator.queues:
                rows = self._step_queue(node, clock)
            else:
                rows = self._go_on(node, operator) if operator.unfinished else self._take_one(node, operator, clock)
                node.keep_ready(operator.unfinished)
        except MillraceError:
            raise
        except pa.ArrowException as error:
            raise RunError(
                f'operator "{node.name}" failed: {str(error).splitlines()[0]}',
                hint="The rows it failed on were not committed; change the expression or filter such rows out.",
            ) from error
        node.malformed += MALFORMED.get() - malformed
        if operator.compared > compared:
            clock.compare(node.name, operator.compared - compared)
        if operator.learns_cost:
            operator.on_cost(clock.now() - began)
        if operator.holds or operator.queues:
            self._observe_waiting(node, operator, clock.now())
        if self.queue_gate.under_way:
            self.queue_gate.notify_delivered(clock)
        return rows

    def _step_queue(self, node: GraphNode, clock: Clock) -> int:
        """Let a queue take one element if there is one, else release rows."""
        queue = self.queue_gate.nodes[node]
        if node.waiting > node.unfinished:
            rows = self._take_one(node, queue, clock, queue)
        else:
            queue.on_time(clock.now())
            self.queue_gate.released(node)
            rows = self._go_on(node, queue)
        self.queue_gate.keep_ready(node, queue)
        return rows

    def _take_one(self, node: GraphNode, operator: Operator, clock: Clock, queue: Queue | None = None) -> int:
        arc = _next_input(node)
        if node.traced:
            self._trace(node, arc, clock)
        lead = _lead(arc) if operator.leads else NO_BOUND
        if lead > arc.register:
            self._handle(node, arc, Punctuation(lead), by_arc=False)
            return 0
        buffer = arc.producer.buffer
        before, by_arc = buffer.size, arc.active
        element = arc.take(self.size.of(node) if node.timed else node.most)
        self.delivery.queued += buffer.size - before
        rows = element.stop - element.start if isinstance(element, Batch) else 0
        clock.spend(node.name, rows, by_arc)
        if queue is not None:
            queue.on_time(clock.now())
        elif isinstance(operator, Stamp):
            operator.on_time(clock.now())
        self._handle(node, arc, element, by_arc)
        return rows

    def _trace(self, node: GraphNode, arc: Arc, clock: Clock) -> None:
        """Learn what released the next element of an input: the same releases what is made of that element."""
        self.delivery.release = node.release = arc.next_release()
        if isinstance(node.operator, Released):
            node.operator.on_release(node.release, clock.now())

    def _go_on(self, node: GraphNode, operator: Operator) -> int:
        """Let an operator go on with what it has postponed."""
        if node.traced:
            self.delivery.release = node.release
        held = operator.held
        outputs = list(operator.on_more(self.size.rows))
        self.delivery.queued += operator.held - held
        self.delivery.send(node, outputs)
        return 1

    def _handle(self, node: GraphNode, arc: Arc, element: Element, by_arc: bool) -> None:
        operator, metrics = node.operator, node.metrics
        assert operator is not None
        holds = operator.holds or operator.queues
        held = operator.held if holds else 0
        outputs: list[Element] = []
        if isinstance(element, Batch):
            metrics.rows_in += element.stop - element.start
            outputs += operator.on_batch(arc.port, element)
            until, ets = element.until, False
        elif isinstance(element, GroupPunctuation):
            metrics.punctuations_in += 1
            outputs += operator.on_groups(element)
            until, ets = None, False
        elif isinstance(element, JointPunctuation):
            metrics.punctuations_in += 1
            outputs += operator.on_joint(element)
            until, ets = None, False
        else:
            metrics.punctuations_in += 1
            until, ets = element.until, element.ets
        if until is not None and operator.by_input:
            if until > arc.told:
                arc.register = max(arc.register, until)
                arc.told = until
                node.bound = min([each.told for each in node.inputs])
                outputs += operator.on_bound(arc.port, Punctuation(until, ets))
        elif until is not None:
            if until > arc.register:
                arc.register = until
            least = arc.register if len(node.inputs) == 1 else min([each.register for each in node.inputs])
            if least > node.bound:
                node.bound = least
                outputs += operator.on_punctuation(Punctuation(least, ets))
        if holds:
            self.delivery.queued += operator.held - held
        if outputs:
            self.delivery.send(node, outputs, by_arc)

    def _observe_waiting(self, node: GraphNode, operator: Operator, now: Microseconds) -> None:
        metrics = node.metrics
        metrics.peak_held = max(metrics.peak_held, operator.held)
        ways = self.ets_demand.note(node)
        metrics.waits_for(min([min(needs.values()) for needs in ways], default=None), now)


def _lead(arc: Arc) -> Microseconds:
    """The bound that holds before the next rows of an input: neither they nor any row after them is below it."""
    buffer = arc.producer.buffer
    element = buffer.elements[arc.head - buffer.first] if not arc.active else None
    if not isinstance(element, Batch) or element.until is None:
        return NO_BOUND
    return min(element.until, int(element.times[arc.skipped :].min()))


def _next_input(node: GraphNode) -> Arc:
    """The input with the least register among those that have an element."""
    least = node.inputs[0]
    if len(node.inputs) > 1:
        for arc in node.inputs[1:]:
            if arc.pending and (not least.pending or arc.register < least.register):
                least = arc
    return least
