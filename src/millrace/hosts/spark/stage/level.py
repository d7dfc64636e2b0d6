"""One high level of a network, as its buckets see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millrace.kernel.graph.graph import Graph
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.physical.levels import Crossing, Exchange
from millrace.plan.physical.stages import Physical


@dataclass(frozen=True)
class Level:
    """One high level of a network: what its buckets read, and what they send to later ones."""

    number: int
    exchanges: Mapping[str, Exchange]
    arriving: Mapping[str, Crossing]
    leaving: Mapping[str, Crossing]
    spoken: bool = False
    """Whether some stream of the network may be spoken for while it is silent."""

    @staticmethod
    def of(plan: Physical, number: int, graph: Graph) -> Level:
        """The level of that number, from 1 on, whose buckets run this graph."""
        sinks = {sink.name for sink in graph.sinks()}
        crossings = {each.port: each for each in plan.crossings()}
        return Level(
            number,
            {each.port: each for each in plan.exchanges() if each.level == number},
            {port: each for port, each in crossings.items() if each.level == number},
            {port: each for port, each in crossings.items() if port in sinks},
            any(_contract(each).ets != "none" for each in plan.exchanges()),
        )

    @property
    def ports(self) -> frozenset[str]:
        """All that it reads."""
        return frozenset([*self.exchanges, *self.arriving])

    def streams(self) -> dict[str, list[str]]:
        """The ports of each stream."""
        found: dict[str, list[str]] = {}
        for port, exchange in self.exchanges.items():
            found.setdefault(exchange.stream.name, []).append(port)
        return found


def _contract(exchange: Exchange) -> TimeContract:
    time = exchange.stream.time
    return time.outlet(exchange.outlet) if exchange.outlet else time
