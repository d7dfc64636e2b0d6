"""Small pictures as SVG text: axes, lines, dots and words, placed in the units of the data.

Rules:
- A picture is text: the same data gives the same file, and its diff can be read.
- An axis is linear or logarithmic; on a logarithmic one, a value below its low end is drawn at that end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

COLOURS = ("#1b6ca8", "#c8553d", "#5b8c5a", "#8e6c8a", "#666666", "#c99a2e", "#3aa6a1", "#a0405c")
GREY = "#999999"
WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 830, 64, 364
"""The edges of the plot; y grows downwards in SVG."""


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from where to where, and if it is logarithmic; `names` are those of the values 0, 1, 2 ..."""

    title: str
    low: float
    high: float
    log: bool = False
    names: Sequence[str] = ()

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one.

        >>> Axis("x", 0, 10).share(5), Axis("x", 1, 100, log=True).share(10)
        (0.5, 0.5)
        """
        low, high, at = (self._length(each) for each in (self.low, self.high, value))
        return (at - low) / ((high - low) or 1.0)

    def _length(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value

    def ticks(self, about: int) -> list[tuple[float, str]]:
        """The values to be marked, and their words."""
        if self.names:
            return list(enumerate(self.names))
        powers = decades(self.low, self.high) if self.log else []
        return [(value, words_of(value)) for value in powers or round_numbers(self.low, self.high, about)]


def round_numbers(low: float, high: float, about: int = 6) -> list[float]:
    """About so many round numbers in a range.

    >>> round_numbers(0, 62)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """
    if high <= low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def decades(low: float, high: float, most: int = 9) -> list[float]:
    """The powers of ten in a range; every second or third one if they are too many.

    >>> decades(0.1, 500)
    [0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return [round(10.0**power, -power) if power < 0 else 10.0**power for power in range(first, last + 1, step)]


def words_of(value: float) -> str:
    """A number as it stands at a tick.

    >>> words_of(30.0), words_of(0.25), words_of(20000.0)
    ('30', '0.25', '20,000')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:g}"


@dataclass
class Picture:
    """A drawing with two axes and a legend; every method that draws takes the units of the data."""

    title: str
    x: Axis
    y: Axis
    _drawn: list[str] = field(default_factory=list)
    _legend: list[str] = field(default_factory=list)
    _legend_end: tuple[float, int] = (LEFT, 40)

    def _across(self, x: float) -> float:
        return LEFT + self.x.share(x) * (RIGHT - LEFT)

    def _up(self, y: float) -> float:
        return BOTTOM + self.y.share(y) * (TOP - BOTTOM)

    def line(self, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        """A line through points."""
        path = " ".join(f"{self._across(x):.1f},{self._up(y):.1f}" for x, y in points)
        dash = " stroke-dasharray='5 4'" if dashed else ""
        self._drawn.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.6'{dash}/>")

    def dots(self, points: Sequence[tuple[float, float]], colour: str, *, hollow: bool = False) -> None:
        """A dot at each point."""
        self._drawn += [_dot(self._across(x), self._up(y), 4, colour, hollow) for x, y in points]

    def band(self, low: float, high: float, words: str) -> None:
        """A part of the x axis that is marked over the height of the drawing."""
        begin, end = self._across(low), self._across(high)
        place = f"x='{begin:.1f}' y='{TOP}' width='{end - begin:.1f}' height='{BOTTOM - TOP}'"
        self._drawn.append(f"<rect {place} fill='#f1e7d0'/>")
        self._drawn.append(_text((begin + end) / 2, TOP + 14, words, colour="#8a6d1f"))

    def name(self, text: str, colour: str, *, hollow: bool = False) -> None:
        """An entry of the legend; it begins a new line if it does not fit beside the others."""
        (x, y), width = self._legend_end, 40 + 6.6 * len(text)
        if x + width > WIDTH and x > LEFT:
            x, y = LEFT, y + 16
        self._legend += [_dot(x + 5, y, 5, colour, hollow), _text(x + 16, y + 4, text, anchor="start")]
        self._legend_end = x + width, y

    def svg(self) -> str:
        """The drawing as an SVG file."""
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}' "
            f"font-family='Helvetica, Arial, sans-serif' role='img' aria-label={quoteattr(self.title)}>"
        )
        ground = f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>"
        title = _text(LEFT, 24, self.title, size=15, anchor="start", colour="#111111")
        parts = [head, ground, title, *self._drawn, *self._x_axis(), *self._y_axis(), *self._legend, "</svg>"]
        return "\n".join(parts) + "\n"

    def _x_axis(self) -> list[str]:
        parts = [_rule(LEFT, BOTTOM, RIGHT, BOTTOM)]
        for value, words in self.x.ticks(10):
            at = self._across(value)
            parts += [_rule(at, BOTTOM, at, BOTTOM + 5), _text(at, BOTTOM + 19, words)]
        return [*parts, _text((LEFT + RIGHT) / 2, HEIGHT - 14, self.x.title)]

    def _y_axis(self) -> list[str]:
        parts = [_rule(LEFT, TOP, LEFT, BOTTOM)]
        for value, words in self.y.ticks(6):
            at = self._up(value)
            parts += [_rule(LEFT - 5, at, LEFT, at), _text(LEFT - 9, at + 4, words, anchor="end")]
        middle = (TOP + BOTTOM) / 2
        return [*parts, _text(20, middle, self.y.title, more=f" transform='rotate(-90 20 {middle:.1f})'")]


def _dot(x: float, y: float, radius: int, colour: str, hollow: bool) -> str:
    fill = "white" if hollow else colour
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='{fill}' stroke='{colour}'/>"


def _text(
    x: float, y: float, words: str, *, size: int = 12, anchor: str = "middle", colour: str = "#333333", more: str = ""
) -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}'"
    return f"<text {place}{more}>{escape(words)}</text>"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{GREY}'/>"
