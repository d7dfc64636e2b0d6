"""Which source is asked for an enabling timestamp (ETS), and when (000 section 4, 001 section 4).

Rules:
- An operator that waits says which bound would release something; the sources upstream are asked for that much.
- An operator that works by input may be released in several ways, each by some of its inputs.
- Sources are asked only if all that lag are silent, allow ETS on demand, and nothing is under way from them: so no ETS
  is made for a busy source, every ETS releases something, and the executor's cycle ends. A busy stream is asked for its
  silent partitions, if the bound that its rows have brought so far is not enough.
- Where rows are stamped late (latent time), the stamp is asked instead of the sources behind it, and answers always.
- Periodic ETS are made at their beat, needed or not.

How an ETS is computed is in progress/ets.py, how it travels in delivery.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from millrace.kernel.elements import Microseconds, Punctuation
from millrace.kernel.graph.delivery import Delivery
from millrace.kernel.graph.graph import GraphNode
from millrace.kernel.progress.ets import beats, clock_of_ets, ets_at, next_beat
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.updates.queue import Queue

Needs = Mapping[int, Microseconds]
"""Bounds that inputs of a node must reach, by port."""
Request = Mapping[GraphNode, Microseconds]
"""Sources, each with the bound that it must reach."""


class EtsDemand:
    """Asks the silent sources of a graph for ETS, and sends them.

    `silent` names the streams that are silent; as a mapping it also says when each was last looked at.
    """

    def __init__(self, delivery: Delivery) -> None:
        self.periodic = True
        """True if periodic ETS are made; a host whose streams have all ended needs no more of them."""
        self.waiting: dict[GraphNode, None] = {}
        """The nodes that hold something until a bound releases it."""
        self._delivery = delivery
        self._ingress: Mapping[str, Ingress] = {}
        self._edges: Mapping[GraphNode, Ingress] = {}
        self._beating: list[tuple[GraphNode, Ingress]] = []

    def adopt(self, ingress: Mapping[str, Ingress], edges: Mapping[GraphNode, Ingress]) -> None:
        """Take over the streams and sources of a graph as it is now, each source with the edge of its bound."""
        self._ingress, self._edges = ingress, edges
        self._beating = [(node, edge) for node, edge in edges.items() if edge.contract.every is not None]

    def note(self, node: GraphNode) -> Sequence[Needs]:
        """Learn whether a node waits for a bound now; the ways to release something at it."""
        ways = wanted(node)
        if ways:
            self.waiting[node] = None
        else:
            self.waiting.pop(node, None)
        return ways

    def send_periodic(self, now: Microseconds, silent: Container[str]) -> None:
        """Send the periodic ETS that are due."""
        for node, edge in self._beating if self.periodic else ():
            if edge.contract.kind == "external" and node.stream not in silent and edge.read_until is None:
                continue
            known = _silent_until(node, edge, now, silent)
            for beat in beats(edge, known, every_one=not self._delivery.merge_punctuation):
                until = ets_at(edge, beat)
                if until is not None:
                    self._send(node, until, now, by_arc=False)

    def send_demanded(self, nodes: Iterable[GraphNode], now: Microseconds, silent: Container[str]) -> bool:
        """Send the ETS that release something for the first of the nodes for which there are some; False without."""
        for node in nodes:
            for request in self._requests(node, silent):
                granted = self._granted(request, now, silent)
                for source, until in granted.items():
                    self._send(source, until, now, by_arc=True)
                if granted:
                    return True
        return False

    def _send(self, source: GraphNode, until: Microseconds, now: Microseconds, *, by_arc: bool) -> None:
        self._edges[source].raise_bound(until, now)
        if self._edges[source].contract.kind != "latent":
            self._ingress[source.stream].enabled += 1
        self._delivery.released_by(_first_stream(source), "ets", until)
        self._delivery.send(source, [Punctuation(source.reached(until), ets=True)], by_arc)

    def next_beat(self) -> Microseconds | None:
        """When the next periodic ETS is due; None is never."""
        return min((due for _, edge in self._beating if (due := next_beat(edge)) is not None), default=None)

    def release_at(self, silent: Container[str]) -> Microseconds | None:
        """The clock at which an ETS on demand will release something, if the sources stay silent; None is never."""
        requests = [request for node in self.waiting for request in self._requests(node, silent)]
        possible = [self._possible_at(request) for request in requests]
        return min([clock for clock in possible if clock is not None], default=None)

    def _requests(self, node: GraphNode, silent: Container[str]) -> Iterator[Request]:
        """For each way to release a node the sources it waits for; none if one of them may not be asked."""
        for needs in wanted(node):
            found: dict[GraphNode, Microseconds] = {}
            for source, needed, under_way in sources_behind(node, needs):
                if source is None or not self._may_ask(source, needed, under_way, silent):
                    break
                found[source] = max(needed, found.get(source, needed))
            else:
                if found:
                    yield found

    def _may_ask(self, source: GraphNode, needed: Microseconds, under_way: bool, silent: Container[str]) -> bool:
        """True if a source allows ETS on demand and is silent, or its partitions may be though rows are under way.

        A stamp of latent rows answers always.
        """
        edge = self._edges[source]
        if edge.contract.kind == "latent":
            return not under_way
        if edge.contract.ets != "on_demand":
            return False
        if source.stream in silent and not under_way:
            return True
        return edge.read_until is not None and edge.bound < needed

    def _granted(self, request: Request, now: Microseconds, silent: Container[str]) -> Request:
        """The ETS that silence up to now allows; none unless each is enough."""
        found: dict[GraphNode, Microseconds] = {}
        for source, needed in request.items():
            edge = self._edges[source]
            until = ets_at(edge, _silent_until(source, edge, now, silent))
            if until is None or until < needed:
                return {}
            found[source] = until
        return found

    def _possible_at(self, request: Request) -> Microseconds | None:
        """The clock at which every ETS of a request becomes possible; None is never."""
        clocks = [clock_of_ets(self._edges[source], needed) for source, needed in request.items()]
        return None if None in clocks else max([clock for clock in clocks if clock is not None], default=None)


def _first_stream(node: GraphNode) -> str:
    """The stream that a source, or a stamp of its rows, gives."""
    return node.stream if node.is_source else _first_stream(node.inputs[0].producer)


def wanted(node: GraphNode) -> Sequence[Needs]:
    """The ways to release something at a node, or for the host that empties it."""
    operator = node.operator
    if operator is not None and operator.by_input:
        return operator.wants()
    until = node.demand if operator is None else operator.wanted()
    return () if until is None else (dict.fromkeys(range(len(node.inputs)), until),)


Behind = tuple[GraphNode | None, Microseconds, bool]
"""A source, the bound it must reach, and True if something is under way from it; None where only that is known."""


def sources_behind(node: GraphNode, needs: Needs) -> Iterator[Behind]:
    """The sources whose bounds a node waits for, each with the bound it must reach for the node to see what it needs.

    What is under way from a source may still bring the bound.
    """
    for arc in node.inputs:
        until = needs.get(arc.port)
        if until is None or arc.register >= until:
            continue
        producer, operator = arc.producer, arc.producer.operator
        if isinstance(operator, Queue) and (arc or operator.due):
            yield None, until, True
        elif operator is None or operator.stamps:
            yield producer, until, bool(arc)
        else:
            required = {each.port: operator.required(until, each.port) for each in producer.inputs}
            behind = sources_behind(producer, {port: each for port, each in required.items() if each is not None})
            yield from _under_way(behind, until) if arc else behind


def _under_way(behind: Iterable[Behind], until: Microseconds) -> Iterator[Behind]:
    """Sources from which something is under way; if none lags it has brought the bound already."""
    found = [(source, needed, True) for source, needed, _ in behind]
    yield from found or [(None, until, True)]


def _silent_until(source: GraphNode, edge: Ingress, now: Microseconds, silent: Container[str]) -> Microseconds:
    """Up to when a source is known to have been silent: until it was last looked at, where `silent` says so.

    The system's own stamps are never late, so for them it is now. The partitions of a busy source were silent until it
    was last read.
    """
    if edge.contract.kind != "external":
        return now
    if source.stream not in silent:
        return now if edge.read_until is None else min(now, edge.read_until)
    return min(now, int(silent[source.stream])) if isinstance(silent, Mapping) else now
