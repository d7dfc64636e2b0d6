"""The edges of the streams of a graph: where rows and bounds enter it.

Rules:
- A stream may have several sources: its own, and one per outlet (its late rows, say). What is admitted enters each.
- Rows that are quarantined are noted with their reason, and enter the outlet that reads them.
- A batch is cut into the pieces that operators will take, and the bound that a row has set rides on the piece it ends.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Literal

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND, Batch, Cause, JointPunctuation, Microseconds, Punctuation, Times
from millrace.kernel.graph.delivery import Delivery, usable
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.graph.step_size import StepSize
from millrace.kernel.progress.admission import Admission
from millrace.kernel.progress.ingress import Ingress, Progress
from millrace.kernel.progress.quarantine import Locate, UnreadRows, as_unread, quarantine_rows
from millrace.kernel.progress.time_contract import LATE, QUARANTINED


class StreamEdges:
    """The streams of one graph, each with its edge and the sources that it fills; `live` is that of the executor."""

    def __init__(self, delivery: Delivery, step_size: StepSize, live: Container[str]) -> None:
        self._delivery, self._step_size, self._live = delivery, step_size, live
        self.ingress: dict[str, Ingress] = {}
        """The edge of each stream."""
        self.outlets: dict[str, list[GraphNode]] = {}
        """The sources of each stream."""
        self.of_sources: dict[GraphNode, Ingress] = {}

    def adopt(self, graph: Graph) -> None:
        """Take over the sources as they are now; a stream that stays keeps its edge."""
        self._nodes = graph.nodes
        known = dict(self.ingress)
        self.ingress.clear()
        self.outlets = {}
        for node in graph.sources():
            self.ingress[node.stream] = known.get(node.stream) or self._new(node)
            self.outlets.setdefault(node.stream, []).append(node)
        self.of_sources = {node: self.edge(node) for node in graph.sources()}
        for name, nodes in self.outlets.items():
            self.ingress[name].windows = tuple(node.windows for node in nodes if node.windows)

    def _new(self, node: GraphNode) -> Ingress:
        assert node.stream_contract is not None
        return Ingress(node.stream_contract, node.stream in self._live)

    def edge(self, source: GraphNode) -> Ingress:
        """The edge that a source's bound comes from: its stream's, or that of its outlet."""
        ingress = self.ingress[source.stream]
        return ingress if source.stream == source.name else ingress.outlet(source.outlet)

    # Rows

    def push(self, stream: str, rows: pa.RecordBatch, now: Microseconds, locate: Locate | None = None) -> None:
        """Raw rows of a stream: stamped, checked against its bound, and put in its buffers.

        `locate` finds the text and the place of those that are quarantined.
        """
        admission = self.ingress[stream].admit(rows, now)
        if admission.aside:
            self._set_aside(stream, as_unread(admission.aside, rows, locate), now)
        self._enter(stream, admission, now)

    def push_stamped_ahead(self, stream: str, batch: Batch, now: Microseconds, locate: Locate | None = None) -> None:
        """Rows of a stream that were given their time by `Ingress.stamped_ahead`, as they arrive."""
        admission = self.ingress[stream].enter(batch, now)
        if admission.aside:
            self._set_aside(stream, as_unread(admission.aside, batch.rows, locate), now)
        self._enter(stream, admission, now)

    def _enter(self, stream: str, admission: Admission, now: Microseconds) -> None:
        """Fill the buffers of a stream and its outlets."""
        ingress = self.ingress[stream]
        for node in self.outlets[stream]:
            batch, bounds = admission.admitted, admission.bounds
            if node.outlet == QUARANTINED:
                continue
            if node.outlet == LATE:
                late = self.of_sources[node].admit(admission.late.rows, now)
                batch, bounds = late.admitted, late.bounds
            elif node.windows:
                batch, bounds = admission.through(node.windows), ()
            elif node.outlet:
                batch, bounds = ingress.through(node.outlet, batch), ()
            for piece in self._pieces(node, batch, bounds):
                self._delivery.put(node, piece)
        self.promise(stream)

    def _pieces(self, node: GraphNode, batch: Batch, bounds: Times | tuple[Microseconds, ...]) -> Iterable[Batch]:
        """The rows as an operator will take them, each piece ended by the bound that its last row has set."""
        size = self._step_size.piece(node) or len(batch) or 1
        for start in range(0, len(batch), size):
            stop = min(start + size, len(batch))
            until = usable(node, int(bounds[stop - 1])) if len(bounds) else NO_BOUND
            node.promised = max(node.promised, until)
            if self._delivery.traces:
                reached = int(bounds[stop - 1]) if len(bounds) else self.of_sources[node].bound
                self._delivery.released_by(node.stream, "data", reached)
            yield Batch.cut(batch.block, batch.start + start, batch.start + stop, until if until > NO_BOUND else None)

    def push_stamped(self, source: str, batch: Batch, release: Cause | None = None) -> None:
        """Rows that were stamped elsewhere, checked against the bound once more; `observe` follows them.

        Of rows that other graphs made, `release` says what released them there, if that is traced.
        """
        node, ingress = self._nodes[source], self.ingress[source]
        self._delivery.released_by(source, "data", ingress.bound)
        self._delivery.release = release or self._delivery.release
        admitted = ingress.readmit(batch, node.reached(ingress.bound)).admitted
        if len(admitted):
            self._delivery.put(node, admitted)

    def reject(self, stream: str, unread: UnreadRows, now: Microseconds) -> None:
        """Quarantine rows that could not be read at all."""
        self.ingress[stream].reject(unread)
        self._set_aside(stream, unread, now)
        self.promise(stream)

    def _set_aside(self, stream: str, unread: UnreadRows, now: Microseconds) -> None:
        """Note rows that are quarantined, and give them to the outlet that reads them."""
        self.ingress[stream].aside.note(unread)
        for node in self.outlets[stream]:
            if node.outlet == QUARANTINED:
                admission = self.of_sources[node].admit(quarantine_rows(unread), now)
                for piece in self._pieces(node, admission.admitted, admission.bounds):
                    self._delivery.put(node, piece)

    def backlog(self, stream: str) -> int:
        """How many rows of a stream wait for an operator to take them."""
        return max((arc.rows for node in self.outlets[stream] for arc in node.outputs), default=0)

    # Bounds

    def observe(self, source: str, progresses: Sequence[Progress]) -> None:
        """Learn how far a stream that is stamped elsewhere has come, file by file, and promise it."""
        outlet = "" if self._nodes[source].windows else self._nodes[source].outlet
        self.ingress[source].follow([each["outlets"][outlet] for each in progresses] if outlet else progresses)
        self.promise(source)

    def promise(self, stream: str, how: Literal["data", "end"] = "data", release: Cause | None = None) -> None:
        """Send a stream's bounds to the operators that can use them, and what single groups of it promise.

        `release` says what brought about the bound of another graph, if that is traced.
        """
        groups = self.ingress[stream].order.group_promises()
        for node in self.outlets[stream]:
            self._delivery.released_by(stream, how, self.of_sources[node].bound)
            self._delivery.release = release or self._delivery.release
            bound = Punctuation(node.reached(self.of_sources[node].bound))
            self._delivery.send(node, [bound] if groups is None or node.outlet else [bound, groups])

    def promise_jointly(self, source: str, until: tuple[Microseconds, Microseconds]) -> None:
        """Send a promise about pairs of times to the operators that read a source."""
        self._delivery.send(self._nodes[source], [JointPunctuation(until)])

    def end(self, stream: str) -> None:
        """Take the stream as ended: its last bound closes everything."""
        self.ingress[stream].end()
        self.promise(stream, "end")
