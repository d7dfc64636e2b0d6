"""What the cases of a figure measured, read as curves, and drawn as a chart whose axes fit them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from millrace.experiments.pictures import COLOURS, Axis, Picture

Point = tuple[str, float | None]
"""A point of a figure: the name of its curve, and its place on the curve (None: the value holds everywhere)."""
Measured = Mapping[str, float]
"""What a case measured, by name. Times are in seconds, or in ticks where a figure counts ticks."""


@dataclass(frozen=True)
class Curve:
    """Named points; a dashed curve is drawn without dots."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


class Results(dict[Point, Measured]):
    """What was measured at each point of a figure."""

    def level(self, curve: str, value: str) -> float:
        """A value of a curve that has a single point, and holds everywhere."""
        return self[curve, None][value]

    def along(self, curve: str, value: str) -> dict[float, float]:
        """A value of a curve by place, in order."""
        places = sorted(place for name, place in self if name == curve and place is not None)
        return {place: self[curve, place][value] for place in places}

    def ratios(self, curve: str, other: str, value: str) -> dict[float, float]:
        """A value of a curve over that of another, by the places of the first."""
        return {place: measured / self[other, place][value] for place, measured in self.along(curve, value).items()}

    def different(self, value: str) -> int:
        """How many different results there are for a value."""
        return len({measured[value] for measured in self.values()})

    def places(self) -> list[float]:
        """All places, in order."""
        return sorted({place for _, place in self if place is not None})

    def curves(self, value: str) -> list[Curve]:
        """A value of all curves, by name; one that holds everywhere goes straight across."""
        ends = self.places()[0], self.places()[-1]
        return [
            Curve(name, [(end, self.level(name, value)) for end in ends])
            if (name, None) in self
            else Curve(name, list(self.along(name, value).items()))
            for name in sorted({name for name, _ in self})
        ]


@dataclass(frozen=True)
class Chart:
    """How a figure is drawn: its axes, the curves of a measured value or other curves, and formulas.

    A formula is a dashed curve over all places. `log` names the logarithmic axes. `places` are the names of the places
    0, 1, 2 and so on, where these are no numbers.
    """

    x: str
    y: str
    curves: str | Callable[[Results], Sequence[Curve]]
    formulas: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    log: str = "xy"
    places: Sequence[str] = ()

    def picture(self, title: str, found: Results) -> Picture:
        """The chart of what was measured, with a legend."""
        curves = list(found.curves(self.curves) if isinstance(self.curves, str) else self.curves(found))
        for name, formula in self.formulas.items():
            curves.append(Curve(name, [(place, formula(place)) for place in found.places()], dashed=True))
        xs, ys = zip(*(point for curve in curves for point in curve.points), strict=True)
        picture = Picture(title, self._x_axis(xs), fitted(self.y, ys, log="y" in self.log))
        for number, curve in enumerate(curves):
            colour = COLOURS[number % len(COLOURS)]
            picture.line(curve.points, colour, dashed=curve.dashed)
            if not curve.dashed:
                picture.dots(curve.points, colour)
            picture.name(curve.name, colour, hollow=curve.dashed)
        return picture

    def _x_axis(self, xs: Sequence[float]) -> Axis:
        if self.places:
            return Axis(self.x, -0.5, len(self.places) - 0.5, names=self.places)
        return fitted(self.x, xs, log="x" in self.log)

    def place_text(self, place: float | None) -> float | str:
        """A place as the table has it."""
        if place is None:
            return ""
        return self.places[int(place)] if self.places else place


def fitted(title: str, values: Sequence[float], *, log: bool) -> Axis:
    """An axis that holds all values: it starts at zero, or, if logarithmic, has a little room at both ends.

    >>> fitted("rate", [1, 40], log=False)
    Axis(title='rate', low=0.0, high=42.0, log=False, names=())
    >>> fitted("rate", [0.1, 50], log=True)
    Axis(title='rate', low=0.08, high=62.5, log=True, names=())
    """
    if not log:
        return Axis(title, 0.0, _rounded(max(values) * 1.05))
    positive = [value for value in values if value > 0]
    return Axis(title, _rounded(min(positive) / 1.25), _rounded(max(positive) * 1.25), log=True)


def _rounded(value: float) -> float:
    """A value to three digits, so that a picture does not depend on the last ones."""
    return float(f"{value:.3g}") if math.isfinite(value) else value
