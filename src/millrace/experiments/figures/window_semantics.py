"""How stale the windows of one key are: EAGER, LAZY, all of them, or some at random (002 Fig. 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_windows import EAGER, EVERY, LAZY, RANDOM, WindowCase, staleness

LENGTHS = (1, 2, 5, 10, 15, 20)
"""Of windows, in ticks."""
TUMBLING, SLIDING = "tumbling", "slide 1"
_WINDOWS = 40
"""Tumbling ones, and the first row of one more: what is stale by then is of whole windows."""
_ROWS = 1000
_APPENDED = 400
"""Rows of which every window is reported: it falls behind by more the more there are."""


def settings() -> dict[Key, WindowCase]:
    """All that there are at each length; the longest runs first."""
    return {
        **{(_name(SLIDING, EVERY), float(length)): WindowCase(EVERY, length, 1, _APPENDED) for length in LENGTHS[::-1]},
        **{
            (_name(SLIDING, windows), float(length)): WindowCase(windows, length, 1, _ROWS)
            for length in LENGTHS[::-1]
            for windows in (EAGER, LAZY, RANDOM)
        },
        **{
            (_name(TUMBLING, windows), float(length)): WindowCase(windows, length, length, _WINDOWS * length + 1)
            for length in LENGTHS[::-1]
            for windows in (EAGER, LAZY)
        },
    }


def _name(kind: str, windows: str) -> str:
    return f"{kind}, {windows}"


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The staleness of the application by the length of windows, and the formulas for tumbling ones beside it."""
    formulas = [
        Curve("0.5/ω", [(length, 0.5 / length) for length in LENGTHS], dashed=True),
        Curve("ω/2", [(length, length / 2) for length in LENGTHS], dashed=True),
    ]
    picture = chart(
        "Application staleness by window length, one key, a row a tick, a tick's work a row",
        "length of a window, ticks",
        "mean application staleness, ticks",
        [*curves(found, staleness), *formulas],
    )
    rows = table(found, "window_ticks", application_staleness_ticks=staleness)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    whole, ready = (along(found, _name(TUMBLING, windows), staleness) for windows in (EAGER, LAZY))
    eager, lazy, random, every = (
        along(found, _name(SLIDING, windows), staleness) for windows in (EAGER, LAZY, RANDOM, EVERY)
    )
    return [
        about(
            "tumbling: EAGER is stale by 0.5/ω; the furthest ratio",
            furthest(value * length / 0.5 for length, value in whole.items()),
            1.0,
            0.01,
        ),
        about(
            "tumbling: LAZY by ω/2; the furthest ratio",
            furthest(value / (length / 2) for length, value in ready.items()),
            1.0,
            0.05,
        ),
        Claim("slide 1: EAGER grows with ω; the least growth from one length to the next", _growth(eager), low=1.1),
        Claim("slide 1: LAZY grows with ω; the least growth", _growth(lazy), low=1.1),
        Claim("slide 1, ω from 2 on: EAGER is below LAZY; the greatest ratio", max(_over(eager, lazy)), high=0.75),
        Claim(
            "slide 1, ω from 2 on: LAZY is below random windows; the greatest ratio", max(_over(lazy, random)), high=1
        ),
        Claim(
            "slide 1, ω from 2 on: random windows are below append; the greatest ratio",
            max(_over(random, every)),
            high=1,
        ),
    ]


def _growth(values: Mapping[float, float]) -> float:
    """The least ratio of a value to the one before."""
    return min(after / before for before, after in pairwise(values.values()))


def _over(first: Mapping[float, float], second: Mapping[float, float]) -> Iterable[float]:
    """One over the other, where windows overlap."""
    return [value / second[length] for length, value in first.items() if length > 1]


FIGURE = Figure(
    "window-semantics", "002 Fig. 13", "staleness of windows: EAGER, LAZY, random and all", settings, findings
)
