"""The claims of each figure: they hold for outcomes as the papers have them, and fail for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from millrace.experiments.figures import (
    FIGURES,
    ets_idle,
    oop_sliding,
    oop_smoothing,
    slide_burstiness,
    strategy_burst,
    wjoin_analytic,
    wjoin_cost,
    wjoin_rate,
)
from millrace.experiments.figures.experiment import Findings, Key, Outcome
from millrace.plan.joins.join_cost import JoinCost
from tests.unit.experiments.figures.outcomes import outcome
from tests.unit.experiments.figures.queue_laws import BROKEN_QUEUES, OVERLOAD_LAWS, QUEUE_LAWS
from tests.unit.experiments.figures.window_laws import BROKEN_WINDOWS, WINDOW_LAWS

Law = Callable[[str, float], Outcome]
"""What a setting gives, by its curve and place."""


def findings(name: str, law: Law) -> Findings:
    found: dict[Key, Outcome] = {key: law(key[0], key[1] or 0.0) for key in FIGURES[name].settings()}
    return FIGURES[name].findings(found)


def failing(name: str, law: Law) -> list[str]:
    return [claim.says for claim in findings(name, law).claims if not claim.as_expected]


def ets_latency(curve: str, rate: float) -> Outcome:
    seconds = {"A": 20.0, "B": 1 / (2 * rate) + 0.0001 if rate else 0, "C": 0.00011, "D": 0.0001}
    return outcome(latency=seconds[curve[0]])


def idle(curve: str, rate: float) -> Outcome:
    return outcome(idle={"A": 0.998, "C": 0.0005}.get(curve[0]) or ets_idle.waiting(rate))


def memory(curve: str, rate: float) -> Outcome:
    if curve[0] in "AC":
        return outcome(peak=5000 if curve[0] == "A" else 3)
    rising = 0 if curve.endswith("merged") else ceil(rate / 200)
    return outcome(peak=ceil(500 / rate) + 3 + rising)


def bursts(curve: str, size: float) -> Outcome:
    kind, strategy = curve.split(", ")
    seconds = {"no ETS": 2.0, "on demand": 2 * size * 1e-4}
    return outcome(latency=seconds.get(kind) or strategy_burst.FORMULAS[strategy](size))


def arcs(curve: str, selections: float) -> Outcome:
    return outcome(latency=1.0 if curve == "no ETS" else 0.001 + 0.0001 * selections * (curve != "by ETS arcs"))


def slides(curve: str, slide: float) -> Outcome:
    """Ten rows a bin, or all rows of a slide in one."""
    bins = 12_000_000 // slide_burstiness.BIN
    width = round(slide * 1e6) // slide_burstiness.BIN if curve == "no ETS" else 1
    full = np.arange(0, bins, width)
    return outcome(moments=full * slide_burstiness.BIN, counts=10 * width + 8 * (-1) ** full * (width == 1))


def skews(curve: str, seconds: float) -> Outcome:
    return outcome(memory=round(10e6 + (3e6 if curve == "in order" else 0.3e6) * seconds + 5e6 * (curve == "in order")))


def delays(curve: str, seconds: float) -> Outcome:
    refused = 3000 if curve.startswith("slack") and seconds > oop_sliding.SLACK else 0
    return outcome(memory=round(2e6 + 1e5 * seconds * (curve == "in order")), turned_away=refused)


def late_windows(curve: str, seconds: float) -> Outcome:
    return outcome(memory=round((10e6 + 2e6 * seconds) * (1.0 if curve == "in order" else 1 + seconds / 400)))


def bands(curve: str, seconds: float) -> Outcome:
    extra = curve == "in order"
    taken = round(1e6 * seconds + 1e5 * seconds**2 * extra)
    return outcome(memory=taken, latency=0.001 * (1 + extra), seconds=seconds * (1 + extra))


def late_rows(curve: str, seconds: float) -> Outcome:
    return outcome(memory=round((1e6 + 2e5 * seconds) * (1 if curve == "in order" else 0.5)))


def waits(curve: str, band: float) -> Outcome:
    share = {"individual": 1.0, "individual, folded, one late": 0.375}
    return outcome(latency=band * share.get(curve, 0.0), answers=str(band))


def smoothing(curve: str, groups: float) -> Outcome:
    """Every policy stands 800,000 a second, but for bursts in order."""
    size = {"1/2": 0.5, "1": 1.0, "2": 2.0}[curve.split("table ")[1]]
    burst = oop_smoothing.burst_rate(int(groups), size) if curve.startswith("in order") else 8e5
    return outcome(rate=min(8e5, burst))


def equations(curve: str, work: float) -> Outcome:
    """What the equations say at a point of either figure."""
    figure = wjoin_analytic.FIG_5 if curve.startswith("Fig. 5") else wjoin_analytic.FIG_6
    (cost,) = (each for each in wjoin_analytic.COSTS[figure] if each.work == work)
    return outcome(latency=cost.sync_filter if curve.endswith("Sync-Filter") else cost.filter_order)


def window_join(curve: str, cost: JoinCost) -> Outcome:
    """What the equations say."""
    arrivals, method = curve.split(", ")
    if method == "Adaptive":
        method = "Sync-Filter" if cost.adaptive(0.29) == "sync_filter" else "Filter-Order"
    if arrivals == "even":
        return outcome(latency=cost.sync_filter if method == "Sync-Filter" else cost.filter_order)
    return outcome(latency=cost.sync_filter_poisson if method == "Sync-Filter" else cost.filter_order_poisson)


def pair_costs(curve: str, pair: float) -> Outcome:
    return window_join(curve, wjoin_cost.cost(pair))


def slow_rates(curve: str, rate: float) -> Outcome:
    """What the equations say, but for the rows that have a partner where few have."""
    if (curve, rate) == ("Poisson, Sync-Filter", wjoin_rate.SPARSEST):
        return outcome(latency=100.17)
    return window_join(curve, wjoin_rate.cost(rate))


LAWS: dict[str, Law] = {
    "ets-latency": ets_latency,
    "ets-idle": idle,
    "ets-memory": memory,
    "strategy-burst": bursts,
    "eqg-overhead": arcs,
    "slide-burstiness": slides,
    **QUEUE_LAWS,
    **WINDOW_LAWS,
    **OVERLOAD_LAWS,
    "wjoin-analytic": equations,
    "wjoin-cost": pair_costs,
    "wjoin-rate": slow_rates,
    "oop-skew": skews,
    "oop-smoothing": smoothing,
    "oop-tumbling-join": late_windows,
    "oop-band": bands,
    "oop-late-join": late_rows,
    "oop-sliding": delays,
    "joint-punctuation": waits,
}


def test_every_figure_is_there_in_the_order_of_the_papers() -> None:
    assert list(FIGURES) == list(LAWS)


@pytest.mark.parametrize("name", LAWS)
def test_the_claims_hold_for_what_the_paper_found(name: str) -> None:
    assert failing(name, LAWS[name]) == []


@pytest.mark.parametrize("name", LAWS)
def test_a_figure_has_a_row_for_every_setting_and_a_picture(name: str) -> None:
    found = findings(name, LAWS[name])
    assert len(found.table) == len(FIGURES[name].settings())
    assert found.picture.svg().startswith("<svg")


@pytest.mark.parametrize(
    ("name", "law", "broken"),
    [
        (
            "ets-latency",
            lambda curve, rate: ets_latency("C" if curve[0] == "B" else curve, rate),
            ["B waits 1/(2 rate)", "B never"],
        ),
        (
            "ets-latency",
            lambda curve, rate: ets_latency(curve if curve[0] == "D" else "A", rate),
            ["B waits", "B never", "C is", "that"],
        ),
        ("ets-idle", lambda curve, rate: idle("A", rate), ["B waits", "B at 150", "C hardly ever"]),
        (
            "ets-memory",
            lambda curve, rate: memory("B, periodic", rate or 1),
            ["A holds", "C holds", "C is two", "B, merged"],
        ),
        ("ets-memory", lambda curve, rate: memory(curve.replace("periodic", "merged"), rate), ["B, queued, rises"]),
        ("strategy-burst", lambda curve, size: bursts(curve.replace("bfs", "dfs"), size), ["latent: breadth-first"]),
        ("strategy-burst", lambda curve, size: outcome(latency=2.0), ["latent: depth", "latent: breadth", "on demand"]),
        ("eqg-overhead", lambda curve, number: replace(arcs(curve, number), answers=curve), ["the answers"]),
        ("eqg-overhead", lambda curve, number: outcome(latency=1.0), ["both resolve", "two selections"]),
        ("slide-burstiness", lambda curve, slide: slides("no ETS", slide), ["with ETS about 2; the greatest"]),
        ("slide-burstiness", lambda curve, slide: slides("on demand", slide), ["without ETS"]),
        (
            "wjoin-analytic",
            lambda curve, work: equations(curve.replace("Filter-Order", "Sync-Filter"), work),
            ["Fig. 5: Filter-Order", "Fig. 5: the improvement", "Fig. 5: it comes", "Fig. 6: Filter-Order"],
        ),
        (
            "wjoin-cost",
            lambda curve, pair: pair_costs(curve.replace("Filter-Order", "Sync-Filter"), pair),
            ["even: Filter-Order takes", "even: Filter-Order is flat", "even: Adaptive", "Poisson: Filter-Order"],
        ),
        (
            "wjoin-cost",
            lambda curve, pair: pair_costs(curve.replace("Adaptive", "Sync-Filter"), pair),
            ["even: Adaptive"],
        ),
        (
            "wjoin-rate",
            lambda curve, rate: slow_rates(curve.replace("Adaptive", "Filter-Order"), rate),
            ["even: Adaptive"],
        ),
        (
            "wjoin-rate",
            lambda curve, rate: outcome(latency=slow_rates(curve, rate).latency / 2),
            ["Poisson: above a minute"],
        ),
        ("oop-skew", lambda curve, skew: skews("in order", skew), ["order-agnostic starts", "order-agnostic needs"]),
        (
            "oop-skew",
            lambda curve, skew: skews("order-agnostic", 1),
            ["in order grows", "order-agnostic starts", "order"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(rate=8e5),
            ["260k groups, in order", "520k groups, 1 slot", "520k groups, 2 slots", "520k groups, in order"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(rate=smoothing(curve, groups).rate * (1 + ("lazy" in curve))),
            ["66k groups"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(
                rate=smoothing(curve, groups).rate * (1 + (not curve.startswith("in order")))
            ),
            ["66k groups", "260k groups, 1 slot", "260k groups, 2 slots"],
        ),
        (
            "oop-tumbling-join",
            lambda curve, skew: outcome(memory=30 if curve == "in order" else 40),
            ["below 20 s", "nor does it", "both grow"],
        ),
        (
            "oop-tumbling-join",
            lambda curve, skew: replace(late_windows(curve, skew), results=len(curve)),
            ["every run"],
        ),
        (
            "oop-band",
            lambda curve, band: bands("in order" if curve == "order-agnostic" else "order-agnostic", band),
            ["the memory", "the gap", "order-agnostic counts", "order-agnostic is less"],
        ),
        (
            "oop-band",
            lambda curve, band: replace(bands(curve, band), memory=2000 if curve == "in order" else 1000),
            ["the gap"],
        ),
        ("oop-late-join", lambda curve, delay: late_rows("in order", delay), ["order-agnostic grows"]),
        (
            "oop-late-join",
            lambda curve, delay: replace(late_rows(curve, delay / 100), results=len(curve)),
            ["every run", "in order grows"],
        ),
        ("oop-sliding", lambda curve, delay: delays("slack", 300), ["in order", "order-agnostic at", "a slack"]),
        (
            "oop-sliding",
            lambda curve, delay: delays("in order", delay),
            ["order-agnostic is flat", "order-agnostic at", "one that is too short"],
        ),
        (
            "joint-punctuation",
            lambda curve, band: waits("individual", band),
            ["joint: a", "joint: groups", "folded", "joint: even", "folded, if"],
        ),
        (
            "joint-punctuation",
            lambda curve, band: waits("joint", band),
            ["joint: groups leave earlier", "folded, if one is late"],
        ),
        ("joint-punctuation", lambda curve, band: replace(waits(curve, band), answers=curve), ["all forms"]),
        *BROKEN_QUEUES,
        *BROKEN_WINDOWS,
    ],
)
def test_a_claim_fails_for_what_the_paper_did_not_find(name: str, law: Law, broken: list[str]) -> None:
    found = failing(name, law)
    assert [says[: len(start)] for says, start in zip(found, broken, strict=True)] == broken
