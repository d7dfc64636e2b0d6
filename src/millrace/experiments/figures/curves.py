"""The outcomes of an experiment read as curves: as values, as a table, and as a picture whose axes fit them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millrace.experiments.figures.experiment import Key, Outcome
from millrace.experiments.pictures import COLOURS, Axis, Picture

Value = Callable[[Outcome], float]
"""What is read of an outcome."""


def latency(outcome: Outcome) -> float:
    """Seconds from a row's arrival to its result, on average."""
    return outcome.latency


def level(found: Mapping[Key, Outcome], name: str, value: Value) -> float:
    """The value of a curve that has one setting alone."""
    return value(found[name, None])


def along(found: Mapping[Key, Outcome], name: str, value: Value) -> dict[float, float]:
    """The values of a curve by where they lie on it, in order."""
    places = {place: outcome for (curve, place), outcome in found.items() if curve == name and place is not None}
    return {place: value(places[place]) for place in sorted(places)}


def table(found: Mapping[Key, Outcome], over: str, **values: Value) -> list[dict[str, object]]:
    """A row for each setting: its curve, its place in a column named `over`, and the values asked for."""
    keys = sorted(found, key=lambda key: (key[0], key[1] or 0.0))
    return [
        {
            "curve": curve,
            over: "" if place is None else place,
            **{name: value(found[curve, place]) for name, value in values.items()},
        }
        for curve, place in keys
    ]


@dataclass(frozen=True)
class Curve:
    """Named points; a dashed one is what a formula says, and is drawn without dots."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def curves(found: Mapping[Key, Outcome], value: Value) -> list[Curve]:
    """All curves of an experiment by name; one with a single setting goes straight across the others."""
    places = [place for _, place in found if place is not None]
    ends = (min(places), max(places))
    return [
        Curve(name, [(end, level(found, name, value)) for end in ends])
        if (name, None) in found
        else Curve(name, list(along(found, name, value).items()))
        for name in sorted({name for name, _ in found})
    ]


def chart(title: str, x: str, y: str, curves: Sequence[Curve], *, log_x: bool = True, log_y: bool = True) -> Picture:
    """A picture of the curves with a legend."""
    xs, ys = zip(*(point for curve in curves for point in curve.points), strict=True)
    picture = Picture(title, fitted(x, xs, log=log_x), fitted(y, ys, log=log_y))
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        picture.line(curve.points, colour, dashed=curve.dashed)
        if not curve.dashed:
            picture.dots(curve.points, colour)
        picture.name(curve.name, colour, hollow=curve.dashed)
    return picture


def fitted(title: str, values: Sequence[float], *, log: bool) -> Axis:
    """An axis that holds all values: from nought, or by logarithms with a little room on both sides.

    >>> fitted("rate", [1, 40], log=False)
    Axis(title='rate', low=0.0, high=42.0, log=False)
    >>> fitted("rate", [0.1, 50], log=True)
    Axis(title='rate', low=0.08, high=62.5, log=True)
    """
    if not log:
        return Axis(title, 0.0, _rounded(max(values) * 1.05))
    positive = [value for value in values if value > 0]
    return Axis(title, _rounded(min(positive) / 1.25), _rounded(max(positive) * 1.25), log=True)


def _rounded(value: float) -> float:
    """A value to three digits, so that a picture does not depend on the last ones."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
