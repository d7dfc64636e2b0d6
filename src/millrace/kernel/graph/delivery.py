"""How what a node yields reaches its consumers.

Rules:
- A bound that follows rows rides on their batch. One that stands alone becomes a punctuation, and only when it has
  advanced to a boundary that some operator downstream can use (004 A.1.1). An ETS is sent as it is.
- An ETS on demand goes by ETS arcs, past operators that only pass bounds on, straight into the registers of those that
  sense them; if an element waits in a buffer on the way, it goes as punctuation, behind it (001 section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    Batch,
    Cause,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.graph.graph import Arc, GraphNode
from millrace.kernel.operator import Operator


class Delivery:
    """Fills the buffers of a graph, and knows how much is in them and in operators."""

    def __init__(self, *, ets_arcs: bool, merge_punctuation: bool) -> None:
        self.ets_arcs = ets_arcs
        self.merge_punctuation = merge_punctuation
        self.queued = 0
        """Rows and punctuations in buffers, and rows held by operators."""
        self.peak = 0
        self.traces = False
        """True if some query tells what let its rows leave."""
        self.release: Cause | None = None
        """What lets the elements leave that are put into buffers now; only if that is traced."""
        self.streams: Mapping[str, str] = {}
        """The streams of sources that have other names."""

    def released_by(self, source: str, how: Literal["data", "ets", "end"], until: Microseconds) -> None:
        """Note what lets the next elements leave, if that is traced."""
        if self.traces:
            self.release = Cause(self.streams.get(source, source), how, until)

    def send(self, node: GraphNode, outputs: Iterable[Element], by_arc: bool = False) -> None:
        """Put what a node yields in its buffer; an ETS may go `by_arc`."""
        rows: Batch | None = None
        for output in outputs:
            if isinstance(output, Batch):
                if rows is not None:
                    self.put(node, rows)
                rows = output if output.until is None else output.ending(None)
                continue
            if isinstance(output, GroupPunctuation | JointPunctuation):
                if rows is not None:
                    self.put(node, rows)
                    rows = None
                self._put_element(node, output)
                continue
            until = output.until if output.ets else usable(node, output.until)
            if until <= node.promised:
                continue
            node.promised = until
            if rows is not None and not output.ets:
                rows = rows.ending(until)
                continue
            if rows is not None:
                self.put(node, rows)
                rows = None
            self._put_bound(node, Punctuation(until, output.ets), by_arc)
        if rows is not None:
            self.put(node, rows)

    def put(self, node: GraphNode, batch: Batch) -> None:
        """Add rows to a node's buffer."""
        rows = batch.stop - batch.start
        node.metrics.rows_out += rows
        node.buffer.put(batch, merge=self.merge_punctuation, release=self.release)
        self.queued += rows
        if self.queued > self.peak:
            self.peak = self.queued

    def _put_bound(self, node: GraphNode, punctuation: Punctuation, by_arc: bool) -> None:
        paths = node.ets_paths
        if not paths:
            return
        node.metrics.punctuations_out += 1
        if by_arc and self.ets_arcs and all(_clear(path) for path in paths):
            for path in paths:
                path[-1].release = self.release
                _pass_along(path, punctuation.until)
            node.tsm_successor = paths[0][-1].consumer
            return
        self._put_element(node, punctuation)

    def _put_element(self, node: GraphNode, element: Punctuation | GroupPunctuation | JointPunctuation) -> None:
        before = node.buffer.size
        node.buffer.put(element, merge=self.merge_punctuation, release=self.release)
        self.queued += node.buffer.size - before
        self.peak = max(self.peak, self.queued)


def usable(node: GraphNode, until: Microseconds) -> Microseconds:
    """The greatest bound up to `until` that some operator downstream of a node can use."""
    if node.users is None or until == END_OF_TIME:
        return until
    return max([user.usable(until) for user in node.users], default=NO_BOUND)


def users(node: GraphNode) -> list[Operator] | None:
    """The operators downstream that can use only some bounds; None when one can use every advance."""
    found: list[Operator] = []
    for arc in node.outputs:
        operator = arc.consumer.operator
        if arc.consumer.takes_bounds:
            return None
        if operator is None:
            continue
        below = None if operator.uses_every_bound else users(arc.consumer)
        if below is None:
            return None
        found += [operator, *below]
    return found


def ets_arcs(node: GraphNode) -> list[list[Arc]]:
    """The ETS arcs out of a node, each as the arcs it spans: the last one leads to an operator that senses bounds.

    They skip operators that only pass bounds on; where such an operator leads to sinks alone, none arises.
    """
    found: list[list[Arc]] = []
    for arc in node.outputs:
        if arc.consumer.senses_bounds:
            found.append([arc])
        else:
            found += [[arc, *rest] for rest in ets_arcs(arc.consumer)]
    return found


def _clear(path: list[Arc]) -> bool:
    """True if no element waits on an ETS arc, and every query it passes allows it."""
    return all(not arc.pending and arc.consumer.ets_arcs for arc in path)


def _pass_along(path: list[Arc], until: Microseconds) -> None:
    """Write an ETS into the register at the end of its arc; the operators skipped are as if they had passed it on."""
    for arc in path[:-1]:
        arc.register = arc.consumer.bound = max(arc.register, until)
        arc.consumer.promised = max(arc.consumer.promised, until)
    if path[-1].register < until:
        path[-1].enable(until)
