"""Pictures by matplotlib, which is an extra: panels side by side, and one legend for all of them.

Rules:
- The same panels give the same file: no date, no random names, and text stays text.
- A name has the same colour and marker in all panels of a picture.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from math import ceil, log10
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8c564b")
"""Also the colour-blind can tell them apart."""
MARKERS = "osD^vPX*"
GREY = "#777777"
HOW_TO_DRAW = 'install the extra "millrace[figures]" for pictures'
_STYLE: Any = {
    "svg.hashsalt": "millrace",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
}
_WIDTHS = {1: 6.4, 2: 8.8, 3: 10.8}
_ROOM = 17
"""About so many letters of the legend stand in an inch."""


class Palette:
    """The colour and the marker of each name, in the order in which names are first asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def colour(self, name: str) -> str:
        """Its colour."""
        return COLOURS[self._number(name) % len(COLOURS)]

    def marker(self, name: str) -> dict[str, Any]:
        """Its marker: hollow, and smaller than those before it, so that curves that coincide are both seen."""
        number = self._number(name)
        return {"marker": MARKERS[number % len(MARKERS)], "markersize": 7.5 - number % 4, "fillstyle": "none"}

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


Panel = Callable[["Axes", Palette], None]
"""What draws a panel on its axes."""


def can_draw() -> bool:
    """True if matplotlib is installed."""
    return find_spec("matplotlib") is not None


def svg(title: str, panels: Sequence[Panel]) -> str:
    """The panels as an SVG file, at most three in a row, with their legend below."""
    import matplotlib
    from matplotlib.figure import Figure

    rows = ceil(len(panels) / 3)
    columns = ceil(len(panels) / rows)
    with matplotlib.rc_context(_STYLE):
        figure, palette = Figure(figsize=(_WIDTHS[columns], 0.9 + 2.8 * rows), layout="constrained"), Palette()
        figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=10)
        for number, panel in enumerate(panels, 1):
            panel(figure.add_subplot(rows, columns, number), palette)
        _add_legend(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _add_legend(figure: Figure) -> None:
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    longest = max(map(len, entries)) + 7
    columns = max(1, min(len(entries), int(figure.get_figwidth() * _ROOM / longest)))
    # Rows as even as can be: six names where five fit stand in two rows of three.
    columns = ceil(len(entries) / ceil(len(entries) / columns))
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=columns)


def number_axes(axes: Axes, log: str) -> None:
    """Scale the axes: logarithmic if `log` names them, with numbers at their ticks, else from zero on."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    words = FuncFormatter(lambda value, _: number_text(value))
    if "y" not in log:
        axes.set_ylim(min(0.0, axes.dataLim.ymin * 1.06), axes.dataLim.ymax * 1.06)
    axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    for name, axis, (low, high) in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        axis.set_major_formatter(words)
        if name not in log:
            axis.set_major_locator(MaxNLocator(7, steps=(1, 2, 5, 10)))
            continue
        # A decade or two have few powers of ten, and less than one may have none.
        decades = log10(high / low)
        axis.set_major_locator(
            LogLocator(subs=(1,) if decades > 2.2 else (1, 2, 5) if decades > 1 else (1, 2, 3, 5, 7))
        )
        axis.set_minor_formatter(NullFormatter())


def number_text(value: float) -> str:
    """A number as it stands at a tick.

    >>> number_text(30.0), number_text(0.25), number_text(20000.0), number_text(1e-8)
    ('30', '0.25', '20,000', '1e-8')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.6g}".replace("e-0", "e-")
