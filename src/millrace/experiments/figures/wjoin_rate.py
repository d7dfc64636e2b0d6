"""The response time of in-order window joins by the rate of the slow stream (003 Figs. 9 and 10)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, curves, latency, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.window_joins import ADAPTIVE, ALPHA, FILTER, METHODS, SYNC, WINDOW, JoinCase
from millrace.plan.joins.join_cost import JoinCost

PAIR = 5e-4
"""Seconds that a pair of rows takes."""
FAST = 10.0
EVEN, POISSON = "even", "Poisson"
RATES = {EVEN: (1 / 30, 0.1, 0.3, 1.0), POISSON: (0.01, 0.1, 1.0)}
"""Slow rows a second. Evenly spaced ones come a whole number of times in a window, so that every fast row is compared
with as many, as the equations have it."""
SPARSEST = min(RATES[POISSON])


def settings() -> dict[Key, JoinCase]:
    """Every method at each rate, but for the sparsest one, where Adaptive does what Sync-Filter does; longest first."""
    return {
        (_name(arrivals, method), rate): JoinCase(
            method, PAIR, rate, FAST, _seconds(arrivals, rate), seed=2 if arrivals == POISSON else None
        )
        for arrivals in (POISSON, EVEN)
        for rate in RATES[arrivals]
        for method in METHODS
        if method != ADAPTIVE or rate > SPARSEST
    }


def _seconds(arrivals: str, rate: float) -> float:
    """Long enough for some slow rows after the first window; of Poisson streams for 30 of them at least."""
    return WINDOW + max(120.0, 8 / rate) if arrivals == EVEN else max(600.0, 30 / rate)


def _name(arrivals: str, method: str) -> str:
    return f"{arrivals}, {method}"


def cost(rate: float) -> JoinCost:
    """What the equations say of a rate."""
    return JoinCost(PAIR, WINDOW, rate, FAST)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The mean response times, and the equations beside them."""
    formulas = [
        Curve("equation 3", [(rate, cost(rate).sync_filter) for rate in RATES[EVEN]], dashed=True),
        Curve("equation 5", [(rate, cost(rate).filter_order) for rate in RATES[EVEN]], dashed=True),
    ]
    picture = chart(
        "Mean response time of an in-order window join with 10 fast rows a second, windows of 60 s",
        "slow rows a second",
        "mean response time, seconds",
        [*curves(found, latency), *formulas],
    )
    rows = table(found, "slow_rows_per_second", results=lambda each: each.results, mean_response_seconds=latency)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    sparse = [found[_name(POISSON, method), SPARSEST].latency for method in (SYNC, FILTER)]
    even, random = (improvement(found, arrivals) for arrivals in (EVEN, POISSON))
    by_seven = [abs(share / cost(rate).improvement - 1) for rate, share in even.items()]
    return [
        Claim("even: the improvement is what equation 7 says; off by at most", max(by_seven), high=0.1, unit="%"),
        about("even: at one slow row a second it is 23 %", even[1.0], 0.23, 0.05, "%"),
        Claim("Poisson: it grows with the rate; the least step between two rates", _least_step(random), low=1),
        Claim(
            "Poisson: at 0.01 slow rows a second it is 0.3 %, within 30 %",
            random[SPARSEST],
            0.0021,
            0.0039,
            "%",
            reproduces=False,
        ),
        about(
            f"even: Adaptive is Filter-Order from c|w|λ1λ2 >= {ALPHA} on, else Sync-Filter; the furthest ratio",
            furthest(adapted(found)),
            1.0,
            0.01,
        ),
        Claim("Poisson: above a minute at 0.01 slow rows a second, by either method", min(sparse), low=60, unit="s"),
    ]


def improvement(found: Mapping[Key, Outcome], arrivals: str) -> dict[float, float]:
    """By how much Filter-Order is faster than Sync-Filter, as a share of the latter."""
    sync, ordered = (along(found, _name(arrivals, method), latency) for method in (SYNC, FILTER))
    return {rate: 1 - ordered[rate] / seconds for rate, seconds in sync.items()}


def _least_step(values: Mapping[float, float]) -> float:
    """The least ratio of a value to the one before."""
    return min(after / before for before, after in pairwise(values.values()))


def adapted(found: Mapping[Key, Outcome]) -> list[float]:
    """What the adaptive join takes over what the method takes that it should have chosen."""
    chosen = {"filter_order": FILTER, "sync_filter": SYNC}
    return [
        seconds / found[_name(EVEN, chosen[cost(rate).adaptive(ALPHA)]), rate].latency
        for rate, seconds in along(found, _name(EVEN, ADAPTIVE), latency).items()
    ]


FIGURE = Figure(
    "wjoin-rate",
    "003 Figs. 9, 10",
    "response time of in-order joins by the rate of the slow stream",
    settings,
    findings,
)
