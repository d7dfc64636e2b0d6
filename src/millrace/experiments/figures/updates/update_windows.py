"""The figures of 002 section 6.3: a count by key over windows of an update stream, and a server that rows keep busy.

A row arrives every tick, and each row of a window takes `cost` ticks. Rows are stamped with their arrival, or, if
`counted`, by the source of their key: it counts its own rows, as many ticks apart as there are keys, so that every
window of a key holds as many rows as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.claims import Claim, about, furthest, growth
from millrace.experiments.figures.curves import Chart, Curve, Measured, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.updates.update_queues import SECOND, keys_of
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import TIMESTAMP
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling

EAGER, LAZY, EVERY, RANDOM = "EAGER", "LAZY", "append", "random windows"
UPDATE_WINDOWS = {EAGER: "eager", LAZY: "lazy", EVERY: "every", RANDOM: "random"}
OWN, BOUND = "own", "bound"


@dataclass(frozen=True)
class WindowCase:
    """Windows of `length` ticks, every `slide` ticks, over so many rows of some keys: in turn, or by Zipf's law."""

    windows: str
    length: int
    slide: int
    rows: int
    keys: int = 1
    theta: float | None = None
    close: str = OWN
    counted: bool = False
    seed: int = 1
    cost: int = 1

    @property
    def text(self) -> str:
        """The query, and its stream."""
        own = f", tick = '{self._apart} SECONDS'" if self.close == OWN else ""
        # The sources' own counts differ, and no bound has to close anything.
        order = f"DISORDER INTERVAL {self.rows * self.keys} SECONDS" if self.counted else "ORDERED"
        return f"""CREATE STREAM s (k BIGINT, ts TIMESTAMP, at TIMESTAMP)
  TIMESTAMP BY ts {order} UPDATE KEY (k) FROM iterable REPLAY BY at;
CREATE QUERY windows WITH ({spelling("update_window", UPDATE_WINDOWS[self.windows])}, close = '{self.close}'{own}) AS
  SELECT k, count(*) AS n FROM s [RANGE {self.length} SECONDS SLIDE {self.slide} SECONDS WA ts] GROUP BY k;"""

    @property
    def _apart(self) -> int:
        """How many ticks apart the stamps of a key's rows are at least."""
        return self.keys if self.counted else 1

    def run(self, sample_every: float | None = None) -> VirtualRun:
        """The run, finished; its queue is sampled every so many ticks."""
        keys, arrived = keys_of(self.keys, self.rows, self.theta, self.seed), np.arange(self.rows)
        stamps = numbered(keys) * self.keys if self.counted else arrived
        run = VirtualRun(
            parse_network(self.text),
            feeds={"s": feed(keys, ts=stamps, at=arrived)},
            cost=Costs(of={"marked_aggregate": self.cost * SECOND}),
            rows_per_step=1,
            sample_every=None if sample_every is None else round(sample_every * SECOND),
        )
        run.run()
        return run

    def measure(self) -> Measured:
        """The staleness of the application from the first row to the last one, in ticks."""
        metrics = self.run().samples("windows").metrics
        assert metrics is not None
        return {"staleness": metrics.application_mean / SECOND}


def numbered(keys: Integers) -> Integers:
    """For each row, how many rows of its key are before it.

    >>> numbered(np.array([5, 7, 5, 5, 7])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys)
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def feed(keys: Integers, **ticks: Integers) -> list[pa.Table]:
    """A feed of a column `k` and some columns of times, which are given in ticks."""
    return [pa.table({"k": keys, **{name: pa.array(each * SECOND).cast(TIMESTAMP) for name, each in ticks.items()}})]


LENGTHS = (1, 2, 5, 10, 15, 20)
"""Of windows, in ticks."""
_LENGTH, _STALE = "length of a window, ticks", "mean application staleness, ticks"
FORMULAS: dict[str, Callable[[float], float]] = {
    "0.5/ω": lambda length: 0.5 / length,
    "ω/2": lambda length: length / 2,
}
_TUMBLING_WINDOWS = 40
"""And the first row of one more, so that all that is stale by then is of whole windows."""


def _semantics_cases() -> dict[Point, WindowCase]:
    """Each kind of windows at each length. Append falls behind by more the more rows there are: it has fewer."""
    found: dict[Point, WindowCase] = {}
    for length in reversed(LENGTHS):
        found[f"slide 1, {EVERY}", length] = WindowCase(EVERY, length, 1, 400)
        for windows in (EAGER, LAZY, RANDOM):
            found[f"slide 1, {windows}", length] = WindowCase(windows, length, 1, 1000)
        for windows in (EAGER, LAZY):
            found[f"tumbling, {windows}", length] = WindowCase(windows, length, length, _TUMBLING_WINDOWS * length + 1)
    return found


@figure(
    cases=_semantics_cases,
    columns={"window_ticks": PLACE, "application_staleness_ticks": "staleness"},
    panels=[
        Chart(_LENGTH, _STALE, "staleness", FORMULAS, log="", under="tumbling, ", title="(a) tumbling"),
        Chart(_LENGTH, _STALE, "staleness", log="y", under="slide 1, ", title="(b) slide 1"),
    ],
)
def window_semantics(found: Results) -> list[Claim]:
    """002 Fig. 13: staleness of windows: EAGER, LAZY, random and all."""
    whole, ready = (found.along(f"tumbling, {windows}", "staleness") for windows in (EAGER, LAZY))
    eager, lazy = (min(growth(found.along(f"slide 1, {each}", "staleness").values())) for each in (EAGER, LAZY))
    to_half = furthest(value * length / 0.5 for length, value in whole.items())
    to_length = furthest(value / (length / 2) for length, value in ready.items())

    def greatest(windows: str, other: str) -> float:
        """The greatest ratio where windows overlap."""
        ratios = found.ratios(f"slide 1, {windows}", f"slide 1, {other}", "staleness")
        return max(ratio for length, ratio in ratios.items() if length > 1)

    overlap = "slide 1, ω from 2 on"
    return [
        about("tumbling: EAGER is stale by 0.5/ω; the furthest ratio", to_half, 1.0, 0.01),
        about("tumbling: LAZY by ω/2; the furthest ratio", to_length, 1.0, 0.05),
        Claim("slide 1: EAGER grows with ω; the least growth from one length to the next", eager, low=1.1),
        Claim("slide 1: LAZY grows with ω; the least growth", lazy, low=1.1),
        Claim(f"{overlap}: EAGER is below LAZY; the greatest ratio", greatest(EAGER, LAZY), high=0.75),
        Claim(f"{overlap}: LAZY is below random windows; the greatest ratio", greatest(LAZY, RANDOM), high=1),
        Claim(f"{overlap}: random windows are below append; the greatest ratio", greatest(RANDOM, EVERY), high=1),
    ]


KEYS = 10
COUNTED = "own, counted"
"""Closed by own rows; the source of each key stamps its rows ten ticks apart, so that windows hold 2 to 20 of them."""
CLOSINGS = {COUNTED: (20, 50, 100, 200), OWN: (2, 10, 20, 50, 100, 200), BOUND: (2, 10, 20, 50, 100, 200)}
"""What closes windows, and their lengths, in ticks."""
IN_TURN = "round robin"
ZIPF = {"Zipf 0": 0.0, "Zipf 0.5": 0.5, "Zipf 0.9": 0.9}
ARRIVALS = {IN_TURN: None, **ZIPF}


def _arrivals_case(closing: str, arrivals: str, windows: str, length: int) -> WindowCase:
    theta = ARRIVALS[arrivals]
    if closing == COUNTED:
        # A rare key takes long for a window.
        return WindowCase(windows, length, KEYS, 800 + 10 * length, KEYS, theta, OWN, counted=True)
    return WindowCase(windows, length, 1, 500 + 10 * length, KEYS, theta, closing)


def eager_over_lazy(found: Results, closing: str, arrivals: str) -> dict[float, float]:
    """EAGER's application staleness over LAZY's by the length of windows."""
    return found.ratios(f"{closing}, {arrivals}, {EAGER}", f"{closing}, {arrivals}, {LAZY}", "staleness")


def _arrivals_curves(found: Results, closing: str) -> list[Curve]:
    return [Curve(each, list(eager_over_lazy(found, closing, each).items())) for each in ARRIVALS]


_CLOSED = {OWN: "closed by own rows", COUNTED: "own rows, counted", BOUND: "closed by the bound"}
_EQUAL: dict[str, Callable[[float], float]] = {"equal": lambda _: 1.0}


@figure(
    cases=lambda: {
        (f"{closing}, {arrivals}, {windows}", float(length)): _arrivals_case(closing, arrivals, windows, length)
        for closing, lengths in CLOSINGS.items()
        for length in reversed(lengths)
        for arrivals in ARRIVALS
        for windows in (EAGER, LAZY)
    },
    columns={"window_ticks": PLACE, "application_staleness_ticks": "staleness"},
    panels=[
        Chart(_LENGTH, "EAGER over LAZY staleness", partial(_arrivals_curves, closing=closing), _EQUAL, title=title)
        for closing, title in _CLOSED.items()
    ],
    curve=("closing", "arrivals", "windows"),
)
def window_arrivals(found: Results) -> list[Claim]:
    """002 Fig. 14: EAGER against LAZY windows by how keys are updated.

    A window that a key's own rows close waits for the next of them. Where all keys share a clock, the stream's bound
    can close it instead.
    """
    own, bound, counted = (
        {name: eager_over_lazy(found, closing, name) for name in ARRIVALS} for closing in (OWN, BOUND, COUNTED)
    )
    short = [own[name][length] for name in ZIPF for length in (2, 10, 20, 50)]
    all_own = [ratio for name in ZIPF for ratio in own[name].values()]
    rise, counted_rise = (max(max(growth(each[name].values())) for name in ZIPF) for each in (own, counted))
    two_rows = min(counted[name][20] for name in ZIPF)
    all_bound = [ratio for each in bound.values() for ratio in each.values()]
    in_turn, zipf_9 = counted[IN_TURN].values(), counted["Zipf 0.9"].values()
    return [
        Claim("own, Zipf: EAGER is worse up to windows of 50; the least ratio", min(short), low=1.0),
        Claim("own, Zipf: for all windows; the least ratio", min(all_own), low=1.0, reproduces=False),
        Claim("own, Zipf: the ratio falls with ω; the greatest growth", rise, high=1.0),
        Claim("own, round robin: EAGER is better at 200; the ratio", own[IN_TURN][200], high=1.0),
        Claim("own, round robin: at all; the greatest ratio", max(own[IN_TURN].values()), high=1.0, reproduces=False),
        Claim("own, counted, Zipf: EAGER is worse where a window holds two rows; the least ratio", two_rows, low=1.0),
        Claim("own, counted, Zipf 0.9: for all windows; the least ratio", min(zipf_9), low=1.0),
        Claim("own, counted, Zipf: the ratio falls with ω, or stays; the greatest growth", counted_rise, high=1.02),
        Claim("own, counted, round robin: EAGER is better; the greatest ratio", max(in_turn), high=1.0),
        Claim("bound: EAGER is better throughout; the greatest ratio", max(all_bound), high=1.0),
    ]
