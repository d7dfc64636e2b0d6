"""EAGER against LAZY windows of ten keys that are updated in turn or at random (002 Fig. 14).

A window that a key's own rows close waits for the next of them. Where all keys share a clock, the stream's bound can
close it instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Curve, chart
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_windows import BOUND, EAGER, LAZY, OWN, WindowCase

KEYS = 10
LENGTHS = (2, 10, 20, 50, 100, 200)
"""Of windows, in ticks, of which one is the time between two rows."""
COUNTED = "own, counted"
"""Closed by own rows; the source of each key stamps its rows ten ticks apart, so that windows hold 2 to 20 of them."""
COUNTED_LENGTHS = (20, 50, 100, 200)
ARRIVALS = {"round robin": None, "Zipf 0": 0.0, "Zipf 0.5": 0.5, "Zipf 0.9": 0.9}
IN_TURN = "round robin"
SHOWN = (IN_TURN, "Zipf 0", "Zipf 0.9")
"""In the picture: what is between is in the table."""
ZIPF = tuple(name for name in ARRIVALS if name != IN_TURN)
_SOME = 50
"""Windows up to here are short beside the gaps between a key's rows."""


def settings() -> dict[Key, WindowCase]:
    """Both kinds of windows for each way of closing and arriving; the longest runs first."""
    return {
        (f"{closing}, {arrivals}, {windows}", float(length)): _case(closing, arrivals, windows, length)
        for closing in (COUNTED, OWN, BOUND)
        for length in sorted(lengths(closing), reverse=True)
        for arrivals in ARRIVALS
        for windows in (EAGER, LAZY)
    }


def lengths(closing: str) -> Iterable[int]:
    """Where a curve has points."""
    return COUNTED_LENGTHS if closing == COUNTED else LENGTHS


def _case(closing: str, arrivals: str, windows: str, length: int) -> WindowCase:
    theta = ARRIVALS[arrivals]
    if closing == COUNTED:
        # A rare key takes long for a window.
        return WindowCase(windows, length, KEYS, 800 + 10 * length, KEYS, theta, OWN, counted=True)
    return WindowCase(windows, length, 1, 500 + 10 * length, KEYS, theta, closing)


def ratios(found: Mapping[Key, Outcome], closing: str, arrivals: str) -> dict[int, float]:
    """EAGER's application staleness over LAZY's by the length of windows."""
    name = f"{closing}, {arrivals}"
    return {
        length: found[f"{name}, {EAGER}", length].staleness / found[f"{name}, {LAZY}", length].staleness
        for length in lengths(closing)
    }


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The ratio by the length of windows; a row of the table is a setting."""
    names = [(closing, arrivals) for closing in (OWN, BOUND, COUNTED) for arrivals in SHOWN]
    picture = chart(
        "EAGER over LAZY application staleness, 10 keys, a row a tick, a tick's work a row",
        "length of a window, ticks",
        "EAGER / LAZY",
        [_curve(found, *name) for name in names],
    )
    return Findings(_table(found), _claims(found), picture)


def _curve(found: Mapping[Key, Outcome], closing: str, arrivals: str) -> Curve:
    """The ratios of one way of closing and arriving; those of counted rows are dashed."""
    return Curve(f"{closing}, {arrivals}", list(ratios(found, closing, arrivals).items()), dashed=closing == COUNTED)


def _table(found: Mapping[Key, Outcome]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for curve, length in sorted(found, key=lambda key: (key[0], key[1] or 0.0)):
        closing, arrivals, windows = curve.rsplit(", ", 2)
        rows.append(
            {
                "closing": closing,
                "arrivals": arrivals,
                "windows": windows,
                "window_ticks": length,
                "application_staleness_ticks": found[curve, length].staleness,
            }
        )
    return rows


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    own, bound, counted = (
        {name: ratios(found, closing, name) for name in ARRIVALS} for closing in (OWN, BOUND, COUNTED)
    )
    short = [own[name][length] for name in ZIPF for length in LENGTHS if length <= _SOME]
    return [
        Claim("own, Zipf: EAGER is worse up to windows of 50; the least ratio", min(short), low=1.0),
        Claim("own, Zipf: for all windows; the least ratio", _least(own), low=1.0, reproduces=False),
        Claim("own, Zipf: the ratio falls with ω; the greatest growth", max(_growths(own)), high=1.0),
        Claim("own, round robin: EAGER is better at 200; the ratio", own[IN_TURN][200], high=1.0),
        Claim("own, round robin: at all; the greatest ratio", max(own[IN_TURN].values()), high=1.0, reproduces=False),
        Claim(
            "own, counted, Zipf: EAGER is worse where a window holds two rows; the least ratio",
            min(counted[name][20] for name in ZIPF),
            low=1.0,
        ),
        Claim("own, counted, Zipf 0.9: for all windows; the least ratio", min(counted["Zipf 0.9"].values()), low=1.0),
        Claim(
            "own, counted, Zipf: the ratio falls with ω, or stays; the greatest growth",
            max(_growths(counted)),
            high=1.02,
        ),
        Claim(
            "own, counted, round robin: EAGER is better; the greatest ratio", max(counted[IN_TURN].values()), high=1.0
        ),
        Claim(
            "bound: EAGER is better throughout; the greatest ratio",
            max(ratio for each in bound.values() for ratio in each.values()),
            high=1.0,
        ),
    ]


def _least(curves: Mapping[str, Mapping[int, float]]) -> float:
    return min(min(curves[name].values()) for name in ZIPF)


def _growths(curves: Mapping[str, Mapping[int, float]]) -> list[float]:
    """What each ratio under Zipf's law is to the one before."""
    values = [list(curves[name].values()) for name in ZIPF]
    return [after / before for each in values for before, after in pairwise(each)]


FIGURE = Figure(
    "window-arrivals", "002 Fig. 14", "EAGER against LAZY windows by how keys are updated", settings, findings
)
