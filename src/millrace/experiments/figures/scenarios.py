"""The four scenarios of 000 section 6: the same two streams, whose time is told in four ways.

A row of the busy stream leaves the union when the sparse one is known to have come as far. A: only its rows tell;
B: periodic ETS too; C: ETS on demand; D: timestamps are latent and nothing waits. It takes an hour of input where only
the sparse stream's rows tell. Elsewhere every row meets the same, and less is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from millrace.experiments.figures.experiment import Key, Setting
from millrace.experiments.figures.networks import LATENT, NONE, ON_DEMAND, Source, every, selected_union
from millrace.hosts.virtual.host import Costs

BUSY, SPARSE = 50.0, 0.05
"""Rows a second."""
PASSING = 0.95
HOUR, SHORT = 3600.0, 600.0
"""Seconds of input."""
COSTS = Costs(row=50, punctuation=50, ets=10)
RATES = (0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
"""Periodic ETS a second."""
A, B, C, D = "A, no ETS", "B, periodic", "C, on demand", "D, latent"


def setting(busy: str, sparse: str, seconds: float) -> Setting:
    """The streams with these time contracts for so long."""
    text = selected_union(Source("busy", BUSY, busy), Source("sparse", SPARSE, sparse), seconds, passing=PASSING)
    return Setting(text, seconds, COSTS)


def heartbeats(rate: float) -> Setting:
    """Scenario B with so many ETS a second: at least 100 of them, and no less than a minute.

    >>> heartbeats(0.1).seconds, heartbeats(500).seconds
    (1000.0, 60.0)
    """
    return setting(NONE, every(rate), max(100 / rate, 60.0 if rate >= 100 else 300.0))


def scenarios(rates: Sequence[float] = RATES) -> dict[Key, Setting]:
    """All four scenarios, B at each rate; the longest runs first."""
    return {
        (A, None): setting(NONE, NONE, HOUR),
        (C, None): setting(ON_DEMAND, ON_DEMAND, SHORT),
        (D, None): setting(LATENT, LATENT, SHORT),
        **{(B, rate): heartbeats(rate) for rate in rates},
    }
