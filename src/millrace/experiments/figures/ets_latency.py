"""How long a row waits in a union with a sparse stream, by how the sparse stream's time is told (000 Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import along, chart, curves, latency, level, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.scenarios import COSTS, HOUR, SPARSE, A, B, C, D, scenarios


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The mean latencies of the four scenarios."""
    picture = chart(
        "Mean latency of a union of 50 and 0.05 rows a second",
        "periodic ETS a second",
        "mean latency, seconds",
        curves(found, latency),
    )
    rows = table(found, "ets_per_second", results=lambda each: each.results, mean_latency_seconds=latency)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    none, on_demand, latent = (level(found, name, latency) for name in (A, C, D))
    # The mean residual of n exponential gaps has a relative standard error of sqrt(2 / n).
    error = round(2 * sqrt(2 / (SPARSE * HOUR)), 2)
    heartbeats = along(found, B, latency)
    ratios = [seconds / (1 / (2 * rate) + latent) for rate, seconds in heartbeats.items()]
    return [
        about("A waits for the next sparse row, 1/0.05 s (two standard errors of 180 rows)", none, 20.0, error, "s"),
        about("B waits 1/(2 rate), beside the work; the furthest ratio to that", furthest(ratios), 1.0, 0.2),
        Claim("B never reaches C; its best over C", min(heartbeats.values()) / on_demand, low=1.1),
        about("C is an ETS slower than D; the difference", on_demand - latent, COSTS.ets / 1e6, 0.5, "s"),
        Claim("that difference is four orders below A; its share of A", (on_demand - latent) / none, high=1e-4),
    ]


FIGURE = Figure(
    "ets-latency", "000 Fig. 7", "latency of a union without ETS, with periodic and on-demand ETS", scenarios, findings
)
