"""When each window came out on each system: as a table, as a picture, and as a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from millrace.experiments.drawing import GREY, Palette, number_axes, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class SeenWindow:
    """The row of a window: its count, and when it was seen, in seconds since the start."""

    count: int
    at: float


@dataclass
class SystemOutput:
    """What came out of one system, by window; a window that came out twice has two rows."""

    name: str
    windows: dict[int, list[SeenWindow]] = field(default_factory=dict)

    def add(self, window: int, row: SeenWindow) -> None:
        """Count a row."""
        self.windows.setdefault(window, []).append(row)

    def first(self, window: int) -> SeenWindow | None:
        """The first row of a window; None if there was none."""
        return next(iter(self.windows.get(window, [])), None)


@dataclass(frozen=True)
class Timeline:
    """Two systems over the same windows: the true counts, and what came out of each when."""

    window: int
    truth: Mapping[int, int]
    silence: tuple[float, float]
    ours: SystemOutput
    theirs: SystemOutput
    clock: str = "on the wall clock"

    def delays(self, side: SystemOutput) -> list[float]:
        """How long after its end each window came out, of those that did."""
        found = ((number, side.first(number)) for number in self.truth)
        return [each.at - self._end(number) for number, each in found if each is not None]

    def missing(self, side: SystemOutput) -> list[int]:
        """The windows that never came out."""
        return [number for number in self.truth if side.first(number) is None]

    def wrong(self, side: SystemOutput) -> list[int]:
        """The windows that came out with a wrong count, more than once, or without any row in them."""
        said = {number: [each.count for each in rows] for number, rows in side.windows.items()}
        return sorted(number for number, counts in said.items() if counts != [self.truth.get(number)])

    def _end(self, number: int) -> int:
        return (number + 1) * self.window

    # As text

    def table(self) -> list[str]:
        """One line per window: its count, when it came out on each system, and how long after its end."""
        lines = [f"{'window':>10}  {'rows':>8}  {self.ours.name:>20}  {self.theirs.name:>20}"]
        for number, count in self.truth.items():
            cells = "  ".join(f"{self._cell(side, number):>20}" for side in (self.ours, self.theirs))
            lines.append(f"{window_text(number, self.window):>10}  {count:>8,}  {cells}")
        return lines

    def _cell(self, side: SystemOutput, number: int) -> str:
        row = side.first(number)
        return "never" if row is None else f"{row.at:.1f} s (+{row.at - self._end(number):.1f} s)"

    def verdict(self) -> list[str]:
        """What the run has shown, one fact per line."""
        return [*self._counts(self.ours), *self._counts(self.theirs), *self._waits()]

    def _counts(self, side: SystemOutput) -> Iterator[str]:
        out, missing, wrong = len(side.windows), self.missing(side), self.wrong(side)
        counts = f"wrong counts for {_listed(wrong, self.window)}" if wrong else "every count is the true one"
        yield f"{side.name}: {out} of {len(self.truth)} windows came out" + (f"; {counts}" if out else "")
        if missing:
            yield f"{side.name}: never came out: {_listed(missing, self.window)}"

    def _waits(self) -> Iterator[str]:
        for side in (self.ours, self.theirs):
            delays = self.delays(side)
            if delays:
                middle, worst = median(delays), max(delays)
                yield f"{side.name}: delay after a window's end: median {middle:.1f} s, worst {worst:.1f} s"

    # As a picture

    def picture(self) -> str:
        """When each window came out, over its end, as an SVG file; the dashed line is a window out as it ends."""
        return svg("When each window came out, while the control link was silent", [self._draw])

    def _draw(self, axes: Axes, palette: Palette) -> None:
        last = self._end(max(self.truth))
        seen = [each.at for side in (self.ours, self.theirs) for rows in side.windows.values() for each in rows]
        until = max([last, *seen]) * 1.08
        axes.axvspan(*self.silence, color="#f1e7d0", label="control link silent")
        axes.plot([0, last], [0, last], "--", color=GREY, label="as the window ends")
        for side in (self.ours, self.theirs):
            self._draw_side(axes, side, palette, until)
        axes.set(xlabel=f"seconds since the start, {self.clock}", ylabel="end of the window (s)", xlim=(0, until))
        number_axes(axes, log="")

    def _draw_side(self, axes: Axes, side: SystemOutput, palette: Palette, until: float) -> None:
        """The windows of a system; those that never came out are hollow, at the right end."""
        style: dict[str, Any] = {"color": palette.colour(side.name), "marker": "o", "clip_on": False}
        found = ((number, side.first(number)) for number in self.truth)
        points = [(each.at, self._end(number)) for number, each in found if each is not None]
        axes.plot([at for at, _ in points], [end for _, end in points], label=side.name, **style)
        missing = [self._end(number) for number in self.missing(side)]
        if missing:
            words = f"{side.name}: {len(missing)} never came out"
            axes.plot([until] * len(missing), missing, linestyle="", fillstyle="none", label=words, **style)


def seen_text(side: SystemOutput, number: int, row: SeenWindow, window: int) -> str:
    """A window that has just come out, as a line.

    >>> seen_text(SystemOutput("Millrace"), 1, SeenWindow(9_000, 11.6), 5)
    ' 11.6 s  Millrace     window   5-10 s:  9,000 rows, 1.6 s after its end'
    """
    late = row.at - (number + 1) * window
    text = f"{side.name:<12} window {window_text(number, window):>8}: {row.count:>6,} rows"
    return f"{row.at:5.1f} s  {text}, {late:.1f} s after its end"


def window_text(number: int, window: int) -> str:
    """A window by its seconds since the start.

    >>> window_text(2, 5)
    '10-15 s'
    """
    return f"{number * window}-{(number + 1) * window} s"


def _listed(windows: list[int], window: int) -> str:
    return ", ".join(window_text(each, window) for each in windows)
