"""Memory of a join by windows of 10 s over two unions, each of a stream on time and a late one (004 Fig. 10).

Both plans keep the same rows: in order they wait in front of the join for the late streams, order-agnostic in it. So
this one shows what keeping rows in a join costs over keeping them in a buffer.
"""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.memory import Feed, MemoryCase, megabytes

RATE = 2500
"""Rows a second of each stream; the paper has 10,000."""
GROUPS = 4096 * 4096
"""Pairs of addresses, for the paper's pairs of addresses and ports: few rows find a partner."""
SKEWS = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0)
SECONDS = 60.0
STEP = 0.5
IN_ORDER, AGNOSTIC = "in order", "order-agnostic"
_OPTIONS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: ""}


def settings() -> dict[Key, MemoryCase]:
    """Both plans at each skew; the longest runs first."""
    return {(name, skew): _case(name, skew) for skew in reversed(SKEWS) for name in _OPTIONS}


def _case(name: str, skew: float) -> MemoryCase:
    query = f"""CREATE QUERY q6 {_OPTIONS[name]}AS SELECT m1.src, m1.dst, m1.ts
  FROM a UNION b AS m1, c UNION d AS m2
  WHERE unix_seconds(m1.ts) div 10 = unix_seconds(m2.ts) div 10 AND m1.src = m2.dst AND m1.dst = m2.src;"""
    feeds = (Feed("a", RATE), Feed("b", RATE, skew), Feed("c", RATE), Feed("d", RATE, skew))
    return MemoryCase(query, feeds, SECONDS, STEP, GROUPS)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The memory by skew."""
    picture = chart(
        "Most memory of a join of two unions by windows of 10 s, one stream of each late",
        "seconds that they are late",
        "megabytes",
        curves(found, megabytes),
        log_x=False,
        log_y=False,
    )
    rows = table(found, "skew_seconds", results=lambda each: each.results, megabytes=megabytes)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_order, agnostic = along(found, IN_ORDER, megabytes), along(found, AGNOSTIC, megabytes)
    ratios = {skew: agnostic[skew] / in_order[skew] for skew in SKEWS}
    results = {outcome.results for outcome in found.values()}
    return [
        Claim("every run has the same number of results; the different numbers", len(results), 1, 1),
        Claim(
            "below 20 s order-agnostic needs no more than in order; the greatest ratio",
            max(ratio for skew, ratio in ratios.items() if skew < 20),
            high=1.1,
        ),
        Claim("nor does it at the extreme, within the paper's 20 %; the ratio at 40 s", ratios[SKEWS[-1]], high=1.2),
        Claim("both grow with the skew; order-agnostic, 40 s over 20 s", agnostic[40.0] / agnostic[20.0], low=1.3),
    ]


FIGURE = Figure("oop-tumbling-join", "004 Fig. 10", "memory of a join of unions with late streams", settings, findings)
