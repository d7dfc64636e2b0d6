"""Memory of a join by equal times of a stream with a union, of which a sparse part arrives late (004 Fig. 12).

In order, the other part of the union waits for the late one, and so does the stream that it is joined with: two streams
for as long as the delay. Order-agnostic, only the stream that it is joined with has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.memory import Feed, MemoryCase, megabytes

BUSY, SPARSE = 4000, 10
"""Rows a second of each busy stream and of the sparse one."""
GROUPS = 65_536
DELAYS = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
SECONDS = 80.0
STEP = 0.5
IN_ORDER, AGNOSTIC = "in order", "order-agnostic"
_OPTIONS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: ""}


def settings() -> dict[Key, MemoryCase]:
    """Both plans at each delay; the longest runs first."""
    return {(name, delay): _case(name, delay) for delay in reversed(DELAYS) for name in _OPTIONS}


def _case(name: str, delay: float) -> MemoryCase:
    query = f"""CREATE QUERY q8 {_OPTIONS[name]}AS SELECT m1.src, m1.dst, m1.ts
  FROM m1, m2 UNION c AS m3 WHERE m1.ts = m3.ts AND m1.src = m3.dst AND m1.dst = m3.src;"""
    return MemoryCase(query, (Feed("m1", BUSY), Feed("m2", BUSY), Feed("c", SPARSE, delay)), SECONDS, STEP, GROUPS)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The memory by delay."""
    picture = chart(
        "Most memory of a join by equal times, with a late stream on one side",
        "seconds that the sparse stream is late",
        "megabytes",
        curves(found, megabytes),
        log_x=False,
        log_y=False,
    )
    rows = table(found, "delay_seconds", results=lambda each: each.results, megabytes=megabytes)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_order, agnostic = along(found, IN_ORDER, megabytes), along(found, AGNOSTIC, megabytes)
    results = {outcome.results for outcome in found.values()}
    return [
        Claim("every run has the same number of results; the different numbers", len(results), 1, 1),
        Claim("in order grows with the delay; 60 s over none", in_order[60.0] / in_order[0.0], low=3),
        Claim(
            "order-agnostic grows about half as fast; its slope over that in order",
            slope(agnostic) / slope(in_order),
            0.4,
            0.6,
        ),
        Claim("order-agnostic needs less at every delay; the greatest ratio", _greatest(agnostic, in_order), high=1.0),
    ]


def slope(curve: Mapping[float, float]) -> float:
    """By how much a curve grows a second, by least squares.

    >>> round(slope({0.0: 1.0, 1.0: 3.0, 2.0: 5.0}), 6)
    2.0
    """
    return float(np.polyfit(list(curve), list(curve.values()), 1)[0])


def _greatest(curve: Mapping[float, float], other: Mapping[float, float]) -> float:
    return max(value / other[place] for place, value in curve.items())


FIGURE = Figure(
    "oop-late-join", "004 Fig. 12", "memory of a join by equal times with late rows on one side", settings, findings
)
