"""The claims of each figure: they hold for outcomes as the papers have them, and fail for others."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from math import ceil
from pathlib import Path

import pytest
from matplotlib.figure import Figure as Drawing

from millrace.experiments.drawing import Palette
from millrace.experiments.figures import FIGURES
from millrace.experiments.figures.command import table_text
from millrace.experiments.figures.curves import Measured, Results
from millrace.experiments.figures.enabling_timestamps import waiting
from millrace.experiments.figures.flush_smoothing import burst_rate
from millrace.experiments.figures.join_equations import COSTS, FIG_5, FIG_6
from millrace.experiments.figures.ordered_joins import SPARSEST, cost_at_rate, cost_of_pair
from millrace.experiments.figures.out_of_order import SLACK
from millrace.experiments.figures.query_graph import BIN, FORMULAS
from millrace.plan.joins.join_cost import JoinCost
from tests.unit.experiments.figures.queue_laws import BROKEN_QUEUES, OVERLOAD_LAWS, QUEUE_LAWS
from tests.unit.experiments.figures.window_laws import BROKEN_WINDOWS, WINDOW_LAWS

TABLES = Path(__file__).parents[4] / "docs" / "figures"
Law = Callable[[str, float], Measured]
"""What a setting gives, by its curve and place."""


def outcome(**measured: float) -> Measured:
    """What a case measured, of which only some values matter."""
    others = ("latency", "megabytes", "turned_away", "processor_seconds", "answers", "pair", "slow", "fast")
    return {"results": 100, **dict.fromkeys(others, 0.0), **measured}


def found_by(name: str, law: Law) -> Results:
    return Results({(curve, place): law(curve, place or 0.0) for curve, place in FIGURES[name].cases()})


def failing(name: str, law: Law) -> list[str]:
    return [claim.says for claim in FIGURES[name].claims(found_by(name, law)) if not claim.as_expected]


def ets_latency(curve: str, rate: float) -> Measured:
    seconds = {"A": 20.0, "B": 1 / (2 * rate) + 0.0001 if rate else 0, "C": 0.00011, "D": 0.0001}
    return outcome(latency=seconds[curve[0]])


def idle(curve: str, rate: float) -> Measured:
    return outcome(idle={"A": 0.998, "C": 0.0005}.get(curve[0]) or waiting(rate))


def memory(curve: str, rate: float) -> Measured:
    if curve[0] in "AC":
        return outcome(peak=5000 if curve[0] == "A" else 3)
    rising = 0 if curve.endswith("merged") else ceil(rate / 200)
    return outcome(peak=ceil(500 / rate) + 3 + rising)


def bursts(curve: str, size: float) -> Measured:
    kind, strategy = curve.split(", ")
    seconds = {"no ETS": 2.0, "on demand": 2 * size * 1e-4}
    return outcome(latency=seconds.get(kind) or FORMULAS[strategy](size))


def arcs(curve: str, selections: float) -> Measured:
    return outcome(latency=1.0 if curve == "no ETS" else 0.001 + 0.0002 * selections * (curve != "by ETS arcs"))


def slides(curve: str, slide: float) -> Measured:
    return outcome(burstiness=slide * 1e6 / BIN if curve == "no ETS" else 1.6)


def skews(curve: str, seconds: float) -> Measured:
    return outcome(megabytes=10 + (3 if curve == "in order" else 0.3) * seconds + 5 * (curve == "in order"))


def delays(curve: str, seconds: float) -> Measured:
    refused = 3000 if curve.startswith("slack") and seconds > SLACK else 0
    return outcome(megabytes=2 + 0.1 * seconds * (curve == "in order"), turned_away=refused)


def late_windows(curve: str, seconds: float) -> Measured:
    return outcome(megabytes=(10 + 2 * seconds) * (1.0 if curve == "in order" else 1 - seconds / 400))


def bands(curve: str, seconds: float) -> Measured:
    extra = curve == "in order"
    taken = seconds + 0.1 * seconds**2 * extra
    return outcome(megabytes=taken, latency=0.001 * (1 + extra), processor_seconds=seconds * (1 + extra))


def late_rows(curve: str, seconds: float) -> Measured:
    return outcome(megabytes=(1 + 0.2 * seconds) * (1 if curve == "in order" else 0.5))


def waits(curve: str, band: float) -> Measured:
    share = {"individual": 1.0, "individual, folded, one late": 0.375}
    return outcome(wait=band * share.get(curve, 0.0), answers=band)


def smoothing(curve: str, groups: float) -> Measured:
    """Every policy stands 800,000 a second, but for bursts in order."""
    size = {"1/2": 0.5, "1": 1.0, "2": 2.0}[curve.split("table ")[1]]
    burst = burst_rate(groups, size) if curve.startswith("in order") else 8e5
    return outcome(rate=min(8e5, burst))


def equations(curve: str, work: float) -> Measured:
    """What the equations say at a point of either figure."""
    name = FIG_5 if curve.startswith("Fig. 5") else FIG_6
    (cost,) = (each for each in COSTS[name] if each.work == work)
    return outcome(response=cost.sync_filter if curve.endswith("Sync-Filter") else cost.filter_order)


def window_join(curve: str, cost: JoinCost) -> Measured:
    """What the equations say."""
    arrivals, method = curve.split(", ")
    if method == "Adaptive":
        method = "Sync-Filter" if cost.adaptive(0.29) == "sync_filter" else "Filter-Order"
    if arrivals == "even":
        return outcome(response=cost.sync_filter if method == "Sync-Filter" else cost.filter_order)
    return outcome(response=cost.sync_filter_poisson if method == "Sync-Filter" else cost.filter_order_poisson)


def pair_costs(curve: str, pair: float) -> Measured:
    return window_join(curve, cost_of_pair(pair))


def slow_rates(curve: str, rate: float) -> Measured:
    """What the equations say, but for the rows that have a partner where few have."""
    if (curve, rate) == ("Poisson, Sync-Filter", SPARSEST):
        return outcome(response=100.17)
    return window_join(curve, cost_at_rate(rate))


def held_rows(curve: str, matches: float) -> Measured:
    return outcome(peak=672 + 10 * matches * curve.endswith("Filter-Order"))


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
    "wjoin-memory": held_rows,
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
def test_a_figure_is_drawn_from_a_table_with_a_row_for_every_setting(name: str) -> None:
    figure, found = FIGURES[name], found_by(name, LAWS[name])
    again = figure.read(csv.DictReader(io.StringIO(table_text(figure.table(found)))))
    assert len(again) == len(figure.cases())
    for panel in figure.panels:
        axes, palette = Drawing().add_subplot(), Palette()
        panel.draw(again, axes, palette)
        handles, names = axes.get_legend_handles_labels()
        assert handles and len(set(names)) == len(names)


@pytest.mark.parametrize("name", LAWS)
def test_the_committed_table_of_a_figure_is_one_that_it_reads(name: str) -> None:
    figure = FIGURES[name]
    rows = list(csv.DictReader(io.StringIO((TABLES / f"{name}.csv").read_text())))
    assert list(rows[0]) == [*figure.curve, *figure.columns]
    assert {curve for curve, _ in figure.read(rows)} == {curve for curve, _ in figure.cases()}


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
        ("eqg-overhead", lambda curve, number: {**arcs(curve, number), "answers": len(curve)}, ["the answers"]),
        ("eqg-overhead", lambda curve, number: outcome(latency=1.0), ["both resolve", "two selections: steps"]),
        ("eqg-overhead", lambda curve, number: arcs(curve, number * 0.35), ["two selections: by 14 %"]),
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
            lambda curve, rate: outcome(response=slow_rates(curve, rate)["response"] / 2),
            ["Poisson: above a minute"],
        ),
        ("wjoin-memory", lambda curve, matches: held_rows("Sync-Filter", matches), ["60 results", "even: beside"]),
        ("wjoin-memory", lambda curve, matches: held_rows(curve, max(matches, 1.0)), ["a result for every tenth"]),
        ("wjoin-memory", lambda curve, matches: held_rows(curve, matches - 1), ["there it holds less"]),
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
            lambda curve, groups: outcome(rate=smoothing(curve, groups)["rate"] * (1 + ("lazy" in curve))),
            ["66k groups"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(
                rate=smoothing(curve, groups)["rate"] * (1 + (not curve.startswith("in order")))
            ),
            ["66k groups", "260k groups, 1 slot", "260k groups, 2 slots"],
        ),
        (
            "oop-tumbling-join",
            lambda curve, skew: outcome(megabytes=30 if curve == "in order" else 40),
            ["below 20 s", "nor does it", "both grow"],
        ),
        (
            "oop-tumbling-join",
            lambda curve, skew: outcome(megabytes=(10 + skew) * (1.0 if curve == "in order" else 1 + skew / 200)),
            ["there it needs"],
        ),
        (
            "oop-tumbling-join",
            lambda curve, skew: {**late_windows(curve, skew), "results": len(curve)},
            ["every run"],
        ),
        (
            "oop-band",
            lambda curve, band: bands("in order" if curve == "order-agnostic" else "order-agnostic", band),
            ["the memory", "the gap", "order-agnostic counts", "order-agnostic is less"],
        ),
        (
            "oop-band",
            lambda curve, band: {**bands(curve, band), "megabytes": 2000 if curve == "in order" else 1000},
            ["the gap"],
        ),
        ("oop-late-join", lambda curve, delay: late_rows("in order", delay), ["order-agnostic grows"]),
        (
            "oop-late-join",
            lambda curve, delay: {**late_rows(curve, delay / 100), "results": len(curve)},
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
        ("joint-punctuation", lambda curve, band: {**waits(curve, band), "answers": len(curve)}, ["all forms"]),
        *BROKEN_QUEUES,
        *BROKEN_WINDOWS,
    ],
)
def test_a_claim_fails_for_what_the_paper_did_not_find(name: str, law: Law, broken: list[str]) -> None:
    found = failing(name, law)
    assert [says[: len(start)] for says, start in zip(found, broken, strict=True)] == broken
