"""The figures of 003: the window join of a slow and a fast stream in order of time, by each method.

Every pair of rows in a window is compared. Every fast row names the slow row before it as its partner, and makes a
result with that one alone. The result tells the response time of the fast row: how long after its arrival it has been
joined, and what it makes may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest, growth
from millrace.experiments.figures.curves import Chart, Curve, Measured, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import TIMESTAMP, Times
from millrace.language import parse_network
from millrace.plan.joins.join_cost import JoinCost

SYNC, FILTER, ADAPTIVE = "Sync-Filter", "Filter-Order", "Adaptive"
METHODS = {SYNC: "sync_filter", FILTER: "filter_order", ADAPTIVE: "adaptive"}
WINDOW = 60.0
"""Seconds."""
ALPHA = 0.29
_SECOND = 1_000_000


@dataclass(frozen=True)
class JoinArrivals:
    """When rows of both streams arrive, in microseconds; that is their timestamp too."""

    slow: Times
    fast: Times

    def feeds(self) -> dict[str, list[pa.Table]]:
        """The rows: a slow one has a number, and a fast one that of its partner."""
        partners = np.searchsorted(self.slow, self.fast, side="right") - 1
        slow = {"id": np.arange(len(self.slow)), "ts": pa.array(self.slow).cast(TIMESTAMP)}
        return {
            "slow": [pa.table(slow)],
            "fast": [pa.table({"partner": partners, "ts": pa.array(self.fast).cast(TIMESTAMP)})],
        }


def even(slow: float, fast: float, seconds: float) -> JoinArrivals:
    """Evenly spaced rows; of the fast ones between two slow ones the first comes right after a slow one.

    >>> [times.tolist() for times in (even(1, 2, 2).slow, even(1, 2, 2).fast)]
    [[0, 1000000], [1, 500001, 1000001, 1500001]]
    """
    first, second = (np.round(np.arange(round(rate * seconds)) * (_SECOND / rate)) for rate in (slow, fast))
    return JoinArrivals(first.astype(np.int64), second.astype(np.int64) + 1)


def poisson(slow: float, fast: float, seconds: float, seed: int) -> JoinArrivals:
    """Rows at random."""
    random = np.random.default_rng(seed)
    first, second = (
        np.sort(random.integers(0, round(seconds * _SECOND), random.poisson(rate * seconds))) for rate in (slow, fast)
    )
    return JoinArrivals(first, second)


def network(method: str, window: float = WINDOW, alpha: float = ALPHA) -> str:
    """The query, joined by a method."""
    length = f"{round(window * _SECOND)} MICROSECONDS"
    options = f"join = '{METHODS[method]}'" + (f", alpha = {alpha}" if method == ADAPTIVE else "")
    return f"""CREATE STREAM slow (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE STREAM fast (partner BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE QUERY joined WITH ({options}) AS
  SELECT f.ts FROM slow [RANGE {length}] AS s, fast [RANGE {length}] AS f
  WHERE s.id - f.partner = 0 ORDER BY greatest(s.ts, f.ts);"""


def responses(run: VirtualRun) -> tuple[Times, Times]:
    """The fast rows that have found their partner, by their arrival, and how long each took (microseconds)."""
    arrived = [each.rows.column("ts").cast(pa.int64()).to_numpy() for each in run.deliveries]
    taken = [each.now - times for each, times in zip(run.deliveries, arrived, strict=True)]
    empty = [np.empty(0, np.int64)]
    return np.concatenate([*empty, *arrived]), np.concatenate([*empty, *taken])


@dataclass(frozen=True)
class JoinCase:
    """The join of two streams for so many seconds: a pair takes `pair` seconds; with a seed, rows come at random."""

    method: str
    pair: float
    slow: float
    fast: float
    seconds: float
    seed: int | None = None

    def arrivals(self) -> JoinArrivals:
        """What arrives when."""
        if self.seed is None:
            return even(self.slow, self.fast, self.seconds)
        return poisson(self.slow, self.fast, self.seconds, self.seed)

    def measure(self) -> Measured:
        """The mean response time of a fast row that comes when windows are full and before the last slow row does."""
        arrivals = self.arrivals()
        costs = Costs(pair=self.pair * _SECOND)
        run = VirtualRun(parse_network(network(self.method)), feeds=arrivals.feeds(), cost=costs, rows_per_step=1)
        run.run()
        arrived, taken = responses(run)
        counted = taken[(arrived >= WINDOW * _SECOND) & (arrived < arrivals.slow[-1])]
        return {"results": len(counted), "response": float(counted.mean()) / _SECOND}


@dataclass(frozen=True)
class FormulaCase:
    """The mean response time of a method by the equations of 003."""

    method: str
    cost: JoinCost

    def measure(self) -> Measured:
        """Equation 3 or equation 5."""
        cost = self.cost
        return {
            "response": cost.sync_filter if self.method == SYNC else cost.filter_order,
            "pair": cost.pair,
            "slow": cost.slow,
            "fast": cost.fast,
        }


def improvement(found: Results, curves: str, method: str = FILTER) -> dict[float, float]:
    """By how much a method is faster than Sync-Filter, as a share of the latter, along curves of a common name."""
    ratios = found.ratios(f"{curves}, {method}", f"{curves}, {SYNC}", "response")
    return {place: 1 - ratio for place, ratio in ratios.items()}


def _improvements(found: Results, curves: str) -> list[Curve]:
    """By how much each other method is faster than Sync-Filter."""
    methods = [method for method in (ADAPTIVE, FILTER) if found.along(f"{curves}, {method}", "response")]
    return [Curve(method, list(improvement(found, curves, method).items())) for method in methods]


_SECONDS, _BETTER, _WORK = "mean response time, seconds", "faster than Sync-Filter by", "c |w| λ1 λ2, windows of a day"
DAY = 86_400.0
FIG_5, FIG_6 = "Fig. 5, c varies", "Fig. 6, λ1 varies"
_LIMIT = 1 / (DAY * 1 * 10)
"""The cost of a pair up to which equation 1 holds for 1 and 10 rows per second."""
COSTS = {
    FIG_5: tuple(JoinCost(pair, DAY, 1, 10) for pair in (*(1e-8 * 2**doubled for doubled in range(7)), _LIMIT)),
    FIG_6: tuple(JoinCost(1e-4, DAY, slow, 1) for slow in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)),
}


@figure(
    cases=lambda: {
        (f"{name}, {method}", cost.work): FormulaCase(method, cost)
        for name, costs in COSTS.items()
        for method in (SYNC, FILTER)
        for cost in costs
    },
    columns={
        "pair_seconds": "pair",
        "slow_rows_per_second": "slow",
        "fast_rows_per_second": "fast",
        "work": PLACE,
        "mean_response_seconds": "response",
    },
    panels=[
        Chart(_WORK, _SECONDS, "response", log="x", under=f"{FIG_5}, ", title="Fig. 5(a): c varies"),
        Chart(_WORK, _BETTER, partial(_improvements, curves=FIG_5), log="x", title="Fig. 5(b)"),
        Chart(_WORK, _SECONDS, "response", under=f"{FIG_6}, ", title="Fig. 6(a): λ1 varies"),
        Chart(_WORK, _BETTER, partial(_improvements, curves=FIG_6), log="x", title="Fig. 6(b)"),
    ],
    sort_rows=False,
)
def wjoin_analytic(found: Results) -> list[Claim]:
    """003 Figs. 5, 6: response time of in-order joins by the equations.

    Over c|w|λ1λ2, by which the methods differ: Fig. 5 varies what a pair costs, Fig. 6 the rate of the slow stream.
    """
    flat = [seconds / 0.55 for seconds in found.along(f"{FIG_5}, {FILTER}", "response").values()]
    improved = improvement(found, FIG_5)
    off = round(max(abs(improved[cost.work] - cost.improvement) for cost in COSTS[FIG_5]), 9)
    limit, last = COSTS[FIG_5][-1].work, COSTS[FIG_6][-1].work
    sync, ordered = (found[f"{FIG_6}, {method}", last]["response"] for method in (SYNC, FILTER))
    return [
        about("Fig. 5: Filter-Order takes 0.55 s whatever a pair costs; the furthest ratio", furthest(flat), 1.0, 0.01),
        Claim("Fig. 5: the improvement is as equation 7 says; the greatest difference", off, high=1e-6, unit="%"),
        about("Fig. 5: it comes to 50 % where equation 1 ends to hold", improved[limit], 0.5, 0.001, "%"),
        about("Fig. 6: Sync-Filter at 0.1 slow rows per second", sync, 10.3, 0.01, "s"),
        about("Fig. 6: Filter-Order there", ordered, 5.5, 0.01, "s"),
    ]


EVEN, POISSON = "even", "Poisson"
"""How rows come: the equations are about evenly spaced rows; the paper measured with Poisson streams."""


def _join_panels(x: str, cost: Callable[[float], JoinCost], names: Sequence[str], log: str) -> list[Chart]:
    """The response times, and below them the improvements: of Poisson streams as in the paper, and of even rows."""
    equations: dict[str, Callable[[float], float]] = {
        "equation 3": lambda place: cost(place).sync_filter,
        "equation 5": lambda place: cost(place).filter_order,
    }
    seven: dict[str, Callable[[float], float]] = {"equation 7": lambda place: cost(place).improvement}
    absolute, relative = names
    return [
        Chart(x, _SECONDS, "response", log=log, under=f"{POISSON}, ", title=f"{absolute}, Poisson streams"),
        Chart(x, _SECONDS, "response", equations, log=log, under=f"{EVEN}, ", title=f"{absolute}, even rows"),
        Chart(x, _BETTER, partial(_improvements, curves=POISSON), log="x", title=f"{relative}, Poisson streams"),
        Chart(x, _BETTER, partial(_improvements, curves=EVEN), seven, log="x", title=f"{relative}, even rows"),
    ]


def _adaptive_claim(found: Results, cost: Callable[[float], JoinCost]) -> Claim:
    """The adaptive join takes as long as the method that it should have chosen."""
    chosen = {"filter_order": FILTER, "sync_filter": SYNC}
    ratios = [
        seconds / found[f"{EVEN}, {chosen[cost(place).adaptive(ALPHA)]}", place]["response"]
        for place, seconds in found.along(f"{EVEN}, {ADAPTIVE}", "response").items()
    ]
    says = f"even: Adaptive is Filter-Order from c|w|λ1λ2 >= {ALPHA} on, else Sync-Filter; the furthest ratio"
    return about(says, furthest(ratios), 1.0, 0.01)


SLOW, FAST = 1.0, 10.0
"""Rows per second."""
PAIRS = {POISSON: (1e-4, 5e-4, 8e-4), EVEN: (1e-6, 1e-4, 3e-4, 5e-4, 8e-4)}
"""Seconds that a pair of rows takes."""
SECONDS = {POISSON: 1200.0, EVEN: 120.0}
"""Evenly spaced rows meet the same every second; Poisson streams take twenty minutes, as in the paper."""
SWITCHING = 5e-4
"""The cost at which c|w|λ1λ2 is 0.3, the paper's alpha."""


def cost_of_pair(pair: float) -> JoinCost:
    """What the equations say of the cost of a pair."""
    return JoinCost(pair, WINDOW, SLOW, FAST)


@figure(
    cases=lambda: {
        (f"{arrivals}, {method}", pair): JoinCase(
            method, pair, SLOW, FAST, SECONDS[arrivals], seed=1 if arrivals == POISSON else None
        )
        for arrivals, pairs in PAIRS.items()
        for pair in pairs
        for method in METHODS
    },
    columns={"pair_seconds": PLACE, "results": "results", "mean_response_seconds": "response"},
    panels=_join_panels("seconds that a pair takes", cost_of_pair, ("Fig. 7", "Fig. 8"), log="x"),
)
def wjoin_cost(found: Results) -> list[Claim]:
    """003 Figs. 7, 8: response time of in-order joins by what a pair costs."""
    sync, ordered = (found.along(f"{EVEN}, {method}", "response") for method in (SYNC, FILTER))
    by_three = furthest(seconds / cost_of_pair(pair).sync_filter for pair, seconds in sync.items())
    by_five = furthest(seconds / cost_of_pair(pair).filter_order for pair, seconds in ordered.items())
    spread = max(ordered.values()) / min(ordered.values())
    better = improvement(found, POISSON)
    adaptive = improvement(found, POISSON, ADAPTIVE)[SWITCHING]
    return [
        about("even: Sync-Filter takes what equation 3 says; the furthest ratio", by_three, 1.0, 0.1),
        about("even: Filter-Order takes what equation 5 says; the furthest ratio", by_five, 1.0, 0.1),
        about("even: Sync-Filter where a pair takes 0.5 ms", sync[SWITCHING], 0.72, 0.02, "s"),
        Claim("even: Filter-Order is flat; its most over its least", spread, 1, 1.01),
        _adaptive_claim(found, cost_of_pair),
        about("Poisson: Filter-Order is better by 28 % at 0.5 ms", better[SWITCHING], 0.28, 0.15, "%"),
        Claim("Poisson: by 45 % at 0.5 ms", better[SWITCHING], 0.4, 0.5, "%", reproduces=False),
        Claim("Poisson: by more than 50 % at 0.8 ms", better[8e-4], low=0.5, unit="%", reproduces=False),
        Claim("Poisson: Adaptive is no worse than Sync-Filter at 0.5 ms; better by", adaptive, low=0, unit="%"),
    ]


RATES = {POISSON: (0.01, 0.1, 1.0), EVEN: (1 / 30, 0.1, 0.3, 1.0)}
"""Slow rows per second. Evenly spaced ones come a whole number of times in a window, so that every fast row is compared
with as many, as the equations have it."""
SPARSEST = min(RATES[POISSON])


def cost_at_rate(rate: float) -> JoinCost:
    """What the equations say of a rate of the slow stream."""
    return JoinCost(SWITCHING, WINDOW, rate, FAST)


def _rate_case(arrivals: str, method: str, rate: float) -> JoinCase:
    """Long enough for some slow rows after the first window; for at least 30 rows of a Poisson stream."""
    if arrivals == POISSON:
        return JoinCase(method, SWITCHING, rate, FAST, max(600.0, 30 / rate), seed=2)
    return JoinCase(method, SWITCHING, rate, FAST, WINDOW + max(120.0, 8 / rate))


@figure(
    cases=lambda: {
        (f"{arrivals}, {method}", rate): _rate_case(arrivals, method, rate)
        for arrivals, rates in RATES.items()
        for rate in rates
        for method in METHODS
        if method != ADAPTIVE or rate > SPARSEST
    },
    columns={"slow_rows_per_second": PLACE, "results": "results", "mean_response_seconds": "response"},
    panels=_join_panels("slow rows per second", cost_at_rate, ("Fig. 9", "Fig. 10"), log="xy"),
)
def wjoin_rate(found: Results) -> list[Claim]:
    """003 Figs. 9, 10: response time of in-order joins by the rate of the slow stream.

    At the sparsest rate Adaptive does what Sync-Filter does, and is left out.
    """
    sparse = min(found[f"{POISSON}, {method}", SPARSEST]["response"] for method in (SYNC, FILTER))
    even, random = (improvement(found, arrivals) for arrivals in (EVEN, POISSON))
    by_seven = max(abs(share / cost_at_rate(rate).improvement - 1) for rate, share in even.items())
    step = min(growth(random.values()))
    says = "Poisson: at 0.01 slow rows per second it is 0.3 %, within 30 %"
    return [
        Claim("even: the improvement is what equation 7 says; off by at most", by_seven, high=0.1, unit="%"),
        about("even: at one slow row per second it is 23 %", even[1.0], 0.23, 0.05, "%"),
        Claim("Poisson: it grows with the rate; the least step between two rates", step, low=1),
        Claim(says, random[SPARSEST], 0.0021, 0.0039, "%", reproduces=False),
        _adaptive_claim(found, cost_at_rate),
        Claim("Poisson: above a minute at 0.01 slow rows per second, by either method", sparse, low=60, unit="s"),
    ]
