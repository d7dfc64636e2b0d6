"""The figures of memory of 004 section 8: plans in order and order-agnostic, over streams of which some arrive late.

Real operators process real bytes, with the clock moved by hand; what is counted is the most memory at a time. Work is
counted too: it costs what a case says, and the clock is put right when the next rows come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Chart, Measured, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.hosts.virtual.clock import Costs, VirtualClock
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.graph.executor import Executor
from millrace.kernel.latency import Latency
from millrace.language import parse_network
from millrace.plan.physical.stages import Physical, physical

_SECOND = 1_000_000
_WIDE = 256
"""Groups are pairs of a `src` and one of so many `dst`; of many groups there are as many of one as of the other."""


@dataclass(frozen=True)
class LateStream:
    """A stream in order of time: rows per second, and how many seconds after its own time a row arrives."""

    name: str
    rate: int
    delay: float = 0.0

    @property
    def statement(self) -> str:
        """Its declaration."""
        return (
            f"CREATE STREAM {self.name} (src BIGINT, dst BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM generate;"
        )

    def rows(self, begin: float, end: float, groups: int) -> pa.RecordBatch:
        """The rows of a span of its own time, evenly spaced, each of some group."""
        numbers = np.arange(round(begin * self.rate), round(end * self.rate))
        times = numbers * _SECOND // self.rate
        # A seed for each span: what comes must not depend on the steps of other streams.
        random = np.random.default_rng([*self.name.encode(), round(begin * 1000)])
        pairs = random.integers(0, groups, len(times))
        wide = max(_WIDE, isqrt(groups))
        columns = [pa.array(pairs // wide), pa.array(pairs % wide), pa.array(times).cast(TIMESTAMP)]
        return pa.RecordBatch.from_arrays(columns, names=["src", "dst", "ts"])


@dataclass(frozen=True)
class MemoryCase:
    """A query over streams for `seconds` of their own time; rows arrive every `step` seconds."""

    query: str
    streams: tuple[LateStream, ...]
    seconds: float
    step: float
    groups: int = 1
    costs: Costs = Costs()

    def measure(self) -> Measured:
        """The most bytes in buffers and operators at a time, the results and how soon they came, and the work."""
        text = "\n".join([*(stream.statement for stream in self.streams), self.query])
        plan = physical(parse_network(text))
        executor, clock = Executor(plan.whole()), VirtualClock(self.costs)
        peak, seconds = 0, 0.0
        latency = Latency()
        for now, arriving in self._arrivals(plan):
            for name, rows in arriving.items():
                executor.push(name, rows, now)
            waiting = sum(rows.nbytes for rows in arriving.values())
            peak = max(peak, _state_bytes(executor) + waiting)
            clock.time, began = now, time.process_time()
            _work(executor, clock, latency)
            seconds += time.process_time() - began
            peak = max(peak, _state_bytes(executor))
        for stream in self.streams:
            executor.edges.end(stream.name)
        _work(executor, clock, Latency())
        operators = [node.operator for node in executor.graph.operators() if node.operator is not None]
        return {
            "results": sum(sink.rows for sink in executor.metrics().sinks.values()),
            "latency": latency.mean / _SECOND,
            "megabytes": peak / 1e6,
            "turned_away": sum(operator.turned_away for operator in operators),
            "processor_seconds": seconds,
        }

    def _arrivals(self, plan: Physical) -> Iterator[tuple[int, dict[str, pa.RecordBatch]]]:
        """What arrives at each step, by stream: the columns that the query reads."""
        read = {stream.name: plan.columns_read(stream.name) for stream in self.streams}
        steps = round((self.seconds + max(stream.delay for stream in self.streams)) / self.step)
        for number in range(steps):
            now = number * self.step
            arriving = {
                stream.name: stream.rows(now - stream.delay, now - stream.delay + self.step, self.groups).select(
                    read[stream.name]
                )
                for stream in self.streams
                if 0 <= now - stream.delay < self.seconds
            }
            yield round((now + self.step) * _SECOND), arriving


def _work(executor: Executor, clock: VirtualClock, latency: Latency) -> None:
    """Run the executor until it is idle, and count how long after the arrival of the last rows each result came out."""
    began = clock.time
    while executor.step(clock):
        found = sum(len(batch) for batches in executor.take(clock.time).values() for batch in batches)
        if found:
            latency.add(np.full(found, clock.time - began))


def _state_bytes(executor: Executor) -> int:
    return sum(node.operator.state_bytes for node in executor.graph.operators() if node.operator is not None)


IN_ORDER, AGNOSTIC = "in order", "order-agnostic"
PLANS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: ""}
"""The plans, by the options of their queries."""
GROUPS = 65_536
BUSY, SPARSE = 4000, 10
"""Rows per second of each busy stream and of the sparse one."""


def both_plans(case: Callable[[str, float], MemoryCase], places: tuple[float, ...]) -> dict[Point, MemoryCase]:
    """A case of the options of each plan at each place, which grow; the longest runs first."""
    return {(plan, place): case(PLANS[plan], place) for place in reversed(places) for plan in PLANS}


def _memories(found: Results) -> tuple[dict[float, float], dict[float, float]]:
    """The megabytes in order, and order-agnostic."""
    return found.along(IN_ORDER, "megabytes"), found.along(AGNOSTIC, "megabytes")


def _same_results(found: Results) -> Claim:
    return Claim("every run has the same number of results; the different numbers", found.different("results"), 1, 1)


def _skew_case(options: str, skew: float) -> MemoryCase:
    query = f"""CREATE QUERY q5 {options}AS SELECT src, dst, count(*) AS n
  FROM (SELECT * FROM m1 UNION SELECT * FROM m2) [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY src, dst;"""
    return MemoryCase(query, (LateStream("m1", 110_000), LateStream("m2", 110_000, skew)), 50.0, 0.5, GROUPS)


@figure(
    cases=lambda: both_plans(_skew_case, (1.0, 10.0, 20.0, 30.0, 40.0)),
    columns={"skew_seconds": PLACE, "results": "results", "megabytes": "megabytes"},
    panels=[Chart("seconds that it is late", "megabytes", "megabytes", log="")],
)
def oop_skew(found: Results) -> list[Claim]:
    """004 Fig. 1: memory of a count over two streams, one of them late.

    In order, the rows on time wait for the late stream; order-agnostic, they are counted as they come.
    """
    in_order, agnostic = _memories(found)
    first, last = agnostic[1.0] / in_order[1.0], agnostic[40.0] / in_order[40.0]
    return [
        _same_results(found),
        Claim("in order grows with the skew; 40 s over 1 s", in_order[40.0] / in_order[1.0], low=3),
        Claim("order-agnostic starts lower; its share at 1 s", first, high=0.95, unit="%"),
        Claim("order-agnostic needs at most 30 % at 40 s", last, high=0.30, unit="%"),
    ]


def _tumbling_case(options: str, skew: float) -> MemoryCase:
    """2,500 rows per second in each stream, where the paper has 10,000.

    Groups are pairs of addresses, for the paper's pairs of addresses and ports: few rows find a partner.
    """
    query = f"""CREATE QUERY q6 {options}AS SELECT m1.src, m1.dst, m1.ts
  FROM a UNION b AS m1, c UNION d AS m2
  WHERE unix_seconds(m1.ts) div 10 = unix_seconds(m2.ts) div 10 AND m1.src = m2.dst AND m1.dst = m2.src;"""
    streams = tuple(LateStream(name, 2500, skew if name in "bd" else 0.0) for name in "abcd")
    return MemoryCase(query, streams, 60.0, 0.5, 4096 * 4096)


@figure(
    cases=lambda: both_plans(_tumbling_case, (0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0)),
    columns={"skew_seconds": PLACE, "results": "results", "megabytes": "megabytes"},
    panels=[Chart("seconds that one stream of each union is late", "megabytes", "megabytes", log="")],
)
def oop_tumbling_join(found: Results) -> list[Claim]:
    """004 Fig. 10: memory of a join of unions with late streams.

    Both plans keep the same rows: in order they wait in front of the join for the late streams, order-agnostic in it.
    So this figure shows what keeping rows in a join costs over keeping them in a buffer.
    """
    _, agnostic = _memories(found)
    ratios = found.ratios(AGNOSTIC, IN_ORDER, "megabytes")
    below = max(ratio for skew, ratio in ratios.items() if skew < 20)
    return [
        _same_results(found),
        Claim("below 20 s order-agnostic needs no more than in order; the greatest ratio", below, high=1.1),
        Claim("nor does it at the extreme; the ratio at 40 s", ratios[40.0], high=1.2),
        Claim("there it needs about 20 % more; the ratio at 40 s", ratios[40.0], 1.1, 1.3, reproduces=False),
        Claim("both grow with the skew; order-agnostic, 40 s over 20 s", agnostic[40.0] / agnostic[20.0], low=1.3),
    ]


def _band_case(options: str, band: float) -> MemoryCase:
    """2,000 rows per second in each stream, where the paper has about 4,000."""
    query = f"""CREATE QUERY q7 {options}AS
  SELECT count(*) [RANGE 1 min, SLIDE 1 min, WA m1.ts] FROM m1, m2
  WHERE m1.ts >= m2.ts - INTERVAL {band:.0f} SECONDS AND m1.ts <= m2.ts + INTERVAL {band:.0f} SECONDS
    AND m1.src = m2.dst AND m1.dst = m2.src;"""
    streams = LateStream("m1", 2000), LateStream("m2", 2000)
    return MemoryCase(query, streams, 182.0, 1.0, GROUPS, Costs(row=1, punctuation=1))


@figure(
    cases=lambda: both_plans(_band_case, (1.0, 5.0, 10.0, 20.0, 40.0, 60.0)),
    columns={
        "band_seconds": PLACE,
        "results": "results",
        "megabytes": "megabytes",
        "latency": "latency",
        "processor_seconds": "processor_seconds",
    },
    panels=[
        Chart("seconds of the band", "megabytes", "megabytes", log="", title="(a) memory"),
        Chart("seconds of the band", "seconds", "latency", log="", title="(b) latency, work at 1 µs"),
        Chart("seconds of the band", "processor seconds", "processor_seconds", log="", title="(c) execution time"),
    ],
)
def oop_band(found: Results) -> list[Claim]:
    """004 Fig. 11: memory, latency and work of a count over a band join.

    Both streams are in order and keep step, but what a band join makes of them is not in order: a plan in order must
    sort it by the time of one side before it is counted. Latency runs from the arrival of the rows that complete a
    minute to its count, in units of work; execution time is the processor's, to be compared only within a run.
    """
    in_order, agnostic = _memories(found)
    gaps = [in_order[band] - agnostic[band] for band in agnostic]
    least = min(after - before for before, after in pairwise(gaps))
    memory, latency = (max(found.ratios(AGNOSTIC, IN_ORDER, each).values()) for each in ("megabytes", "latency"))
    ours, theirs = (sum(found.along(plan, "processor_seconds").values()) for plan in (AGNOSTIC, IN_ORDER))
    return [
        Claim("the memory of order-agnostic is lower; the greatest ratio", memory, high=1.0),
        Claim("the gap grows with the band; the least growth from one to the next, in megabytes", least, low=0.05),
        Claim("order-agnostic counts sooner; the greatest ratio of latencies", latency, high=0.9),
        Claim("order-agnostic is less work; its processor time over that in order, all bands", ours / theirs, high=1.0),
    ]


def _busy_and_sparse(delay: float) -> tuple[LateStream, ...]:
    return LateStream("m1", BUSY), LateStream("m2", BUSY), LateStream("c", SPARSE, delay)


def _late_join_case(options: str, delay: float) -> MemoryCase:
    query = f"""CREATE QUERY q8 {options}AS SELECT m1.src, m1.dst, m1.ts
  FROM m1, m2 UNION c AS m3 WHERE m1.ts = m3.ts AND m1.src = m3.dst AND m1.dst = m3.src;"""
    return MemoryCase(query, _busy_and_sparse(delay), 80.0, 0.5, GROUPS)


@figure(
    cases=lambda: both_plans(_late_join_case, (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)),
    columns={"delay_seconds": PLACE, "results": "results", "megabytes": "megabytes"},
    panels=[Chart("seconds that the sparse stream is late", "megabytes", "megabytes", log="")],
)
def oop_late_join(found: Results) -> list[Claim]:
    """004 Fig. 12: memory of a join by equal times with late rows on one side.

    In order, the other part of the union waits for the late one, and so does the stream that it is joined with: two
    streams for as long as the delay. Order-agnostic, only the stream that it is joined with has to be kept.
    """
    in_order, agnostic = _memories(found)
    slopes = [float(np.polyfit(list(curve), list(curve.values()), 1)[0]) for curve in (agnostic, in_order)]
    greatest = max(found.ratios(AGNOSTIC, IN_ORDER, "megabytes").values())
    return [
        _same_results(found),
        Claim("in order grows with the delay; 60 s over none", in_order[60.0] / in_order[0.0], low=3),
        Claim("order-agnostic grows about half as fast; its slope over that in order", slopes[0] / slopes[1], 0.4, 0.6),
        Claim("order-agnostic needs less at every delay; the greatest ratio", greatest, high=1.0),
    ]


SLACK = 150
SLACKED = f"slack of {SLACK} s"
_SLIDING = {**PLANS, SLACKED: f"WITH (slack = '{SLACK} s') "}
_SLIDING_SECONDS = 420.0


def _sliding_case(plan: str, delay: float) -> MemoryCase:
    query = f"""CREATE QUERY q9 {_SLIDING[plan]}AS
  SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts] FROM m1 UNION m2 UNION c;"""
    return MemoryCase(query, _busy_and_sparse(delay), _SLIDING_SECONDS, 2.0)


@figure(
    cases=lambda: {
        (plan, delay): _sliding_case(plan, delay)
        for delay in (300.0, 240.0, 180.0, 120.0, 60.0, 0.0)
        for plan in _SLIDING
    },
    columns={"delay_seconds": PLACE, "results": "results", "megabytes": "megabytes", "turned_away": "turned_away"},
    panels=[Chart("seconds that the sparse stream is late", "megabytes", "megabytes", log="")],
)
def oop_sliding(found: Results) -> list[Claim]:
    """004 Fig. 13: memory of a sliding count with a late stream.

    Beside the two plans stands one with operator slack (004 section 2, option 2): it takes the rows themselves for
    progress, and does not wait for the sparse stream.
    """
    in_order, agnostic = _memories(found)
    refused = {delay: rows / (SPARSE * _SLIDING_SECONDS) for delay, rows in found.along(SLACKED, "turned_away").items()}
    flat = max(agnostic.values()) / min(agnostic.values())
    share = agnostic[300.0] / in_order[300.0]
    return [
        Claim("in order grows with the delay; 5 min over none", in_order[300.0] / in_order[0.0], low=3),
        Claim("order-agnostic is flat; its most over its least", flat, 1, 1.1),
        Claim("order-agnostic at 5 min; its share of in order", share, high=0.3, unit="%"),
        Claim("a slack that is long enough turns nothing away; at 2 min", refused[120.0], 0, 0, "%"),
        Claim("one that is too short loses what comes while the others go on; at 3 min", refused[180.0], 0.5, unit="%"),
    ]
