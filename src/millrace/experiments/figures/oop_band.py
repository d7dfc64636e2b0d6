"""Memory, latency and execution time of a count over a band join of two streams that keep step (004 Fig. 11).

Both streams are in order, but what a band join makes of them is not. In order it must be sorted by the time of one
side before it is counted; order-agnostic it is counted as it comes. Latency runs from the arrival of the rows that
complete a minute to its count, in units of work; execution time is the processor's, as a ratio of the two plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Value, along, chart, curves, latency, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.memory import Feed, MemoryCase, megabytes
from millrace.hosts.virtual.host import Costs

RATE = 2000
"""Rows a second of each stream; the paper has about 4,000."""
GROUPS = 65_536
BANDS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds that a row may be before or after its partner."""
SECONDS = 182.0
STEP = 1.0
COSTS = Costs(row=1, punctuation=1)
"""Microseconds."""
IN_ORDER, AGNOSTIC = "in order", "order-agnostic"
_OPTIONS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: ""}


def settings() -> dict[Key, MemoryCase]:
    """Both plans at each band; the longest runs first."""
    return {(name, band): _case(name, band) for band in reversed(BANDS) for name in _OPTIONS}


def _case(name: str, band: float) -> MemoryCase:
    query = f"""CREATE QUERY q7 {_OPTIONS[name]}AS
  SELECT count(*) [RANGE 1 min, SLIDE 1 min, WA m1.ts] FROM m1, m2
  WHERE m1.ts >= m2.ts - INTERVAL {band:.0f} SECONDS AND m1.ts <= m2.ts + INTERVAL {band:.0f} SECONDS
    AND m1.src = m2.dst AND m1.dst = m2.src;"""
    return MemoryCase(query, (Feed("m1", RATE), Feed("m2", RATE)), SECONDS, STEP, GROUPS, COSTS)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The memory by band."""
    picture = chart(
        "Most memory of a count over a band join",
        "seconds of the band",
        "megabytes",
        curves(found, megabytes),
        log_x=False,
        log_y=False,
    )
    rows = table(
        found,
        "band_seconds",
        results=lambda each: each.results,
        megabytes=megabytes,
        latency=latency,
        processor_seconds=processor_seconds,
    )
    return Findings(rows, _claims(found), picture)


def processor_seconds(outcome: Outcome) -> float:
    """What the processor worked; only to be compared within a run."""
    return outcome.seconds


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_order, agnostic = along(found, IN_ORDER, megabytes), along(found, AGNOSTIC, megabytes)
    gaps = [in_order[band] - agnostic[band] for band in BANDS]
    return [
        Claim("the memory of order-agnostic is lower; the greatest ratio", _greatest(found, megabytes), high=1.0),
        Claim(
            "the gap grows with the band; the least growth from one to the next, in megabytes",
            min(after - before for before, after in pairwise(gaps)),
            low=0.05,
        ),
        Claim("order-agnostic counts sooner; the greatest ratio of latencies", _greatest(found, latency), high=0.9),
        Claim(
            "order-agnostic is less work; its processor time over that in order, all bands",
            sum(along(found, AGNOSTIC, processor_seconds).values())
            / sum(along(found, IN_ORDER, processor_seconds).values()),
            high=1.0,
        ),
    ]


def _greatest(found: Mapping[Key, Outcome], value: Value) -> float:
    in_order, agnostic = along(found, IN_ORDER, value), along(found, AGNOSTIC, value)
    return max(agnostic[band] / in_order[band] for band in BANDS)


FIGURE = Figure("oop-band", "004 Fig. 11", "memory, latency and work of a count over a band join", settings, findings)
