"""The figures of 000 section 6: the union of a busy and a sparse stream, whose time is told in four ways.

A row of the busy stream leaves the union when the sparse stream is known to have come as far. A: only the rows of the
sparse stream tell; B: periodic ETS too; C: ETS on demand; D: timestamps are latent and nothing waits. A takes an hour
of input, because only few sparse rows come. Elsewhere every row meets the same, and less input is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import expm1, sqrt

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Chart, Curve, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.generated_networks import (
    LATENT,
    NONE,
    ON_DEMAND,
    GeneratedStream,
    NetworkCase,
    every,
    selected_union,
)
from millrace.hosts.virtual.clock import Costs

BUSY, SPARSE = 50.0, 0.05
"""Rows per second."""
PASSING = 0.95
HOUR, SHORT = 3600.0, 600.0
"""Seconds of input."""
COSTS = Costs(row=50, punctuation=50, ets=10)
RATES = (0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
"""Periodic ETS per second."""
A, B, C, D = "A, no ETS", "B, periodic", "C, on demand", "D, latent"


def _case(busy: str, sparse: str, seconds: float) -> NetworkCase:
    """The streams with these time contracts."""
    streams = GeneratedStream("busy", BUSY, busy), GeneratedStream("sparse", SPARSE, sparse)
    return NetworkCase(selected_union(*streams, seconds, passing=PASSING), seconds, COSTS)


def heartbeats(rate: float) -> NetworkCase:
    """Scenario B with so many ETS per second: for at least 100 of them, and at least a minute.

    >>> heartbeats(0.1).seconds, heartbeats(500).seconds
    (1000.0, 60.0)
    """
    return _case(NONE, every(rate), max(100 / rate, 60.0 if rate >= 100 else 300.0))


def scenarios(rates: Sequence[float] = RATES) -> dict[Point, NetworkCase]:
    """Scenarios A to C, B at each rate."""
    return {
        (A, None): _case(NONE, NONE, HOUR),
        (C, None): _case(ON_DEMAND, ON_DEMAND, SHORT),
        **{(B, rate): heartbeats(rate) for rate in rates},
    }


def _closest(found: Results) -> list[Curve]:
    """What (a) cannot show: C and D, in milliseconds."""
    curves = [each for each in found.curves("latency") if each.name in (C, D)]
    return [Curve(each.name, [(rate, seconds * 1e3) for rate, seconds in each.points], level=True) for each in curves]


@figure(
    cases=lambda: {**scenarios(), (D, None): _case(LATENT, LATENT, SHORT)},
    columns={"ets_per_second": PLACE, "results": "results", "mean_latency_seconds": "latency"},
    panels=[
        Chart("periodic ETS per second", "mean latency, seconds", "latency", title="(a) all scenarios"),
        Chart("periodic ETS per second", "mean latency, ms", _closest, log="x", title="(b) C and D"),
    ],
)
def ets_latency(found: Results) -> list[Claim]:
    """000 Fig. 7: latency of a union without ETS, with periodic and on-demand ETS."""
    none, on_demand, latent = (found.level(name, "latency") for name in (A, C, D))
    # The mean residual of n exponential gaps has a relative standard error of sqrt(2 / n).
    error = round(2 * sqrt(2 / (SPARSE * HOUR)), 2)
    periodic = found.along(B, "latency")
    ratios = [seconds / (1 / (2 * rate) + latent) for rate, seconds in periodic.items()]
    return [
        about("A waits for the next sparse row, 1/0.05 s (two standard errors of 180 rows)", none, 20.0, error, "s"),
        about("B waits 1/(2 rate), beside the work; the furthest ratio to that", furthest(ratios), 1.0, 0.2),
        Claim("B never reaches C; its best over C", min(periodic.values()) / on_demand, low=1.1),
        about("C is an ETS slower than D; the difference", on_demand - latent, COSTS.ets / 1e6, 0.5, "s"),
        Claim("that difference is four orders below A; its share of A", (on_demand - latent) / none, high=1e-4),
    ]


def waiting(rate: float) -> float:
    """The expected share with so many ETS per second: from the first row after an ETS to the next ETS.

    >>> round(waiting(100), 2), round(waiting(150), 2)
    (0.2, 0.14)
    """
    rows = BUSY * PASSING / rate
    return 1 + expm1(-rows) / rows


@figure(
    cases=lambda: scenarios((*RATES, 150.0)),
    columns={"ets_per_second": PLACE, "idle_share": "idle"},
    panels=[Chart("periodic ETS per second", "share of the time", "idle", {"B by formula": waiting})],
)
def ets_idle(found: Results) -> list[Claim]:
    """000 section 6: share of the time in which a union idle-waits.

    The union idle-waits while it holds a row whose time has come, and another input holds the row back.
    """
    shares, formula = found.along(B, "idle"), "1 - (1 - exp(-x))/x, x = 47.5/rate"
    off = max(abs(share - waiting(rate)) for rate, share in shares.items())
    return [
        Claim("A waits nearly always (paper: 99 %)", found.level(A, "idle"), low=0.99, unit="%"),
        Claim(f"B waits {formula}; the greatest difference to that", off, high=0.02, unit="%"),
        Claim("B at 150 ETS per second (paper: about 15 % from 100 on)", shares[150.0], 0.12, 0.18, "%"),
        Claim("C hardly ever waits (paper: below 0.1 %)", found.level(C, "idle"), high=0.001, unit="%"),
    ]


HIGH_RATES = (1000.0, 5000.0, 9900.0)
MERGED = "B, merged"


def _memory_cases() -> dict[Point, NetworkCase]:
    """Scenarios A to C with every punctuation queued; at the high rates of B, punctuation is also merged."""
    high = {rate: _case(NONE, every(rate), 10.0) for rate in HIGH_RATES}
    periodic = {rate: heartbeats(rate) for rate in RATES} | high
    return {
        **scenarios(()),
        **{(B, rate): replace(case, merge_punctuation=False) for rate, case in periodic.items()},
        **{(MERGED, rate): case for rate, case in high.items()},
    }


@figure(
    cases=_memory_cases,
    columns={"ets_per_second": PLACE, "peak_elements": "peak"},
    panels=[Chart("periodic ETS per second", "most elements at a time", "peak")],
)
def ets_memory(found: Results) -> list[Claim]:
    """000 Fig. 8: peak memory of a union, punctuation queued and merged.

    What is counted is the elements in the graph. The rise of periodic ETS shows where punctuation keeps the processor
    busy: the union and its selection take 100 microseconds for one, so that 9900 per second are 99 % of it, and what
    comes while rows are processed has to queue. Runs at such rates are shorter.
    """
    none, on_demand = found.level(A, "peak"), found.level(C, "peak")
    queued, merged = found.along(B, "peak"), found.along(MERGED, "peak")
    least, fastest = min(queued.values()), max(queued)
    return [
        Claim("A holds thousands", none, low=1000),
        Claim("C holds about 2", on_demand, 1, 5),
        Claim("C is two orders below A; A over C", none / on_demand, low=100),
        Claim("B falls with the rate; its first over its least", queued[min(queued)] / least, low=10),
        Claim("B, queued, rises again at high rates; its last over its least", queued[fastest] / least, low=2),
        Claim("B, merged, does not; its last over its least", merged[fastest] / min(merged.values()), high=1.5),
    ]
