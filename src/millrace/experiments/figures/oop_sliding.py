"""Memory of a sliding count over two busy streams and a sparse one that arrives late (004 Fig. 13).

Beside the two plans stands one with operator slack (004 section 2, option 2): it takes the rows themselves for
progress, and does not wait for the sparse stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.memory import Feed, MemoryCase, megabytes

BUSY, SPARSE = 4000, 10
"""Rows a second of each busy stream and of the sparse one."""
DELAYS = (0.0, 60.0, 120.0, 180.0, 240.0, 300.0)
SECONDS = 420.0
STEP = 2.0
SLACK = 150
IN_ORDER, AGNOSTIC, SLACKED = "in order", "order-agnostic", f"slack of {SLACK} s"
_OPTIONS = {IN_ORDER: "WITH (baseline = 'in_order') ", AGNOSTIC: "", SLACKED: f"WITH (slack = '{SLACK} s') "}


def settings() -> dict[Key, MemoryCase]:
    """All plans at each delay; the longest runs first."""
    return {(name, delay): _case(name, delay) for delay in reversed(DELAYS) for name in _OPTIONS}


def _case(name: str, delay: float) -> MemoryCase:
    query = f"""CREATE QUERY q9 {_OPTIONS[name]}AS
  SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts] FROM m1 UNION m2 UNION c;"""
    return MemoryCase(query, (Feed("m1", BUSY), Feed("m2", BUSY), Feed("c", SPARSE, delay)), SECONDS, STEP)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The memory by delay, and what the slack has turned away."""
    picture = chart(
        "Most memory of a sliding count, 5 min by 1 min",
        "seconds that the sparse stream is late",
        "megabytes",
        curves(found, megabytes),
        log_x=False,
        log_y=False,
    )
    rows = table(
        found,
        "delay_seconds",
        results=lambda each: each.results,
        megabytes=megabytes,
        turned_away=lambda each: each.turned_away,
    )
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_order, agnostic = along(found, IN_ORDER, megabytes), along(found, AGNOSTIC, megabytes)
    refused = along(found, SLACKED, lambda each: each.turned_away / (SPARSE * SECONDS))
    most = DELAYS[-1]
    return [
        Claim("in order grows with the delay; 5 min over none", in_order[most] / in_order[0.0], low=3),
        Claim(
            "order-agnostic is flat; its most over its least", max(agnostic.values()) / min(agnostic.values()), 1, 1.1
        ),
        Claim("order-agnostic at 5 min; its share of in order", agnostic[most] / in_order[most], high=0.3, unit="%"),
        Claim("a slack that is long enough turns nothing away; at 2 min", refused[120.0], 0, 0, "%"),
        Claim(
            "one that is too short loses what comes while the others go on; at 3 min", refused[180.0], low=0.5, unit="%"
        ),
    ]


FIGURE = Figure("oop-sliding", "004 Fig. 13", "memory of a sliding count with a late stream", settings, findings)
