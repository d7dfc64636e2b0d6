"""The greatest rate at which a low-level table drops no packet, by flush policy (004 Fig. 9, its query Q4).

The real operator takes packets of uniformly chosen groups, and tells how many entries leave with them; a model of one
processor with a ring in front of it tells if the ring overflows at a rate. Which entries leave with which packet does
not depend on the rate, so the operator runs once: over a table in its steady state, the end of a window, and as many
packets as it takes to flush the old one. In a window of 60 s far more follow, and nothing else happens with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import exp

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Chart, Curve, Measured, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.kernel.aggregates.low_level.flush_policy import FlushPolicy
from millrace.kernel.aggregates.low_level.low_aggregate import LowAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.elements import TIME, Batch, Punctuation

RING = 65_536
"""Packets that may wait."""
PACKET, FLUSH = 1.1e-6, 0.6e-6
"""Seconds that a packet takes, and an entry that leaves."""
GROUPS = (520_000, 260_000, 130_000, 66_000)
TABLES = {0.5: "1/2", 1.0: "1", 2.0: "2"}
"""Slots for each group."""
POLICIES = {"in order": "in_order", "slow flush": "slow_flush(160, 2)", "lazy flush": "lazy_flush(2)"}
STEP, FINE = 8192, 512
"""Packets that the operator takes at once, and fewer where a window ends: a step must not hide the burst."""
WARM_UP, BEFORE, AFTER = 3, 1, 4
"""Packets for each group until the table is in its steady state, from there to the end of a window, and after it."""
MINUTE = 60_000_000


@dataclass(frozen=True)
class FlushStep:
    """What a step did: how many packets it took, how many entries they evicted, and how many were flushed."""

    packets: int
    evicted: int
    flushed: int


@dataclass(frozen=True)
class SmoothingCase:
    """Q4 over so many groups, in a table of so many slots, under a flush policy."""

    groups: int
    slots: int
    policy: str

    def measure(self) -> Measured:
        """The greatest rate at which the ring does not overflow."""
        partials = Partials(WindowGeometry(MINUTE, MINUTE), ["src", "dst"], [FunctionCall("n", "count")])
        operator = LowAggregate(partials, self.slots, FlushPolicy.parse(self.policy))
        random = np.random.default_rng(self.groups)
        for _ in range(WARM_UP):
            _taken(operator, self._packets(random, self.groups, 0))
        before = list(self._steps(operator, random, BEFORE, 0))
        for _ in operator.on_punctuation(Punctuation(MINUTE)):
            pass
        return {"rate": greatest_rate(before, list(self._steps(operator, random, AFTER, MINUTE)))}

    def _steps(self, operator: LowAggregate, random: np.random.Generator, each: int, time: int) -> Iterator[FlushStep]:
        """Steps of packets, so many for each group."""
        for count in [*[FINE] * (STEP // FINE), *[STEP] * (each * self.groups // STEP - 1)]:
            yield _taken(operator, self._packets(random, count, time))

    def _packets(self, random: np.random.Generator, count: int, time: int) -> Batch:
        groups = random.integers(0, self.groups, count)
        columns = {"src": groups // 256, "dst": groups % 256, TIME: np.full(count, time)}
        return Batch(pa.record_batch(columns))


def _taken(operator: LowAggregate, packets: Batch) -> FlushStep:
    evicted, flushed = operator.evicted, operator.flushed
    for _ in operator.on_batch(0, packets):
        pass
    return FlushStep(len(packets), operator.evicted - evicted, operator.flushed - flushed)


def greatest_rate(steady: list[FlushStep], steps: list[FlushStep]) -> float:
    """The greatest rate, to a thousandth, that a steady table keeps up with, and that overflows no ring afterwards."""
    low, high = 1.0, sum(step.packets for step in steady) / sum(map(_work, steady))
    if fullest(steps, high) <= RING:
        return high
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if fullest(steps, middle) <= RING else (low, middle)
    return low


def fullest(steps: list[FlushStep], rate: float) -> float:
    """The most packets that wait in the ring at a rate: what a step flushes holds up its packets, and comes at once."""
    done, taken, most = 0.0, 0, 0.0
    for step in steps:
        done = max(done, taken / rate) + step.flushed * FLUSH
        most = max(most, done * rate - taken)
        taken += step.packets
        done = max(done + _work(step), taken / rate)
        most = max(most, done * rate - taken)
    return most


def _work(step: FlushStep) -> float:
    return step.packets * PACKET + step.evicted * FLUSH


def burst_rate(groups: float, size: float) -> float:
    """The rate at which packets fill the ring while all entries of a window leave at once.

    A table with so many slots for each group holds one entry in every slot that some group falls on.
    """
    entries = groups * size * (1 - exp(-1 / size))
    return RING / (entries * FLUSH)


def _by_table(found: Results, name: str) -> list[Curve]:
    """The rates of each policy with tables of this size, in thousands."""
    rates = {policy: found.along(f"{policy}, table {name}", "rate") for policy in POLICIES}
    return [
        Curve(policy, [(groups / 1e3, rate / 1e3) for groups, rate in each.items()]) for policy, each in rates.items()
    ]


@figure(
    cases=lambda: {
        (f"{policy}, table {name}", float(groups)): SmoothingCase(groups, round(groups * size), POLICIES[policy])
        for groups in GROUPS
        for size, name in TABLES.items()
        for policy in POLICIES
    },
    columns={"groups": PLACE, "packets_per_second": "rate"},
    panels=[
        Chart(
            "thousand groups",
            "thousand packets per second",
            partial(_by_table, name=name),
            log="x",
            title=f"table of {name} x groups",
        )
        for name in TABLES.values()
    ],
)
def oop_smoothing(found: Results) -> list[Claim]:
    """004 Fig. 9: greatest rate of a low-level table by flush policy."""
    most, many, *_, few = GROUPS
    gains = {
        name: [
            found.ratios(f"{policy}, table {name}", f"in order, table {name}", "rate")
            for policy in ("slow flush", "lazy flush")
        ]
        for name in TABLES.values()
    }
    equal = furthest(each[few] for pair in gains.values() for each in pair)

    def burst(groups: int) -> float:
        """The furthest ratio of the rate in order to what the formula says."""
        return furthest(
            found[f"in order, table {TABLES[size]}", groups]["rate"] / burst_rate(groups, size) for size in (1.0, 2.0)
        )

    def least(name: str, groups: int) -> float:
        return min(each[groups] for each in gains[name])

    formula = "ring / (entries x 0.6 us); the furthest ratio"
    return [
        Claim("66k groups: all policies are equal; the furthest ratio to in order", equal, 0.9, 1.1),
        Claim("260k groups, 1 slot each: over in order", least("1", many), low=1.7, reproduces=False),
        Claim("260k groups, 2 slots each: over in order", least("2", many), low=1.7, reproduces=False),
        about(f"260k groups, in order: {formula}", burst(many), 1.0, 0.1),
        Claim("520k groups, 1 slot each: over in order", least("1", most), low=1.7),
        Claim("520k groups, 2 slots each: over in order", least("2", most), low=1.7),
        about(f"520k groups, in order: {formula}", burst(most), 1.0, 0.1),
    ]
