"""The greatest number of elements in the graph at a time, with punctuation queued and merged (000 Fig. 8).

The rise of periodic ETS shows where punctuation keeps the processor busy: the union and its selection take 100
microseconds for one, so that 9900 a second are 99 % of it, and what comes while rows are worked on has to queue. Runs
at such rates are shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, level, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome, Setting
from millrace.experiments.figures.networks import NONE, every
from millrace.experiments.figures.scenarios import RATES, A, B, C, D, scenarios, setting

HIGH_RATES = (1000.0, 5000.0, 9900.0)
SECONDS = 10.0
"""Of input at a high rate."""
MERGED = "B, merged"


def settings() -> dict[Key, Setting]:
    """Scenarios A to C with every punctuation queued; beside B, at the high rates, punctuation is merged."""
    found = scenarios() | {(B, rate): setting(NONE, every(rate), SECONDS) for rate in HIGH_RATES}
    del found[D, None]
    merged = {(MERGED, rate): each for (name, rate), each in found.items() if name == B and rate in HIGH_RATES}
    # Where no punctuation is sent by itself there is nothing to merge.
    for rate in (*RATES, *HIGH_RATES):
        found[B, rate] = replace(found[B, rate], merge_punctuation=False)
    return found | merged


def peak(outcome: Outcome) -> float:
    """Elements in buffers and operators at the worst moment."""
    return float(outcome.peak)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The peaks."""
    picture = chart(
        "Greatest number of elements in the graph",
        "periodic ETS a second",
        "elements",
        curves(found, peak),
    )
    return Findings(table(found, "ets_per_second", peak_elements=peak), _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    none, on_demand = level(found, A, peak), level(found, C, peak)
    queued, merged = along(found, B, peak), along(found, MERGED, peak)
    least, fastest = min(queued.values()), max(queued)
    return [
        Claim("A holds thousands", none, low=1000),
        Claim("C holds about 2", on_demand, 1, 5),
        Claim("C is two orders below A; A over C", none / on_demand, low=100),
        Claim("B falls with the rate; its first over its least", queued[min(queued)] / least, low=10),
        Claim("B, queued, rises again at high rates; its last over its least", queued[fastest] / least, low=2),
        Claim("B, merged, does not; its last over its least", merged[fastest] / min(merged.values()), high=1.5),
    ]


FIGURE = Figure("ets-memory", "000 Fig. 8", "peak memory of a union, punctuation queued and merged", settings, findings)
