"""What the cases of a figure measured, read as curves, and drawn as the panels of a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from millrace.experiments.drawing import GREY, Palette, number_axes, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[str, float | None]
"""A point of a figure: the name of its curve, and its place on the curve (None: the value holds everywhere)."""
Measured = Mapping[str, float]
"""What a case measured, by name. Times are in seconds, or in ticks where a figure counts ticks."""


@dataclass(frozen=True)
class Curve:
    """Named points; a level holds everywhere, and is drawn without markers."""

    name: str
    points: Sequence[tuple[float, float]]
    level: bool = False


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

    def curves(self, value: str, under: str = "") -> list[Curve]:
        """A value of all curves `under` a common start of their names, by the rest; a level goes straight across."""
        ends = self.places()[0], self.places()[-1]
        return [
            Curve(name.removeprefix(under), [(end, self.level(name, value)) for end in ends], level=True)
            if (name, None) in self
            else Curve(name.removeprefix(under), list(self.along(name, value).items()))
            for name in sorted({name for name, _ in self if name.startswith(under)})
        ]


@dataclass(frozen=True)
class Chart:
    """A panel: its axes, the curves of a measured value or other curves, and formulas.

    Of a measured value, only curves `under` a common start of their names are drawn, by the rest. A formula is a dashed
    curve. `log` names the logarithmic axes. Where places are no numbers, `places` names those at 0, 1, 2 and so on, and
    bars stand for the curves. `title` begins with the letter that the panel has in the paper.
    """

    x: str
    y: str
    curves: str | Callable[[Results], Sequence[Curve]]
    formulas: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    log: str = "xy"
    places: Sequence[str] = ()
    title: str = ""
    under: str = ""

    def draw(self, found: Results, axes: Axes, palette: Palette) -> None:
        """Draw what was measured."""
        curves = found.curves(self.curves, self.under) if isinstance(self.curves, str) else self.curves(found)
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)
        if self.places:
            self._bars(curves, axes, palette)
        else:
            self._lines(curves, axes, palette)
        number_axes(axes, self.log)
        if self.places:
            axes.set_xticks(range(len(self.places)), self.places)
            axes.grid(visible=False, axis="x")

    def _lines(self, curves: Sequence[Curve], axes: Axes, palette: Palette) -> None:
        for curve in curves:
            style = {"linestyle": "-."} if curve.level else palette.marker(curve.name)
            style |= {"label": curve.name, "color": palette.colour(curve.name), "clip_on": False}
            axes.plot(*zip(*curve.points, strict=True), **style)
        every = [place for curve in curves for place, _ in curve.points]
        between = np.geomspace if "x" in self.log else np.linspace
        for (name, formula), dashes in zip(self.formulas.items(), ("--", ":"), strict=False):
            places = between(min(every), max(every), 100).tolist()
            axes.plot(places, [formula(each) for each in places], dashes, label=name, color=GREY, linewidth=1, zorder=3)

    def _bars(self, curves: Sequence[Curve], axes: Axes, palette: Palette) -> None:
        width = 0.8 / len(curves)
        for number, curve in enumerate(curves):
            places, values = zip(*curve.points, strict=True)
            shifted = [place + (number - (len(curves) - 1) / 2) * width for place in places]
            bars = axes.bar(shifted, values, width * 0.9, label=curve.name, color=palette.colour(curve.name))
            axes.bar_label(bars, [number_text(float(f"{value:.2g}")) for value in values], fontsize=7, padding=1)
