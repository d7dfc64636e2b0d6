"""Depth-first against breadth-first execution when rows come in bursts (001 Fig. 14).

Bursts of n simultaneous rows are evenly spaced, so that each is worked off before the next; every row passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, curves, latency, level, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome, Setting
from millrace.experiments.figures.networks import LATENT, NONE, ON_DEMAND, Source, selected_union
from millrace.hosts.virtual.host import Costs

BURSTY, SPARSE = 1000.0, 0.5
"""Rows a second."""
BURSTS = (1, 2, 5, 10, 20, 50, 100)
COST = 100
COSTS = Costs(row=COST, punctuation=COST, ets=10)
SECONDS = {LATENT: 10.0, ON_DEMAND: 10.0, NONE: 200.0}
"""Without ETS a row waits for the sparse stream, and it takes a hundred of its rows to tell for how long."""
_NAMES = {LATENT: "latent", ON_DEMAND: "on demand", NONE: "no ETS"}
FORMULAS: dict[str, Callable[[float], float]] = {
    "dfs": lambda size: (size + 1) * COST / 1e6,
    "bfs": lambda size: (1.5 * size + 0.5) * COST / 1e6,
}


def settings() -> dict[Key, Setting]:
    """Both strategies, without ETS for one size of a burst, else for all; the longest runs first."""
    none: dict[Key, Setting] = {(_name(NONE, each), None): _setting(NONE, each, 10) for each in FORMULAS}
    return none | {
        (_name(time, strategy), float(size)): _setting(time, strategy, size)
        for time in (ON_DEMAND, LATENT)
        for size in BURSTS
        for strategy in FORMULAS
    }


def _name(time: str, strategy: str) -> str:
    return f"{_NAMES[time]}, {strategy}"


def _setting(time: str, strategy: str, size: int) -> Setting:
    bursty = Source("bursty", BURSTY, time, {"arrivals": "bursts", "burst": size})
    text = selected_union(bursty, Source("sparse", SPARSE, time), SECONDS[time], passing=1, strategy=strategy)
    return Setting(text, SECONDS[time], COSTS)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The mean latencies, and the formulas for latent timestamps beside them."""
    formulas = [
        Curve(f"{strategy} by formula", [(size, formula(size)) for size in BURSTS], dashed=True)
        for strategy, formula in FORMULAS.items()
    ]
    picture = chart(
        "Mean latency by strategy and burst, 1000 and 0.5 rows a second",
        "rows in a burst",
        "mean latency, seconds",
        [*curves(found, latency), *formulas],
    )
    rows = table(found, "rows_in_a_burst", results=lambda each: each.results, mean_latency_seconds=latency)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    none = [level(found, _name(NONE, strategy), latency) for strategy in FORMULAS]
    enabled = [max(along(found, _name(ON_DEMAND, strategy), latency).values()) for strategy in FORMULAS]
    # The mean residual of n exponential gaps has a relative standard error of sqrt(2 / n).
    error = round(2 * sqrt(2 / (SPARSE * SECONDS[NONE])), 2)
    return [
        _follows(found, "dfs", "depth-first takes (n+1)c"),
        _follows(found, "bfs", "breadth-first takes (1.5n+0.5)c"),
        about("no ETS: depth-first waits 1/0.5 s (two standard errors of 100 rows)", none[0], 2.0, error, "s"),
        about("no ETS: breadth-first waits as long; the ratio", none[1] / none[0], 1.0, 0.02),
        Claim("on demand: orders below that, even in the largest bursts; the ratio", min(none) / max(enabled), low=50),
    ]


def _follows(found: Mapping[Key, Outcome], strategy: str, words: str) -> Claim:
    measured = along(found, _name(LATENT, strategy), latency)
    ratios = [seconds / FORMULAS[strategy](size) for size, seconds in measured.items()]
    return about(f"latent: {words}; the furthest ratio to that", furthest(ratios), 1.0, 0.02)


FIGURE = Figure(
    "strategy-burst", "001 Fig. 14", "depth-first and breadth-first latency under bursts", settings, findings
)
