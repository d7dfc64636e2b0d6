"""Response times of joins in order by the equations of 003."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Chart, Measured, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.ordered_joins import FASTER, FILTER, RESPONSE, SYNC, improvement, improvements
from millrace.plan.joins.join_cost import JoinCost


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


_WORK = "c |w| λ1 λ2, windows of a day"
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
        Chart(_WORK, RESPONSE, "response", log="x", under=f"{FIG_5}, ", title="Fig. 5(a): c varies"),
        Chart(_WORK, FASTER, partial(improvements, curves=FIG_5), log="x", title="Fig. 5(b)"),
        Chart(_WORK, RESPONSE, "response", under=f"{FIG_6}, ", title="Fig. 6(a): λ1 varies"),
        Chart(_WORK, FASTER, partial(improvements, curves=FIG_6), log="x", title="Fig. 6(b)"),
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
