"""The greatest rate at which a low-level table drops no packet, by flush policy (004 Fig. 9, its query Q4).

The real operator takes packets of uniformly chosen groups, and tells how many entries leave with them; a model of one
processor with a ring in front of it tells whether the ring overflows at a rate. What leaves with which packet does not
depend on the rate, so the operator runs once: over a table in its steady state, the end of a window, and as many
packets as it takes to be rid of the old one. In a window of 60 s far more follow, and nothing else happens with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.kernel.aggregates.low_aggregate import FlushPolicy, LowAggregate
from millrace.kernel.aggregates.panes.window_geometry import Frames
from millrace.kernel.aggregates.partials import Aggregation, Partials
from millrace.kernel.elements import TIME, Batch, Punctuation

RING = 65_536
"""Packets that may wait."""
PACKET, FLUSH = 1.1e-6, 0.6e-6
"""Seconds that a packet takes, and an entry that leaves."""
GROUPS = (66_000, 130_000, 260_000, 520_000)
TABLES = {0.5: "1/2", 1.0: "1", 2.0: "2"}
"""Slots for each group."""
POLICIES = {"in order": "in_order", "slow flush": "slow_flush(160, 2)", "lazy flush": "lazy_flush(2)"}
STEP, FINE = 8192, 512
"""Packets that the operator takes at once, and fewer where a window ends: a step must not hide the burst."""
WARM_UP, BEFORE, AFTER = 3, 1, 4
"""Packets for each group until the table is in its steady state, from there to the end of a window, and after it."""
MINUTE = 60_000_000


@dataclass(frozen=True)
class Trace:
    """What a step did: how many packets it took, how many entries they drove out, and how many were flushed."""

    packets: int
    evicted: int
    flushed: int


@dataclass(frozen=True)
class SmoothingCase:
    """Q4 over so many groups, in a table of so many slots, under a flush policy."""

    groups: int
    slots: int
    policy: str

    def outcome(self) -> Outcome:
        """The greatest rate that the ring stands."""
        partials = Partials(Frames(MINUTE, MINUTE), ["src", "dst"], [Aggregation("n", "count")])
        operator = LowAggregate(partials, self.slots, FlushPolicy.parse(self.policy))
        random = np.random.default_rng(self.groups)
        for _ in range(WARM_UP):
            _taken(operator, self._packets(random, self.groups, 0))
        before = list(self._traces(operator, random, BEFORE, 0))
        for _ in operator.on_punctuation(Punctuation(MINUTE)):
            pass
        return Outcome(rate=greatest_rate(before, list(self._traces(operator, random, AFTER, MINUTE))))

    def _traces(self, operator: LowAggregate, random: np.random.Generator, each: int, time: int) -> Iterator[Trace]:
        """Steps of packets, so many for each group."""
        for count in [*[FINE] * (STEP // FINE), *[STEP] * (each * self.groups // STEP - 1)]:
            yield _taken(operator, self._packets(random, count, time))

    def _packets(self, random: np.random.Generator, count: int, time: int) -> Batch:
        groups = random.integers(0, self.groups, count)
        columns = {"src": groups // 256, "dst": groups % 256, TIME: np.full(count, time)}
        return Batch(pa.record_batch(columns))


def _taken(operator: LowAggregate, packets: Batch) -> Trace:
    evicted, flushed = operator.evicted, operator.flushed
    for _ in operator.on_batch(0, packets):
        pass
    return Trace(len(packets), operator.evicted - evicted, operator.flushed - flushed)


def greatest_rate(steady: list[Trace], traces: list[Trace]) -> float:
    """The greatest rate, to a thousandth, that a steady table keeps up with, and that overflows no ring afterwards."""
    low, high = 1.0, sum(trace.packets for trace in steady) / sum(map(_work, steady))
    if fullest(traces, high) <= RING:
        return high
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if fullest(traces, middle) <= RING else (low, middle)
    return low


def fullest(traces: list[Trace], rate: float) -> float:
    """The most packets that wait in the ring at a rate: what a step flushes holds up its packets, and comes at once."""
    done, taken, most = 0.0, 0, 0.0
    for trace in traces:
        done = max(done, taken / rate) + trace.flushed * FLUSH
        most = max(most, done * rate - taken)
        taken += trace.packets
        done = max(done + _work(trace), taken / rate)
        most = max(most, done * rate - taken)
    return most


def _work(trace: Trace) -> float:
    return trace.packets * PACKET + trace.evicted * FLUSH


def settings() -> dict[Key, SmoothingCase]:
    """Every policy with every size of the table; the longest runs first."""
    return {
        (_name(policy, size), float(groups)): SmoothingCase(groups, round(groups * size), POLICIES[policy])
        for groups in reversed(GROUPS)
        for size in TABLES
        for policy in POLICIES
    }


def _name(policy: str, size: float) -> str:
    return f"{policy}, table {TABLES[size]}"


def rate(outcome: Outcome) -> float:
    """Packets a second."""
    return outcome.rate


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The greatest rates by the number of groups."""
    picture = chart(
        "Greatest rate without a dropped packet, by flush policy and slots a group",
        "groups",
        "packets a second",
        [curve for curve in curves(found, rate) if "1/2" not in curve.name],
        log_y=False,
    )
    return Findings(table(found, "groups", packets_per_second=rate), _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    gains = {(policy, size): _gains(found, policy, size) for policy in ("slow flush", "lazy flush") for size in TABLES}
    few, many, most = GROUPS[0], GROUPS[-2], GROUPS[-1]
    bursts = {groups: [_to_burst_rate(found, groups, size) for size in (1.0, 2.0)] for groups in (many, most)}

    def least(size: float, groups: int) -> float:
        return min(each[groups] for (_, slots), each in gains.items() if slots == size)

    return [
        Claim(
            "66k groups: all policies are equal; the furthest ratio to in order",
            furthest(each[few] for each in gains.values()),
            0.9,
            1.1,
        ),
        Claim("260k groups, 1 slot each: over in order", least(1.0, many), low=1.7, reproduces=False),
        Claim("260k groups, 2 slots each: over in order", least(2.0, many), low=1.7, reproduces=False),
        about("260k groups, in order: ring / (entries x 0.6 us); the furthest ratio", furthest(bursts[many]), 1.0, 0.1),
        Claim("520k groups, 1 slot each: over in order", least(1.0, most), low=1.7),
        Claim("520k groups, 2 slots each: over in order", least(2.0, most), low=1.7),
        about("520k groups, in order: ring / (entries x 0.6 us); the furthest ratio", furthest(bursts[most]), 1.0, 0.1),
    ]


def _to_burst_rate(found: Mapping[Key, Outcome], groups: int, size: float) -> float:
    """The rate in order over what the formula says."""
    return along(found, _name("in order", size), rate)[groups] / burst_rate(groups, size)


def burst_rate(groups: int, size: float) -> float:
    """The rate at which packets fill the ring while all entries of a window leave at once.

    A table with so many slots for each group holds one entry in every slot that some group falls on.
    """
    entries = groups * size * (1 - exp(-1 / size))
    return RING / (entries * FLUSH)


def _gains(found: Mapping[Key, Outcome], policy: str, size: float) -> dict[float, float]:
    """The rate of a policy over that of the baseline, by groups."""
    baseline = along(found, _name("in order", size), rate)
    return {groups: value / baseline[groups] for groups, value in along(found, _name(policy, size), rate).items()}


FIGURE = Figure("oop-smoothing", "004 Fig. 9", "greatest rate of a low-level table by flush policy", settings, findings)
