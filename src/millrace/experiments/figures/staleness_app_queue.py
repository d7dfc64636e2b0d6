"""The staleness of the application and that of the queue, by load (002 Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Curve, along, chart, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_queues import IN_PLACE, QueueCase, Ticks, application, in_queue

LOADS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0)
"""Ticks that an update takes, of which there is one every tick."""
TICKS = 5_000
KEYS = {"1 key": 1, "10 keys": 10}


def settings() -> dict[Key, QueueCase]:
    """Every load, for both numbers of keys."""
    return {(name, load): case(keys, IN_PLACE, load) for load in LOADS for name, keys in KEYS.items()}


def case(keys: int, queue: str, load: float, ticks: int = TICKS) -> QueueCase:
    """Keys at random at a load."""
    return QueueCase(Ticks(keys, ticks), queue, load)


def expected(load: float) -> float:
    """The queue staleness of one key at a whole load: what comes right after a row was let go waits for the rest.

    >>> expected(10)
    4.05
    """
    return (load - 1) ** 2 / (2 * load) if load > 1 else 0.0


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """Both kinds of staleness, and what one key should have."""
    lines = [
        Curve(f"{name}, {kind}", list(along(found, name, value).items()))
        for name in KEYS
        for kind, value in (("application", application), ("queue", in_queue))
    ]
    picture = chart(
        "Mean staleness by load, an update every tick, IN-PLACE",
        "load: ticks that an update takes",
        "mean staleness, ticks",
        [*lines, Curve("(L-1)²/2L", [(load, expected(load)) for load in LOADS], dashed=True)],
        log_x=False,
        log_y=False,
    )
    rows = table(
        found, "load", results=lambda each: each.results, application_staleness=application, queue_staleness=in_queue
    )
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    one, ten = (along(found, name, in_queue) for name in KEYS)
    apart = {name: along(found, name, difference) for name in KEYS}
    overloaded = [load for load in LOADS if load > 1]
    most = LOADS[-1]
    return [
        about(
            "1 key: the queue's is (L-1)²/2L; the furthest ratio to that",
            furthest(one[load] / expected(load) for load in overloaded),
            1.0,
            0.02,
        ),
        about(
            "10 keys: the queue's is about ten times that; the furthest ratio",
            furthest(ten[load] / one[load] for load in overloaded),
            10.0,
            0.1,
        ),
        about(f"1 key: at a load of {most:g} the two differ by the load", apart["1 key"][most], most, 0.1),
        about(f"10 keys: likewise at {most:g}", apart["10 keys"][most], most, 0.1),
        *(
            about(
                f"{name}: the difference is linear, one tick for each of load; from 5 on",
                (apart[name][most] - apart[name][5.0]) / (most - 5),
                1.0,
                0.1,
            )
            for name in KEYS
        ),
        Claim("up to a load of 1 nothing waits; the greatest queue staleness", max(ten[1.0], one[1.0]), high=0.0),
    ]


def difference(outcome: Outcome) -> float:
    """By how much the application is staler than the queue."""
    return outcome.staleness - outcome.queue_staleness


FIGURE = Figure("staleness-app-queue", "002 Fig. 5", "staleness of application and queue by load", settings, findings)
