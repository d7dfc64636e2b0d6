"""The two-step cycle over a query graph (001 Fig. 4), and on-demand enabling timestamps (000 section 4).

Rules:
- Execution step: the current operator takes one element (of a batch at most `rows_per_step` rows). Continuation
  step: its rule in the state table names the next operator.
- When a rule gives control back, the scheduler takes the operator furthest downstream that has input.
- When no operator has input, the sources behind an operator that waits are asked for an ETS, but only if all of them
  are silent and together they would release something: then each cycle emits, and it ends when none would.
- State may be saved only when the graph is at rest, so arcs are never part of it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millrace.errors import MillraceError, RunError
from millrace.kernel.clock import Clock
from millrace.kernel.elements import END_OF_TIME, Batch, Element, Microseconds, Punctuation
from millrace.kernel.graph import Arc, Graph, Node, sources_behind
from millrace.kernel.metrics import Metrics, NodeMetrics, SinkMetrics, SourceMetrics
from millrace.kernel.progress import Ingress
from millrace.kernel.state import Changes
from millrace.kernel.strategy import state_table

Place = tuple[str, int]
"""Where a segment belongs: an operator's name and the segment's number."""


@dataclass(frozen=True)
class Saved:
    """What changed since the last save: a small whole (`control`), segments added, places removed."""

    control: dict[str, Any]
    added: dict[Place, pa.Table]
    removed: list[Place]


class Executor:
    """Drives one query graph; a host pushes rows in, lets it run, and takes results out."""

    def __init__(self, graph: Graph, *, rows_per_step: int | None = None) -> None:
        self.graph = graph
        self.rows_per_step = rows_per_step
        self.ingress = {node.name: _ingress(node) for node in graph.sources()}
        self.table = state_table(graph)
        self._operators = graph.operators()
        self._sinks = graph.sinks()
        self._current: Node | None = None
        self._taken = 0
        self._metrics = {node.name: NodeMetrics() for node in self._operators}
        self._delivered = {node.name: SinkMetrics() for node in self._sinks}

    # Input

    def push(self, source: str, rows: pa.RecordBatch, now: Microseconds) -> None:
        """Raw rows of a stream: stamped, checked against its bound, and put on its arcs."""
        ingress = self.ingress[source]
        if ingress.bound == END_OF_TIME and rows.num_rows:
            raise RunError(
                f'stream "{source}" has ended, and now has {rows.num_rows} rows more',
                hint="A run with --until-end ends its streams for good: start anew with another checkpoint and sink.",
            )
        self._enter(source, ingress.admit(rows, now).admitted)

    def push_stamped(self, source: str, batch: Batch) -> None:
        """Rows that were stamped elsewhere, checked against the bound once more; `observe` follows them."""
        admitted = self.ingress[source].readmit(batch).admitted
        if len(admitted):
            self._send(self.graph.nodes[source], admitted)

    def observe(self, source: str, greatest: Microseconds, now: Microseconds) -> None:
        """Learn how far a stream that is stamped elsewhere has come, and promise it."""
        self.ingress[source].observe(greatest, now)
        self.promise(source)

    def reject(self, source: str, rows: int) -> None:
        """Count rows that could not be read at all."""
        self.ingress[source].received += rows
        self.ingress[source].quarantined += rows

    def promise(self, source: str) -> None:
        """Send a stream's bound down its arcs."""
        self._send(self.graph.nodes[source], Punctuation(self.ingress[source].bound))

    def end(self, source: str) -> None:
        """Take the stream as ended: its last bound closes everything."""
        self.ingress[source].raise_bound(END_OF_TIME)
        self.promise(source)

    def _enter(self, source: str, batch: Batch) -> None:
        if len(batch):
            self._send(self.graph.nodes[source], batch)
        self.promise(source)

    # Work

    def run(self, clock: Clock, silent: Container[str] = ()) -> None:
        """Work until nothing is left to do; `silent` names the sources that may be spoken for."""
        while self.step(clock, silent):
            pass

    def step(self, clock: Clock, silent: Container[str] = ()) -> bool:
        """One turn of the cycle; False when the graph is at rest."""
        node = self._next_with_input()
        if node is None:
            return self._enable(clock.now(), silent)
        taken = self._execute(node, clock)
        self._taken += taken
        self._current = self.table[node.name].rule(node, self._taken)
        if self._current is not node:
            self._taken = 0
        return True

    def reschedule(self, strategies: Mapping[str, str]) -> None:
        """Give operators other strategies, by name, while running: the state table is made anew, nothing else."""
        for name, strategy in strategies.items():
            self.graph.nodes[name].strategy = strategy
        self.table = state_table(self.graph)

    def _next_with_input(self) -> Node | None:
        """Where the rules lead, walking back until there is input; else the scheduler's choice."""
        node = self._current
        while node is not None and not node.more:
            node = self.table[node.name].rule(node, 0)
        return node or next((each for each in reversed(self._operators) if each.more), None)

    def _execute(self, node: Node, clock: Clock) -> int:
        """Let an operator take one element; how many rows that was."""
        arc = min((arc for arc in node.inputs if arc), key=lambda each: each.register)
        element = arc.take(self.rows_per_step)
        rows = len(element) if isinstance(element, Batch) else 0
        clock.spend(node.name, rows)
        try:
            self._handle(node, arc, element)
        except MillraceError:
            raise
        except pa.ArrowException as error:
            raise RunError(
                f'operator "{node.name}" failed: {str(error).splitlines()[0]}',
                hint="The rows it failed on were not committed; change the expression or filter such rows out.",
            ) from error
        held = node.operator.held if node.operator is not None else 0
        self._metrics[node.name].peak_held = max(self._metrics[node.name].peak_held, held)
        return rows

    def _handle(self, node: Node, arc: Arc, element: Element) -> None:
        assert node.operator is not None
        metrics = self._metrics[node.name]
        if isinstance(element, Batch):
            metrics.rows_in += len(element)
            for output in node.operator.on_batch(arc.port, element):
                self._send(node, output)
            return
        metrics.punctuations_in += 1
        arc.register = max(arc.register, element.until)
        least = min(each.register for each in node.inputs)
        if least > node.bound:
            node.bound = least
            for output in node.operator.on_punctuation(Punctuation(least)):
                self._send(node, output)

    def _send(self, node: Node, element: Element) -> None:
        if isinstance(element, Punctuation):
            if element.until <= node.promised:
                return
            node.promised = element.until
        if node.operator is not None:
            metrics = self._metrics[node.name]
            if isinstance(element, Batch):
                metrics.rows_out += len(element)
            else:
                metrics.punctuations_out += 1
        for arc in node.outputs:
            arc.put(element)

    # Enabling timestamps

    def _enable(self, now: Microseconds, silent: Container[str]) -> bool:
        for node in self._operators:
            speakers = self._speakers(node, silent)
            enabled = {name: self.ingress[name].ets(now) for name in speakers}
            if speakers and all((until := enabled[name]) is not None and until >= speakers[name] for name in speakers):
                for name, until in enabled.items():
                    assert until is not None
                    self.ingress[name].raise_bound(until)
                    self.ingress[name].enabled += 1
                    self.promise(name)
                return True
        return False

    def _speakers(self, node: Node, silent: Container[str]) -> dict[str, Microseconds]:
        """The silent sources a node waits for and the bound each must reach; none if one of them is not silent."""
        assert node.operator is not None
        wanted = node.operator.wanted()
        if wanted is None:
            return {}
        behind: dict[str, Microseconds] = {}
        for source, until in sources_behind(node, wanted):
            behind[source.name] = max(until, behind.get(source.name, until))
        return behind if all(name in silent for name in behind) else {}

    def wake_at(self, silent: Container[str]) -> Microseconds | None:
        """When an ETS will release something if the sources stay silent; None is never."""
        times = []
        for node in self._operators:
            speakers = self._speakers(node, silent)
            reached = [self.ingress[name].reaches(until) for name, until in speakers.items()]
            if reached and None not in reached:
                times.append(max(time for time in reached if time is not None))
        return min(times, default=None)

    # Output

    def take(self, now: Microseconds) -> dict[str, list[Batch]]:
        """The results since the last call, by sink; punctuation ends here."""
        taken: dict[str, list[Batch]] = {}
        for sink in self._sinks:
            for arc in sink.inputs:
                while arc:
                    element = arc.take()
                    if isinstance(element, Batch):
                        self._delivered[sink.name].count(element, now)
                        taken.setdefault(sink.name, []).append(element)
                    else:
                        sink.bound = max(sink.bound, element.until)
        return taken

    def metrics(self) -> Metrics:
        """A snapshot of all counts."""
        return Metrics(
            sources={name: _source_metrics(ingress) for name, ingress in self.ingress.items()},
            nodes={name: replace(metrics) for name, metrics in self._metrics.items()},
            sinks={name: replace(metrics) for name, metrics in self._delivered.items()},
            held={node.name: node.operator.held for node in self._operators if node.operator is not None},
            state_bytes={node.name: node.operator.state_bytes for node in self._operators if node.operator is not None},
        )

    # State

    def save(self) -> Saved:
        """What changed since the last save; only at rest, with all results taken."""
        assert not any(node.more for node in self.graph.nodes.values()), "state is saved at rest"
        notes, added, removed = {}, {}, []
        for node in self._operators:
            assert node.operator is not None
            changes = node.operator.changes()
            notes[node.name] = dict(changes.note)
            added.update({(node.name, number): table for number, table in changes.added.items()})
            removed += [(node.name, number) for number in changes.removed]
        control = {
            "sources": {name: ingress.save() for name, ingress in self.ingress.items()},
            "nodes": {node.name: _save_node(node) for node in self.graph.nodes.values()},
            "notes": notes,
        }
        return Saved(control, added, removed)

    def restore(self, control: Mapping[str, Any], segments: Mapping[Place, pa.Table]) -> None:
        """Go on from the last control and all live segments."""
        for name, saved in control["sources"].items():
            self.ingress[name].restore(saved)
        for name, saved in control["nodes"].items():
            _restore_node(self.graph.nodes[name], saved)
        for node in self._operators:
            assert node.operator is not None
            own = {number: table for (name, number), table in segments.items() if name == node.name}
            note = control["notes"][node.name]
            if note:
                node.operator.restore(Changes(own, (), note))


def _ingress(node: Node) -> Ingress:
    assert node.contract is not None
    return Ingress(node.contract)


def _source_metrics(ingress: Ingress) -> SourceMetrics:
    return SourceMetrics(
        ingress.received, ingress.late, ingress.quarantined, ingress.bound, ingress.greatest, ingress.enabled
    )


def _save_node(node: Node) -> dict[str, Any]:
    return {"bound": node.bound, "promised": node.promised, "registers": [arc.register for arc in node.inputs]}


def _restore_node(node: Node, saved: Mapping[str, Any]) -> None:
    node.bound, node.promised = saved["bound"], saved["promised"]
    for arc, register in zip(node.inputs, saved["registers"], strict=True):
        arc.register = register
