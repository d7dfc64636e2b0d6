"""The response time of in-order window joins by the equations of 003 (its Figs. 5 and 6).

Both figures are drawn over c|w|λ1λ2, by which the methods differ: Fig. 5 varies what a pair costs, Fig. 6 the rate of
the slow stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import along, chart, curves, latency
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.window_joins import FILTER, SYNC, FormulaCase
from millrace.plan.joins.join_cost import JoinCost

DAY = 86_400.0
FIG_5, FIG_6 = "Fig. 5, c varies", "Fig. 6, λ1 varies"
_LIMIT = 1 / (DAY * 1 * 10)
"""The cost of a pair at which equation 1 ends to hold for 1 and 10 rows a second."""
PAIRS = (*(1e-8 * 2**doubled for doubled in range(7)), _LIMIT)
SLOW = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)

COSTS = {
    FIG_5: tuple(JoinCost(pair, DAY, 1, 10) for pair in PAIRS),
    FIG_6: tuple(JoinCost(1e-4, DAY, slow, 1) for slow in SLOW),
}


def settings() -> dict[Key, FormulaCase]:
    """Both methods at each point of both figures."""
    return {
        (_name(figure, method), cost.work): FormulaCase(method, cost)
        for figure, costs in COSTS.items()
        for method in (SYNC, FILTER)
        for cost in costs
    }


def _name(figure: str, method: str) -> str:
    return f"{figure}, {method}"


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The response times, a row for each point and method."""
    picture = chart(
        "Mean response time of in-order window joins by the equations of 003, windows of a day",
        "c |w| λ1 λ2",
        "mean response time, seconds",
        curves(found, latency),
    )
    return Findings(_table(found), _claims(found), picture)


def _table(found: Mapping[Key, Outcome]) -> list[dict[str, object]]:
    return [
        {
            "curve": _name(figure, method),
            "pair_seconds": cost.pair,
            "slow_rows_per_second": cost.slow,
            "fast_rows_per_second": cost.fast,
            "work": cost.work,
            "mean_response_seconds": found[_name(figure, method), cost.work].latency,
        }
        for figure, costs in COSTS.items()
        for method in (SYNC, FILTER)
        for cost in costs
    ]


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    flat = [seconds / 0.55 for seconds in along(found, _name(FIG_5, FILTER), latency).values()]
    improved = improvements(found, FIG_5)
    by_seven = [abs(improved[cost.work] - cost.improvement) for cost in COSTS[FIG_5]]
    last = COSTS[FIG_6][-1].work
    return [
        about("Fig. 5: Filter-Order takes 0.55 s whatever a pair costs; the furthest ratio", furthest(flat), 1.0, 0.01),
        Claim(
            "Fig. 5: the improvement is as equation 7 says; the greatest difference",
            round(max(by_seven), 9),
            high=1e-6,
            unit="%",
        ),
        about(
            "Fig. 5: it comes to 50 % where equation 1 ends to hold", improved[COSTS[FIG_5][-1].work], 0.5, 0.001, "%"
        ),
        about(
            "Fig. 6: Sync-Filter at 0.1 slow rows a second", found[_name(FIG_6, SYNC), last].latency, 10.3, 0.01, "s"
        ),
        about("Fig. 6: Filter-Order there", found[_name(FIG_6, FILTER), last].latency, 5.5, 0.01, "s"),
    ]


def improvements(found: Mapping[Key, Outcome], figure: str) -> dict[float, float]:
    """By how much Filter-Order is faster than Sync-Filter, as a share of the latter, along a figure."""
    sync, ordered = (along(found, _name(figure, method), latency) for method in (SYNC, FILTER))
    return {work: 1 - ordered[work] / seconds for work, seconds in sync.items()}


FIGURE = Figure(
    "wjoin-analytic", "003 Figs. 5, 6", "response time of in-order joins by the equations", settings, findings
)
