"""How bursty the output of a slide aggregate is, without ETS and with ETS on demand (001 Fig. 16)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome, Setting
from millrace.experiments.figures.networks import NONE, ON_DEMAND, Source, slide_and_union
from millrace.hosts.virtual.host import Costs

RATE = 500.0
"""Rows a second of each of the three sources."""
SLIDES = (0.02, 0.1, 0.2, 0.5, 1.0, 2.0)
BIN = 20_000
"""Microseconds in which outputs are counted."""
SETTLED = 6.0
"""Seconds that are looked at; a slide before and after them is left out, because streams begin and end there."""
COSTS = Costs(row=10, punctuation=10, ets=10)
WITHOUT, WITH = "no ETS", "on demand"


def settings() -> dict[Key, Setting]:
    """Each slide without and with ETS; the longest runs first."""
    return {
        (name, slide): _setting(time, slide)
        for slide in sorted(SLIDES, reverse=True)
        for name, time in ((WITHOUT, NONE), (WITH, ON_DEMAND))
    }


def _setting(time: str, slide: float) -> Setting:
    seconds = SETTLED + 2 * slide
    text = slide_and_union([Source(name, RATE, time) for name in "abc"], seconds, slide=slide)
    return Setting(text, seconds, COSTS, watched=True)


def burstiness(outcome: Outcome) -> float:
    """The most outputs in a bin less the fewest, over the mean, in the middle of the run."""
    middle = (int(outcome.moments[0]) + int(outcome.moments[-1])) // 2
    bins = round(SETTLED * 1e6 / BIN)
    numbers = (outcome.moments - middle) // BIN + bins // 2
    inside = (numbers >= 0) & (numbers < bins)
    counts = np.bincount(numbers[inside], outcome.counts[inside], minlength=bins)
    return float((counts.max() - counts.min()) / counts.mean())


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The burstiness by slide."""
    formula = Curve("slide / 0.02 s", [(slide, slide * 1e6 / BIN) for slide in SLIDES], dashed=True)
    picture = chart(
        "Burstiness of the output: (most - fewest) / mean per 0.02 s",
        "slide, seconds",
        "burstiness",
        [*curves(found, burstiness), formula],
    )
    return Findings(table(found, "slide_seconds", burstiness=burstiness), _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    without, enabled = along(found, WITHOUT, burstiness), along(found, WITH, burstiness)
    # Below half a second the spread of Poisson arrivals adds as much as the slide.
    ratios = [value / (slide * 1e6 / BIN) for slide, value in without.items() if slide >= 0.5]
    return [
        about("without ETS slide/0.02 s, from slides of 0.5 s on; the furthest ratio", furthest(ratios), 1.0, 0.15),
        Claim("with ETS about 2; the least", min(enabled.values()), low=1.0),
        Claim("with ETS about 2; the greatest", max(enabled.values()), high=3.0),
    ]


FIGURE = Figure("slide-burstiness", "001 Fig. 16", "burstiness of a slide aggregate's output", settings, findings)
