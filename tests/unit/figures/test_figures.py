"""The claims of each figure: they hold for outcomes as the papers have them, and fail for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from millrace.figures import FIGURES, ets_idle, oop_sliding, oop_smoothing, slide_burstiness, strategy_burst
from millrace.figures.experiment import Findings, Key, Outcome
from tests.unit.figures.outcomes import outcome

Law = Callable[[str, float], Outcome]
"""What a setting gives, by its curve and place."""


def findings(name: str, law: Law) -> Findings:
    found: dict[Key, Outcome] = {key: law(key[0], key[1] or 0.0) for key in FIGURES[name].settings()}
    return FIGURES[name].findings(found)


def failing(name: str, law: Law) -> list[str]:
    return [claim.says for claim in findings(name, law).claims if not claim.holds]


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


def smoothing(curve: str, groups: float) -> Outcome:
    """Every policy stands 800,000 a second, but for bursts in order."""
    size = {"1/2": 0.5, "1": 1.0, "2": 2.0}[curve.split("table ")[1]]
    burst = oop_smoothing.burst_rate(int(groups), size) if curve.startswith("in order") else 8e5
    return outcome(rate=min(8e5, burst))


LAWS: dict[str, Law] = {
    "ets-latency": ets_latency,
    "ets-idle": idle,
    "ets-memory": memory,
    "strategy-burst": bursts,
    "eqg-overhead": arcs,
    "slide-burstiness": slides,
    "oop-skew": skews,
    "oop-smoothing": smoothing,
    "oop-sliding": delays,
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
        ("oop-skew", lambda curve, skew: skews("in order", skew), ["order-agnostic starts", "order-agnostic needs"]),
        (
            "oop-skew",
            lambda curve, skew: skews("order-agnostic", 1),
            ["in order grows", "order-agnostic starts", "order"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(rate=8e5),
            ["260k groups", "520k groups, 1 slot", "520k groups, 2 slots", "520k groups, in order"],
        ),
        (
            "oop-smoothing",
            lambda curve, groups: outcome(rate=smoothing(curve, groups).rate * (1 + ("lazy" in curve))),
            ["66k groups"],
        ),
        ("oop-sliding", lambda curve, delay: delays("slack", 300), ["in order", "order-agnostic at", "a slack"]),
        (
            "oop-sliding",
            lambda curve, delay: delays("in order", delay),
            ["order-agnostic is flat", "order-agnostic at", "one that is too short"],
        ),
    ],
)
def test_a_claim_fails_for_what_the_paper_did_not_find(name: str, law: Law, broken: list[str]) -> None:
    found = failing(name, law)
    assert [says[: len(start)] for says, start in zip(found, broken, strict=True)] == broken
