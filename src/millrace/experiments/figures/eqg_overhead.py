"""What it costs to carry ETS from operator to operator, rather than by the arcs of the enhanced graph (001 Fig. 15).

A punctuation costs an operator as much as an ETS costs the end of an arc, so that what differs is the operators that
arcs skip. Their number is varied below the aggregate; the way of the third stream's rows stays as it is. Timestamps are
the rows' own, so that answers can be compared; a stream may be spoken for up to the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, latency, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome, Setting
from millrace.experiments.figures.networks import Source, slide_and_union
from millrace.hosts.virtual.host import Costs

RATES = {"a": 50.0, "b": 50.0, "c": 50.0}
"""Rows a second."""
SLIDE = 0.5
SECONDS = 30.0
SELECTIONS = (1, 2, 4, 8)
COSTS = Costs(row=50, punctuation=10, ets=10)
ENABLED = "TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL INTERVAL 1 MICROSECOND"
SILENT = "TIMESTAMP BY ts ORDERED ETS NONE"
ARCS, STEPS, NONE = "by ETS arcs", "operator by operator", "no ETS"


def settings(seconds: float = SECONDS) -> dict[Key, Setting]:
    """Both ways and none, with 1 to 8 selections over each of the two streams below the aggregate."""
    ways = {ARCS: (ENABLED, True), STEPS: (ENABLED, False), NONE: (SILENT, True)}
    return {
        (way, float(selections)): Setting(_text(time, selections, seconds), seconds, COSTS, ets_arcs=arcs, watched=True)
        for selections in sorted(SELECTIONS, reverse=True)
        for way, (time, arcs) in ways.items()
    }


def _text(time: str, selections: int, seconds: float) -> str:
    sources = [Source(name, rate, time) for name, rate in RATES.items()]
    return slide_and_union(sources, seconds, slide=SLIDE, below=selections)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The mean latencies, and whether the answers are the same."""
    picture = chart(
        "Mean latency by how ETS travel",
        "selections over each stream below the aggregate",
        "mean latency, seconds",
        curves(found, latency),
    )
    rows = table(found, "selections", results=lambda each: each.results, mean_latency_seconds=latency)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    arcs, steps, none = (along(found, way, latency) for way in (ARCS, STEPS, NONE))
    ratios = [steps[number] / arcs[number] for number in steps]
    growth = min(later / earlier for earlier, later in pairwise(ratios))
    differing = max(len({found[way, number].answers for way in (ARCS, STEPS, NONE)}) for number in steps)
    return [
        Claim("the answers are the same; different ones for a query", differing, 1, 1),
        Claim("both resolve idle-waiting; no ETS over the slower", min(none[n] / steps[n] for n in steps), low=10),
        Claim("two selections: steps over arcs (paper: 1.14)", steps[2.0] / arcs[2.0], low=1.05),
        Claim("the ratio grows with every doubling of the selections; its least growth", growth, low=1.0),
    ]


FIGURE = Figure("eqg-overhead", "001 Fig. 15", "ETS by arcs and operator by operator", settings, findings)
