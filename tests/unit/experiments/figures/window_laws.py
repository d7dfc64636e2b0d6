"""What the figures of windows and pages find if it is what the paper found (002), and what breaks their claims."""

from __future__ import annotations

from collections.abc import Callable

from millrace.experiments.figures.curves import Measured

Law = Callable[[str, float], Measured]


def semantics(curve: str, length: float) -> Measured:
    kind, windows = curve.split(", ")
    stale = {
        ("tumbling", "EAGER"): 0.5 / length,
        ("tumbling", "LAZY"): length / 2,
        ("slide 1", "EAGER"): length / 2,
        ("slide 1", "LAZY"): 1.5 * length - 1,
        ("slide 1", "random windows"): 2.5 * length,
        ("slide 1", "append"): 10 * length,
    }
    return {"staleness": stale[kind, windows]}


def arrivals(curve: str, length: float) -> Measured:
    closing, keys, windows = curve.rsplit(", ", 2)
    in_turn = keys == "round robin"
    ratio = {
        "own": 0.85 + 10 / length if in_turn else 0.9 + 6 / length,
        "own, counted": 0.8 if in_turn else 0.9 + 8 / length + 0.3 * (keys == "Zipf 0.9"),
        "bound": 0.9,
    }
    return {"staleness": length / 2 * (ratio[closing] if windows == "EAGER" else 1.0)}


def pages(curve: str, rate: float) -> Measured:
    memory, theta = curve.split(", θ ")
    used = 100 * rate / (rate + 20 * (1 + 2 * float(theta)))
    kept = used if memory == "paged" else 100.0
    return {"results": 100, "allocated": kept, "in_use": used / kept}


WINDOW_LAWS: dict[str, Law] = {"window-semantics": semantics, "window-arrivals": arrivals, "paging": pages}

BROKEN_WINDOWS: list[tuple[str, Law, list[str]]] = [
    (
        "window-semantics",
        lambda curve, length: semantics(curve.replace("EAGER", "LAZY"), length),
        ["tumbling: EAGER", "slide 1, ω from 2 on: EAGER"],
    ),
    (
        "window-semantics",
        lambda curve, length: semantics(curve.replace("LAZY", "EAGER"), length),
        ["tumbling: LAZY", "slide 1, ω from 2 on: EAGER"],
    ),
    (
        "window-semantics",
        lambda curve, length: semantics(curve.replace("random windows", "EAGER").replace("append", "EAGER"), length),
        ["slide 1, ω from 2 on: LAZY"],
    ),
    (
        "window-semantics",
        lambda curve, length: semantics(curve, 20.0 if curve.startswith("slide") else length),
        ["slide 1: EAGER grows", "slide 1: LAZY grows"],
    ),
    (
        "window-arrivals",
        lambda curve, length: arrivals(curve.replace("bound", "own"), length),
        ["bound: EAGER"],
    ),
    (
        "window-arrivals",
        lambda curve, length: arrivals(curve.replace("own, counted", "bound").replace("own", "bound"), length),
        ["own, Zipf: EAGER", "own, round robin: at all", "own, counted, Zipf: EAGER", "own, counted, Zipf 0.9"],
    ),
    (
        "window-arrivals",
        lambda curve, length: arrivals(curve, 200 / length if "Zipf" in curve else length),
        ["own, Zipf: EAGER", "own, Zipf: the ratio", "own, counted, Zipf: the ratio"],
    ),
    (
        "paging",
        lambda curve, rate: pages(curve.replace("paged", "naive"), rate),
        ["paged: every", "20 per second"],
    ),
    (
        "paging",
        lambda curve, rate: pages(curve.replace("naive", "paged"), rate),
        ["naive, 20", "20 per second"],
    ),
    (
        "paging",
        lambda curve, rate: pages(curve, 20_000 / rate),
        ["naive, 20", "naive: it rises", "20 per second"],
    ),
    (
        "paging",
        lambda curve, rate: pages(f"{curve[:5]}, θ {0.9 - float(curve.split()[-1]):g}", rate),
        ["naive: the share", "naive, 20"],
    ),
]
