"""Memory of a count over the union of two streams, one of which arrives late (004 Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.memory import Feed, MemoryCase, megabytes

RATE = 110_000
"""Rows a second of each stream."""
GROUPS = 65_536
SKEWS = (1.0, 10.0, 20.0, 30.0, 40.0)
SECONDS = 50.0
STEP = 0.5
IN_ORDER, AGNOSTIC = "in order", "order-agnostic"
_OPTIONS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: ""}


def settings() -> dict[Key, MemoryCase]:
    """Both plans at each skew; the longest runs first."""
    return {(name, skew): _case(name, skew) for skew in reversed(SKEWS) for name in _OPTIONS}


def _case(name: str, skew: float) -> MemoryCase:
    query = f"""CREATE QUERY q5 {_OPTIONS[name]}AS SELECT src, dst, count(*) AS n
  FROM (SELECT * FROM m1 UNION SELECT * FROM m2) [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY src, dst;"""
    return MemoryCase(query, (Feed("m1", RATE), Feed("m2", RATE, skew)), SECONDS, STEP, GROUPS)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The memory by skew."""
    picture = chart(
        "Most memory of a count over two streams, one of them late",
        "seconds that it is late",
        "megabytes",
        curves(found, megabytes),
        log_x=False,
        log_y=False,
    )
    rows = table(found, "skew_seconds", results=lambda each: each.results, megabytes=megabytes)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_order, agnostic = along(found, IN_ORDER, megabytes), along(found, AGNOSTIC, megabytes)
    results = {outcome.results for outcome in found.values()}
    least, most = SKEWS[0], SKEWS[-1]
    return [
        Claim("every run has the same number of results; the different numbers", len(results), 1, 1),
        Claim("in order grows with the skew; 40 s over 1 s", in_order[most] / in_order[least], low=3),
        Claim("order-agnostic starts lower; its share at 1 s", agnostic[least] / in_order[least], high=0.95, unit="%"),
        Claim("order-agnostic needs at most 30 % at 40 s", agnostic[most] / in_order[most], high=0.30, unit="%"),
    ]


FIGURE = Figure("oop-skew", "004 Fig. 1", "memory of a count over two streams, one of them late", settings, findings)
