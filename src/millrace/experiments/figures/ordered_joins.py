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
_NOBODY = -1_000_000
"""No slow row's number."""


@dataclass(frozen=True)
class JoinArrivals:
    """When rows of both streams arrive, in microseconds; that is their timestamp too."""

    slow: Times
    fast: Times

    def feeds(self, every: int = 1) -> dict[str, list[pa.Table]]:
        """The rows: a slow one has a number, and `every` so many fast ones that of a partner."""
        partners = np.searchsorted(self.slow, self.fast, side="right") - 1
        partners[np.arange(len(partners)) % every != 0] = _NOBODY
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


def network(method: str, window: float = WINDOW, alpha: float = ALPHA, partners: int = 1) -> str:
    """The query, joined by a method; a fast row is joined with so many slow ones up to its partner."""
    length = f"{round(window * _SECOND)} MICROSECONDS"
    options = f"join = '{METHODS[method]}'" + (f", alpha = {alpha}" if method == ADAPTIVE else "")
    return f"""CREATE STREAM slow (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE STREAM fast (partner BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE QUERY joined WITH ({options}) AS
  SELECT f.ts FROM slow [RANGE {length}] AS s, fast [RANGE {length}] AS f
  WHERE s.id - f.partner BETWEEN {1 - partners} AND 0 ORDER BY greatest(s.ts, f.ts);"""


def responses(run: VirtualRun) -> tuple[Times, Times]:
    """The fast rows that have found their partner, by their arrival, and how long each took (microseconds)."""
    arrived = [each.rows.column("ts").cast(pa.int64()).to_numpy() for each in run.deliveries]
    taken = [each.now - times for each, times in zip(run.deliveries, arrived, strict=True)]
    empty = [np.empty(0, np.int64)]
    return np.concatenate([*empty, *arrived]), np.concatenate([*empty, *taken])


@dataclass(frozen=True)
class JoinCase:
    """The join of two streams for so many seconds: a pair takes `pair` seconds; with a seed, rows come at random.

    `matches` is how many results a fast row has; if it is less than 1, only some of them have one.
    """

    method: str
    pair: float
    slow: float
    fast: float
    seconds: float
    seed: int | None = None
    matches: float = 1.0

    def arrivals(self) -> JoinArrivals:
        """What arrives when."""
        if self.seed is None:
            return even(self.slow, self.fast, self.seconds)
        return poisson(self.slow, self.fast, self.seconds, self.seed)

    def measure(self) -> Measured:
        """The mean response time of a fast row that comes when windows are full and before the last slow row does."""
        arrivals, costs = self.arrivals(), Costs(pair=self.pair * _SECOND)
        text = network(self.method, partners=max(1, round(self.matches)))
        feeds = arrivals.feeds(every=max(1, round(1 / self.matches)))
        run = VirtualRun(parse_network(text), feeds=feeds, cost=costs, rows_per_step=1)
        run.run()
        arrived, taken = responses(run)
        counted = taken[(arrived >= WINDOW * _SECOND) & (arrived < arrivals.slow[-1])]
        peak = run.metrics().peak_queued
        return {"results": len(counted), "response": float(counted.mean()) / _SECOND, "peak": peak}


def improvement(found: Results, curves: str, method: str = FILTER) -> dict[float, float]:
    """By how much a method is faster than Sync-Filter, as a share of the latter, along curves of a common name."""
    ratios = found.ratios(f"{curves}, {method}", f"{curves}, {SYNC}", "response")
    return {place: 1 - ratio for place, ratio in ratios.items()}


def improvements(found: Results, curves: str) -> list[Curve]:
    """By how much each other method is faster than Sync-Filter."""
    methods = [method for method in (ADAPTIVE, FILTER) if found.along(f"{curves}, {method}", "response")]
    return [Curve(method, list(improvement(found, curves, method).items())) for method in methods]


RESPONSE, FASTER = "mean response time, seconds", "faster than Sync-Filter by"
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
        Chart(x, RESPONSE, "response", log=log, under=f"{POISSON}, ", title=f"{absolute}, Poisson streams"),
        Chart(x, RESPONSE, "response", equations, log=log, under=f"{EVEN}, ", title=f"{absolute}, even rows"),
        Chart(x, FASTER, partial(improvements, curves=POISSON), log="x", title=f"{relative}, Poisson streams"),
        Chart(x, FASTER, partial(improvements, curves=EVEN), seven, log="x", title=f"{relative}, even rows"),
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
    """For 300 slow rows of a Poisson stream, and at least ten minutes; evenly spaced ones meet the same every time."""
    if arrivals == POISSON:
        return JoinCase(method, SWITCHING, rate, FAST, max(600.0, 300 / rate), seed=2)
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


MATCHES = (0.1, 1.0, 10.0, 60.0)
"""Results of a fast row; in its window are 60 slow ones."""


def _memory_panel(arrivals: str, title: str) -> Chart:
    windows: dict[str, Callable[[float], float]] = {"rows of both windows": lambda _: WINDOW * (SLOW + FAST)}
    return Chart(
        "results per fast row", "most rows at a time", "peak", windows, log="x", under=f"{arrivals}, ", title=title
    )


@figure(
    cases=lambda: {
        (f"{arrivals}, {method}", matches): JoinCase(method, SWITCHING, SLOW, FAST, 240.0, seed, matches)
        for matches in reversed(MATCHES)
        for arrivals, seed in ((POISSON, 3), (EVEN, None))
        for method in (SYNC, FILTER)
    },
    columns={"results_per_row": PLACE, "results": "results", "most_rows": "peak"},
    panels=[_memory_panel(POISSON, "Poisson streams"), _memory_panel(EVEN, "even rows")],
)
def wjoin_memory(found: Results) -> list[Claim]:
    """003 section 5.2: memory of in-order joins by how many results a row has.

    All rows are counted: those of the windows, those that wait for a bound or for the processor, and results held.
    """
    ratios = {each: found.ratios(f"{each}, {FILTER}", f"{each}, {SYNC}", "peak") for each in (POISSON, EVEN)}
    least, most = MATCHES[0], MATCHES[-1]
    selective, held = max(each[least] for each in ratios.values()), min(each[most] for each in ratios.values())
    extra = found[f"{EVEN}, {FILTER}", most]["peak"] - WINDOW * (SLOW + FAST)
    return [
        Claim("a result for every tenth row: Filter-Order holds no more; the greater ratio", selective, high=1.01),
        Claim("there it holds less; the greater ratio", selective, high=0.99, reproduces=False),
        Claim("60 results per row: it holds more; the lesser ratio", held, low=1.5),
        about("even: beside the windows it then holds the results of a second", extra, FAST * most, 0.1),
    ]
