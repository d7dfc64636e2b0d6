"""The share of the time in which the union of a busy and a sparse stream idle-waits (000 section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from math import expm1

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Curve, along, chart, curves, level, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome, Setting
from millrace.experiments.figures.scenarios import BUSY, PASSING, RATES, A, B, C, D, scenarios


def settings() -> dict[Key, Setting]:
    """Scenarios A to C; nothing waits in D."""
    found = scenarios((*RATES, 150.0))
    del found[D, None]
    return found


def idle(outcome: Outcome) -> float:
    """The share of the time in which rows waited in the union."""
    return outcome.idle


def waiting(rate: float) -> float:
    """The expected share with so many ETS a second: from the first row after an ETS to the next ETS.

    >>> round(waiting(100), 2), round(waiting(150), 2)
    (0.2, 0.14)
    """
    rows = BUSY * PASSING / rate
    return 1 + expm1(-rows) / rows


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The shares, and the formula beside them."""
    formula = Curve("B by formula", [(rate, waiting(rate)) for rate in along(found, B, idle)], dashed=True)
    picture = chart(
        "Share of the time in which the union idle-waits",
        "periodic ETS a second",
        "share of the time",
        [*curves(found, idle), formula],
    )
    return Findings(table(found, "ets_per_second", idle_share=idle), _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    shares = along(found, B, idle)
    return [
        Claim("A waits nearly always (paper: 99 %)", level(found, A, idle), low=0.99, unit="%"),
        Claim(
            "B waits 1 - (1 - exp(-x))/x, x = 47.5/rate; the greatest difference to that",
            max(abs(share - waiting(rate)) for rate, share in shares.items()),
            high=0.02,
            unit="%",
        ),
        Claim("B at 150 ETS a second (paper: about 15 % from 100 on)", shares[150.0], 0.12, 0.18, "%"),
        Claim("C hardly ever waits (paper: below 0.1 %)", level(found, C, idle), high=0.001, unit="%"),
    ]


FIGURE = Figure("ets-idle", "000 section 6", "share of the time in which a union idle-waits", settings, findings)
