"""Small pictures as SVG text: axes, lines, dots and words, placed by the data's own units.

Rules:
- A picture is text: the same data gives the same file, and a diff of it can be read.
- x grows to the right and y upwards; a scale maps the data's range to the drawing's.
- An axis is straight or logarithmic; on a logarithmic one a value below its low end is drawn at that end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

COLOURS = ("#1b6ca8", "#c8553d", "#5b8c5a", "#8e6c8a", "#666666", "#c99a2e", "#3aa6a1", "#a0405c")
_FONT = "font-family='Helvetica, Arial, sans-serif'"
_GREY = "#999999"


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from the range `low`..`high` of the data to `start`..`end` of the drawing, straight or by logarithms.

    >>> Scale(0, 10, 100, 200)(5)
    150.0
    >>> Scale(1, 100, 0, 50, log=True)(10)
    25.0
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value lies in the drawing."""
        low, high = self._length(self.low), self._length(self.high)
        share = (self._length(value) - low) / ((high - low) or 1.0)
        return self.start + share * (self.end - self.start)

    def _length(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers within a range, about so many.

    >>> ticks(0, 62)
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
    """The powers of ten within a range, every second or third of them where they would be too many.

    >>> decades(0.1, 500)
    [0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return [round(10.0**power, -power) if power < 0 else 10.0**power for power in range(first, last + 1, step)]


def words_of(value: float) -> str:
    """A number as a tick says it.

    >>> words_of(30.0), words_of(0.25), words_of(20000.0)
    ('30', '0.25', '20,000')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:g}"


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from where to where, and whether by logarithms."""

    title: str
    low: float
    high: float
    log: bool = False

    def ticks(self, about: int) -> list[float]:
        """The values to be marked."""
        powers = decades(self.low, self.high) if self.log else []
        return powers or ticks(self.low, self.high, about)


@dataclass
class Picture:
    """A drawing with two axes; every method that draws takes the data's units."""

    title: str
    x: Axis
    y: Axis
    width: int = 860
    height: int = 420
    left: int = 70
    right: int = 30
    top: int = 64
    bottom: int = 56
    _drawn: list[str] = field(default_factory=list)
    _legend: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.across = Scale(self.x.low, self.x.high, self.left, self.width - self.right, self.x.log)
        self.up = Scale(self.y.low, self.y.high, self.height - self.bottom, self.top, self.y.log)

    def line(self, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        """A line through points."""
        path = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in points)
        dash = " stroke-dasharray='5 4'" if dashed else ""
        self._drawn.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.6'{dash}/>")

    def dots(self, points: Sequence[tuple[float, float]], colour: str, *, hollow: bool = False) -> None:
        """A dot at each point."""
        fill = "white" if hollow else colour
        self._drawn += [
            f"<circle cx='{self.across(x):.1f}' cy='{self.up(y):.1f}' r='4' fill='{fill}' stroke='{colour}'/>"
            for x, y in points
        ]

    def band(self, low: float, high: float, words: str, colour: str = "#f1e7d0") -> None:
        """A stretch of the x axis that is marked over the drawing's height."""
        begin, end = self.across(low), self.across(high)
        height = self.height - self.top - self.bottom
        self._drawn.append(
            f"<rect x='{begin:.1f}' y='{self.top}' width='{end - begin:.1f}' height='{height}' fill='{colour}'/>"
        )
        self._drawn.append(_text((begin + end) / 2, self.top + 14, words, colour="#8a6d1f"))

    def words(self, x: float, y: float, text: str, colour: str = "#333333", anchor: str = "middle") -> None:
        """Words at a point."""
        self._drawn.append(_text(self.across(x), self.up(y), text, colour=colour, anchor=anchor))

    def name(self, text: str, colour: str, *, hollow: bool = False) -> None:
        """An entry of the legend."""
        self._legend.append((text, colour, "white" if hollow else colour))

    def svg(self) -> str:
        """The drawing as an SVG file."""
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width}' height='{self.height}' "
            f"viewBox='0 0 {self.width} {self.height}' {_FONT} role='img' aria-label={quoteattr(self.title)}>"
        )
        ground = f"<rect width='{self.width}' height='{self.height}' fill='white'/>"
        title = _text(self.left, 24, self.title, size=15, anchor="start", colour="#111111")
        parts = [head, ground, title, *self._drawn, *self._x_axis(), *self._y_axis(), *self._names(), "</svg>"]
        return "\n".join(parts) + "\n"

    def _x_axis(self) -> list[str]:
        base = self.height - self.bottom
        parts = [_rule(self.left, base, self.width - self.right, base)]
        for value in self.x.ticks(10):
            parts.append(_rule(self.across(value), base, self.across(value), base + 5))
            parts.append(_text(self.across(value), base + 19, words_of(value)))
        middle = (self.left + self.width - self.right) / 2
        return [*parts, _text(middle, self.height - 14, self.x.title)]

    def _y_axis(self) -> list[str]:
        parts = [_rule(self.left, self.top, self.left, self.height - self.bottom)]
        for value in self.y.ticks(6):
            parts.append(_rule(self.left - 5, self.up(value), self.left, self.up(value)))
            parts.append(_text(self.left - 9, self.up(value) + 4, words_of(value), anchor="end"))
        middle = (self.top + self.height - self.bottom) / 2
        turned = f" transform='rotate(-90 20 {middle:.1f})'"
        return [*parts, _text(20, middle, self.y.title, more=turned)]

    def _names(self) -> list[str]:
        parts, x, y = [], float(self.left), 44 if self._legend_width() <= self.width - self.left else 40
        for text, colour, fill in self._legend:
            if x + _entry_width(text) > self.width and x > self.left:
                x, y = float(self.left), y + 16
            parts.append(f"<circle cx='{x + 5:.1f}' cy='{y}' r='5' fill='{fill}' stroke='{colour}'/>")
            parts.append(_text(x + 16, y + 4, text, anchor="start"))
            x += _entry_width(text)
        return parts

    def _legend_width(self) -> float:
        return sum(_entry_width(text) for text, _, _ in self._legend)


def _entry_width(text: str) -> float:
    return 40 + 6.6 * len(text)


def _text(
    x: float, y: float, words: str, *, size: int = 12, anchor: str = "middle", colour: str = "#333333", more: str = ""
) -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}'"
    return f"<text {place}{more}>{escape(words)}</text>"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{_GREY}'/>"
