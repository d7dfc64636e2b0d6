"""The figures of 001 section 6: execution strategies, ETS on the enhanced query graph, and the output of a slide."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import sqrt

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest, growth
from millrace.experiments.figures.curves import Chart, Curve, Measured, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.generated_networks import (
    LATENT,
    NONE,
    ON_DEMAND,
    GeneratedStream,
    NetworkCase,
    selected_union,
    slide_and_union,
)
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun

BURSTY, SPARSE = 1000.0, 0.5
"""Rows per second."""
BURSTS = (1, 2, 5, 10, 20, 50, 100)
COST = 100
SECONDS = {LATENT: 10.0, ON_DEMAND: 10.0, NONE: 200.0}
"""Without ETS a row waits for the sparse stream: a hundred rows of it are needed to measure for how long."""
_TIMES = {LATENT: "latent", ON_DEMAND: "on demand", NONE: "no ETS"}
FORMULAS: dict[str, Callable[[float], float]] = {
    "dfs": lambda size: (size + 1) * COST / 1e6,
    "bfs": lambda size: (1.5 * size + 0.5) * COST / 1e6,
}


def _burst_cases() -> dict[Point, NetworkCase]:
    """Both strategies; without ETS for one size of a burst, else for all."""
    none: dict[Point, NetworkCase] = {(f"no ETS, {each}", None): _burst_case(NONE, each, 10) for each in FORMULAS}
    return none | {
        (f"{_TIMES[time]}, {strategy}", float(size)): _burst_case(time, strategy, size)
        for time in (ON_DEMAND, LATENT)
        for size in BURSTS
        for strategy in FORMULAS
    }


def _burst_case(time: str, strategy: str, size: int) -> NetworkCase:
    bursty = GeneratedStream("bursty", BURSTY, time, {"arrivals": "bursts", "burst": size})
    sparse = GeneratedStream("sparse", SPARSE, time)
    text = selected_union(bursty, sparse, SECONDS[time], passing=1, strategy=strategy)
    return NetworkCase(text, SECONDS[time], Costs(row=COST, punctuation=COST, ets=10))


_PLACES = ("no ETS", "on demand", "latent")


def _by_time(found: Results) -> list[Curve]:
    """The latency of each strategy in bursts of ten rows."""
    tens = {name: each["latency"] for (name, size), each in found.items() if size in (10.0, None)}
    return [
        Curve(strategy, [(place, tens[f"{time}, {strategy}"]) for place, time in enumerate(_PLACES)])
        for strategy in FORMULAS
    ]


@figure(
    cases=_burst_cases,
    columns={"rows_in_a_burst": PLACE, "results": "results", "mean_latency_seconds": "latency"},
    panels=[
        Chart("bursts of ten rows", "mean latency, seconds", _by_time, log="y", places=_PLACES, title="(a) by time"),
        Chart(
            "rows in a burst",
            "mean latency, seconds",
            lambda found: [each for each in found.curves("latency") if not each.level],
            {f"{strategy} by formula": formula for strategy, formula in FORMULAS.items()},
            log="",
            title="(b) by burst",
        ),
    ],
)
def strategy_burst(found: Results) -> list[Claim]:
    """001 Fig. 14: depth-first and breadth-first latency under bursts.

    Bursts of n rows are evenly spaced, so that each is processed before the next one comes; every row passes.
    """
    none = [found.level(f"no ETS, {strategy}", "latency") for strategy in FORMULAS]
    enabled = [max(found.along(f"on demand, {strategy}", "latency").values()) for strategy in FORMULAS]
    # The mean residual of n exponential gaps has a relative standard error of sqrt(2 / n).
    error = round(2 * sqrt(2 / (SPARSE * SECONDS[NONE])), 2)
    return [
        _follows(found, "dfs", "depth-first takes (n+1)c"),
        _follows(found, "bfs", "breadth-first takes (1.5n+0.5)c"),
        about("no ETS: depth-first waits 1/0.5 s (two standard errors of 100 rows)", none[0], 2.0, error, "s"),
        about("no ETS: breadth-first waits as long; the ratio", none[1] / none[0], 1.0, 0.02),
        Claim("on demand: orders below that, even in the largest bursts; the ratio", min(none) / max(enabled), low=50),
    ]


def _follows(found: Results, strategy: str, words: str) -> Claim:
    measured = found.along(f"latent, {strategy}", "latency")
    ratios = [seconds / FORMULAS[strategy](size) for size, seconds in measured.items()]
    return about(f"latent: {words}; the furthest ratio to that", furthest(ratios), 1.0, 0.02)


SELECTIONS = (8, 4, 2, 1)
ENABLED = "TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL INTERVAL 1 MICROSECOND"
SILENT = "TIMESTAMP BY ts ORDERED ETS NONE"
ARCS, STEPS, WITHOUT = "by ETS arcs", "operator by operator", "no ETS"
_WAYS = {ARCS: (ENABLED, True), STEPS: (ENABLED, False), WITHOUT: (SILENT, True)}


def _overhead_case(way: str, selections: int, seconds: float = 30.0) -> NetworkCase:
    time, arcs = _WAYS[way]
    text = slide_and_union([GeneratedStream(name, 50.0, time) for name in "abc"], seconds, slide=0.5, below=selections)
    costs = Costs(row=50, punctuation=10, ets=10)
    return NetworkCase(text, seconds, costs, ets_arcs=arcs, observe=answers)


_BELOW = "selections over each stream"


def _both_ways(found: Results) -> list[Curve]:
    return [
        Curve(way, [(count, seconds * 1e3) for count, seconds in found.along(way, "latency").items()])
        for way in (ARCS, STEPS)
    ]


def answers(run: VirtualRun) -> Measured:
    """A digest of the results in the order in which they came out, whatever batches they came in."""
    rows = pa.concat_tables(each.rows for each in run.deliveries).combine_chunks()
    digest = hashlib.sha256()
    for column in rows.columns:
        digest.update(repr(column.cast(pa.string()).to_pylist()).encode())
    return {"answers": int(digest.hexdigest()[:12], 16)}


@figure(
    cases=lambda: {(way, float(count)): _overhead_case(way, count) for count in SELECTIONS for way in _WAYS},
    columns={"selections": PLACE, "results": "results", "mean_latency_seconds": "latency"},
    panels=[
        Chart(_BELOW, "mean latency, seconds", "latency", title="(a) with and without ETS"),
        Chart(_BELOW, "mean latency, ms", _both_ways, log="x", title="(b) a closer look at both ways"),
    ],
)
def eqg_overhead(found: Results) -> list[Claim]:
    """001 Fig. 15: ETS by arcs and operator by operator.

    A punctuation costs an operator as much as an ETS costs the end of an arc, so that what differs is the operators
    that arcs skip. Their number is varied below the aggregate; the path of the third stream's rows stays as it is.
    Timestamps are the rows' own, so that answers can be compared; a silent stream's bound may advance up to the clock.
    """
    ratios = found.ratios(STEPS, ARCS, "latency")
    differing = max(len({found[way, number]["answers"] for way in _WAYS}) for number in ratios)
    least_growth = min(growth(ratios.values()))
    slower = min(found.ratios(WITHOUT, STEPS, "latency").values())
    return [
        Claim("the answers are the same; different ones for a query", differing, 1, 1),
        Claim("both resolve idle-waiting; no ETS over the slower", slower, low=10),
        Claim("two selections: steps are slower than arcs; the ratio", ratios[2.0], low=1.05),
        Claim("two selections: by 14 %; the ratio", ratios[2.0], 1.1, 1.18, reproduces=False),
        Claim("the ratio grows with every doubling of the selections; its least growth", least_growth, low=1.0),
    ]


SLIDES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.02)
BIN = 20_000
"""Microseconds in which outputs are counted."""
SETTLED = 6.0
"""Seconds that are counted; a slide before and after them is left out, because streams begin and end there."""


def _slide_case(time: str, slide: float) -> NetworkCase:
    seconds = SETTLED + 2 * slide
    text = slide_and_union([GeneratedStream(name, 500.0, time) for name in "abc"], seconds, slide=slide)
    return NetworkCase(text, seconds, Costs(row=10, punctuation=10, ets=10), observe=burstiness)


def burstiness(run: VirtualRun) -> Measured:
    """The most outputs in a bin less the fewest, over the mean, in the middle of the run."""
    moments = np.array([each.now for each in run.deliveries], np.int64)
    middle = (int(moments[0]) + int(moments[-1])) // 2
    bins = round(SETTLED * 1e6 / BIN)
    numbers = (moments - middle) // BIN + bins // 2
    inside = (numbers >= 0) & (numbers < bins)
    rows = np.array([each.rows.num_rows for each in run.deliveries])
    counts = np.bincount(numbers[inside], rows[inside], minlength=bins)
    return {"burstiness": float((counts.max() - counts.min()) / counts.mean())}


@figure(
    cases=lambda: {(_TIMES[time], slide): _slide_case(time, slide) for slide in SLIDES for time in (NONE, ON_DEMAND)},
    columns={"slide_seconds": PLACE, "burstiness": "burstiness"},
    panels=[Chart("slide, seconds", "burstiness", "burstiness", {"slide / 0.02 s": lambda slide: slide * 1e6 / BIN})],
)
def slide_burstiness(found: Results) -> list[Claim]:
    """001 Fig. 16: burstiness of a slide aggregate's output."""
    without, enabled = (found.along(name, "burstiness") for name in ("no ETS", "on demand"))
    # Below half a second the spread of Poisson arrivals adds as much as the slide.
    ratios = [value / (slide * 1e6 / BIN) for slide, value in without.items() if slide >= 0.5]
    return [
        about("without ETS slide/0.02 s, from slides of 0.5 s on; the furthest ratio", furthest(ratios), 1.0, 0.15),
        Claim("with ETS about 2; the least", min(enabled.values()), low=1.0),
        Claim("with ETS about 2; the greatest", max(enabled.values()), high=3.0),
    ]
