"""Who is asked for an enabling timestamp, and what it would do (000 section 4, 001 section 4).

Rules:
- An operator that waits says which bound would release something; the sources behind it are asked for as much.
- An operator that works by input may be released in several ways, each by some of its inputs.
- They are asked only if all of those that lag are silent, may be spoken for on demand, and nothing is under way from
  them: so an ETS is never made for a busy source, and never in vain.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Node
from millrace.kernel.progress.admission import Ingress
from millrace.kernel.updates.queue import Queue

Speakers = Mapping[Node, Microseconds]
"""Sources, each with the bound that it must reach."""


Needs = Mapping[int, Microseconds]
"""Bounds that inputs of a node must reach, by port."""


def wanted(node: Node) -> Sequence[Needs]:
    """The ways to release something at a node, or for whoever empties it."""
    operator = node.operator
    if operator is not None and operator.by_input:
        return operator.wants()
    until = node.demand if operator is None else operator.wanted()
    return () if until is None else (dict.fromkeys(range(len(node.inputs)), until),)


def speakers(node: Node, silent: Container[str], edges: Mapping[str, Ingress]) -> Iterator[Speakers]:
    """For each way to release a node the sources it waits for and the bound each must reach.

    A way is left out if one of its sources may not be spoken for.
    """
    for needs in wanted(node):
        found: dict[Node, Microseconds] = {}
        for source, needed in sources_behind(node, needs):
            if source is None or source.stream not in silent or edges[source.name].contract.ets != "on_demand":
                break
            found[source] = max(needed, found.get(source, needed))
        else:
            if found:
                yield found


def enabling(asked: Speakers, now: Microseconds, silent: Container[str], edges: Mapping[str, Ingress]) -> Speakers:
    """The ETS that silence up to now allows; none unless each is enough."""
    found: dict[Node, Microseconds] = {}
    for source, needed in asked.items():
        until = edges[source.name].ets(silent_until(source, now, silent, edges))
        if until is None or until < needed:
            return {}
        found[source] = until
    return found


def silent_until(source: Node, now: Microseconds, silent: Container[str], edges: Mapping[str, Ingress]) -> Microseconds:
    """Up to when a source is known to have been silent: where `silent` says when each was looked at, until then.

    The system's own stamps are never late, so for them it is now.
    """
    if edges[source.name].contract.kind == "external" and isinstance(silent, Mapping):
        return min(now, int(silent[source.stream]))
    return now


def possible_at(asked: Speakers, edges: Mapping[str, Ingress]) -> Microseconds | None:
    """The clock at which every ETS asked for becomes possible; None is never."""
    times = [edges[source.name].reaches(needed) for source, needed in asked.items()]
    return None if None in times else max([time for time in times if time is not None], default=None)


def sources_behind(node: Node, needs: Needs) -> Iterator[tuple[Node | None, Microseconds]]:
    """The sources whose bounds a node waits for, each with the bound it must reach for the node to see what it needs.

    None instead of a source where something is under way that may bring the bound yet.
    """
    for arc in node.inputs:
        until = needs.get(arc.port)
        if until is None or arc.register >= until:
            continue
        producer = arc.producer
        if arc or (isinstance(producer.operator, Queue) and producer.operator.due):
            yield None, until
        elif producer.operator is None:
            yield producer, until
        else:
            required = {each.port: producer.operator.required(until, each.port) for each in producer.inputs}
            yield from sources_behind(producer, {port: each for port, each in required.items() if each is not None})
