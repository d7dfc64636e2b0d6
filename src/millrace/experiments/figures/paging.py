"""The locations that an update queue keeps, taken on demand or once for each key (002 Figs. 16 and 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.key_arrivals import feed, keys_of
from millrace.hosts.virtual.host import Costs, VirtualRun
from millrace.language import parse_network

KEYS, PAGE = 100, 16
THETAS = (0.0, 0.3, 0.6, 0.9)
RATES = (20, 50, 100, 200, 500, 1000)
"""Rows a second."""
SERVED = 10
"""Rows a second."""
RESULTS = 1000
PAGED, NAIVE = "paged", "naive"
_SECOND = 1_000_000
_LOOK = 37_000
"""Microseconds from look to look: no multiple of what a row takes, so that they come at any stage of its work."""


@dataclass(frozen=True)
class PagingCase:
    """Rows of keys by Zipf's law, so many a second, for as long as so many results take."""

    memory: str
    theta: float
    rate: int
    results: int = RESULTS
    seed: int = 1

    @property
    def text(self) -> str:
        """A map over an update stream."""
        naive = ", baseline = 'naive_memory'" if self.memory == NAIVE else ""
        return f"""CREATE STREAM s (k BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable REPLAY BY ts;
CREATE QUERY mapped WITH (queue = 'inplace', page = {PAGE}{naive}) AS
  SELECT k, k + 1 AS n, ts FROM s;"""

    def run(self) -> VirtualRun:
        """The run, finished."""
        rows = self.rate * self.results // SERVED
        run = VirtualRun(
            parse_network(self.text),
            feeds={"s": feed(keys_of(KEYS, rows, self.theta, self.seed), ts=np.arange(rows) / self.rate)},
            cost=Costs(of={"project": _SECOND // SERVED}),
            rows_per_step=1,
            sample_every=_LOOK,
        )
        run.run()
        return run

    def outcome(self) -> Outcome:
        """The locations while input came, on average over time."""
        watched = self.run().samples("mapped")
        metrics = watched.metrics
        assert metrics is not None
        return Outcome(results=metrics.let_go, allocated=watched.mean_allocated, used=watched.mean_used)


def settings() -> dict[Key, PagingCase]:
    """Both managers for each distribution and rate; the longest runs first."""
    return {
        (_name(memory, theta), float(rate)): PagingCase(memory, theta, rate)
        for rate in RATES[::-1]
        for theta in THETAS
        for memory in (PAGED, NAIVE)
    }


def _name(memory: str, theta: float) -> str:
    return f"{memory}, θ {theta:g}"


def usage(outcome: Outcome) -> float:
    """The locations that are kept."""
    return outcome.allocated


def effective(outcome: Outcome) -> float:
    """The share of them that holds a row."""
    return outcome.used / outcome.allocated


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The locations kept, and the share of them in use, by rate."""
    picture = chart(
        "Share of an update queue's locations that is in use, 100 keys, 10 rows a second served",
        "rows a second",
        "effective usage",
        curves(found, effective),
        log_y=False,
    )
    rows = table(
        found,
        "rows_a_second",
        results=lambda each: each.results,
        average_usage=usage,
        effective_usage=effective,
    )
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    paged = [value for theta in THETAS for value in along(found, _name(PAGED, theta), effective).values()]
    naive = {theta: along(found, _name(NAIVE, theta), effective) for theta in THETAS}
    skewed = [naive[more][rate] / naive[less][rate] for less, more in pairwise(THETAS) for rate in RATES]
    loaded = [naive[theta][more] / naive[theta][less] for less, more in pairwise(RATES) for theta in THETAS]
    below = [
        along(found, _name(PAGED, theta), usage)[rate] / along(found, _name(NAIVE, theta), usage)[rate]
        for theta in THETAS
        for rate in RATES
    ]
    low, high = naive[THETAS[-1]], naive[THETAS[0]]
    return [
        Claim("paged: every location kept is in use; the least share", min(paged), 1, 1, "%"),
        Claim("naive: the share in use falls with θ; the greatest ratio to the θ before", max(skewed), high=1.0),
        Claim("naive, 20 a second: the share at θ 0.9 over that at θ 0", low[RATES[0]] / high[RATES[0]], high=0.6),
        Claim("naive: it rises with the load; the least ratio to the rate before", min(loaded), low=1.0),
        Claim("paged keeps fewer locations than naive; the greatest ratio", max(below), high=1.0),
        Claim("20 a second, θ 0.9: the locations of paged over those of naive", below[-len(RATES)], high=0.5),
    ]


FIGURE = Figure("paging", "002 Figs. 16, 17", "memory of an update queue, paged and naive", settings, findings)
