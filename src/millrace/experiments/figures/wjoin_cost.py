"""The response time of in-order window joins by what a pair of rows costs (003 Figs. 7 and 8).

The equations are about evenly spaced rows; the paper measured with Poisson streams. Both are run.
"""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, curves, latency, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.window_joins import ADAPTIVE, ALPHA, FILTER, METHODS, SYNC, WINDOW, JoinCase
from millrace.plan.joins.join_cost import JoinCost

SLOW, FAST = 1.0, 10.0
"""Rows a second."""
EVEN, POISSON = "even", "Poisson"
PAIRS = {EVEN: (1e-6, 1e-4, 3e-4, 5e-4, 8e-4), POISSON: (1e-4, 5e-4, 8e-4)}
"""Seconds that a pair of rows takes."""
SECONDS = {EVEN: 120.0, POISSON: 1200.0}
"""Evenly spaced rows meet the same every second; of Poisson streams it takes twenty minutes, as in the paper."""
SWITCHING = 5e-4
"""The cost at which c|w|λ1λ2 is 0.3, the paper's alpha."""


def settings() -> dict[Key, JoinCase]:
    """Every method at each cost; the longest runs first."""
    return {
        (_name(arrivals, method), pair): JoinCase(
            method, pair, SLOW, FAST, SECONDS[arrivals], seed=1 if arrivals == POISSON else None
        )
        for arrivals in (POISSON, EVEN)
        for pair in PAIRS[arrivals]
        for method in METHODS
    }


def _name(arrivals: str, method: str) -> str:
    return f"{arrivals}, {method}"


def cost(pair: float) -> JoinCost:
    """What the equations say of a cost."""
    return JoinCost(pair, WINDOW, SLOW, FAST)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The mean response times, and the equations beside them."""
    formulas = [
        Curve("equation 3", [(pair, cost(pair).sync_filter) for pair in PAIRS[EVEN]], dashed=True),
        Curve("equation 5", [(pair, cost(pair).filter_order) for pair in PAIRS[EVEN]], dashed=True),
    ]
    picture = chart(
        "Mean response time of an in-order window join, 1 and 10 rows a second, windows of 60 s",
        "seconds that a pair of rows takes",
        "mean response time, seconds",
        [*curves(found, latency), *formulas],
        log_y=False,
    )
    rows = table(found, "pair_seconds", results=lambda each: each.results, mean_response_seconds=latency)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    sync, ordered = (along(found, _name(EVEN, method), latency) for method in (SYNC, FILTER))
    by_three = [seconds / cost(pair).sync_filter for pair, seconds in sync.items()]
    by_five = [seconds / cost(pair).filter_order for pair, seconds in ordered.items()]
    better = improvement(found, POISSON, FILTER)
    return [
        about("even: Sync-Filter takes what equation 3 says; the furthest ratio", furthest(by_three), 1.0, 0.1),
        about("even: Filter-Order takes what equation 5 says; the furthest ratio", furthest(by_five), 1.0, 0.1),
        about("even: Sync-Filter where a pair takes 0.5 ms", sync[SWITCHING], 0.72, 0.02, "s"),
        Claim("even: Filter-Order is flat; its most over its least", spread(ordered), 1, 1.01),
        about(
            f"even: Adaptive is Filter-Order from c|w|λ1λ2 >= {ALPHA} on, else Sync-Filter; the furthest ratio",
            furthest(adapted(found)),
            1.0,
            0.01,
        ),
        about("Poisson: Filter-Order is better by 28 % at 0.5 ms", better[SWITCHING], 0.28, 0.15, "%"),
        Claim("Poisson: by 45 % at 0.5 ms", better[SWITCHING], 0.4, 0.5, "%", reproduces=False),
        Claim("Poisson: by more than 50 % at 0.8 ms", better[8e-4], low=0.5, unit="%", reproduces=False),
        Claim(
            "Poisson: Adaptive is no worse than Sync-Filter at 0.5 ms; better by",
            improvement(found, POISSON, ADAPTIVE)[SWITCHING],
            low=0,
            unit="%",
        ),
    ]


def spread(values: Mapping[float, float]) -> float:
    """The greatest of some values over the least."""
    return max(values.values()) / min(values.values())


def improvement(found: Mapping[Key, Outcome], arrivals: str, method: str) -> dict[float, float]:
    """By how much a method is faster than Sync-Filter, as a share of the latter."""
    sync, other = (along(found, _name(arrivals, each), latency) for each in (SYNC, method))
    return {pair: 1 - other[pair] / seconds for pair, seconds in sync.items()}


def adapted(found: Mapping[Key, Outcome]) -> list[float]:
    """What the adaptive join takes over what the method takes that it should have chosen."""
    chosen = {"filter_order": FILTER, "sync_filter": SYNC}
    return [
        seconds / found[_name(EVEN, chosen[cost(pair).adaptive(ALPHA)]), pair].latency
        for pair, seconds in along(found, _name(EVEN, ADAPTIVE), latency).items()
    ]


FIGURE = Figure(
    "wjoin-cost", "003 Figs. 7, 8", "response time of in-order joins by what a pair costs", settings, findings
)
