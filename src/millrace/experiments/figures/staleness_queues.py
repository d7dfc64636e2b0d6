"""Append queues against update queues, by load (002 Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import along, chart, curves, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.staleness_app_queue import KEYS, TICKS
from millrace.experiments.figures.update_queues import APPEND, FIFO, IN_PLACE, SHED, QueueCase, Ticks, application

LOADS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
APPEND_TICKS = 1_000
"""An append queue falls behind for as long as it runs, and has all of that to work off in the end."""
TWICE = "append, twice as long"
TURNS = "update FIFO, in turn"
HEADROOM = 0.95
"""The share of the time that shedding leaves to be used."""


def settings() -> dict[Key, QueueCase]:
    """Every queue at each load, for both numbers of keys."""
    found: dict[Key, QueueCase] = {}
    for load in LOADS:
        for name, keys in KEYS.items():
            long, short = Ticks(keys, TICKS), Ticks(keys, APPEND_TICKS)
            found[_name(IN_PLACE, name), load] = QueueCase(long, IN_PLACE, load)
            found[_name(FIFO, name), load] = QueueCase(long, FIFO, load)
            found[_name(SHED, name), load] = QueueCase(long, SHED, load, keep=min(1.0, HEADROOM / load))
            found[_name(APPEND, name), load] = QueueCase(short, APPEND, load)
    turned = {(TURNS, load): QueueCase(Ticks(10, TICKS, in_turn=True), FIFO, load) for load in LOADS}
    return found | turned | {(TWICE, 10.0): QueueCase(Ticks(10, 2 * APPEND_TICKS), APPEND, 10.0)}


def _name(queue: str, keys: str) -> str:
    return f"{queue}, {keys}"


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The staleness of the application by queue and load."""
    picture = chart(
        "Mean staleness of the application by load, an update every tick",
        "load: ticks that an update takes",
        "mean staleness, ticks",
        [curve for curve in curves(found, application) if curve.name not in (TWICE, TURNS)],
        log_x=False,
    )
    rows = table(found, "load", results=lambda each: each.results, application_staleness=application)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    one = {queue: along(found, _name(queue, "1 key"), application) for queue in (APPEND, SHED, FIFO, IN_PLACE)}
    ten = {queue: along(found, _name(queue, "10 keys"), application) for queue in (APPEND, SHED, FIFO, IN_PLACE)}
    heavy = [load for load in LOADS if load > 1]
    same = furthest(one[FIFO][load] / one[IN_PLACE][load] for load in heavy)
    return [
        about("10 keys, load 10: IN-PLACE about 50 ticks", ten[IN_PLACE][10.0], 50.0, 0.1),
        about("10 keys, load 10: update FIFO about 78 ticks", ten[FIFO][10.0], 78.0, 0.1),
        Claim("1 key: both update queues are alike; the furthest ratio", same, 1.0, 1.0),
        Claim("10 keys: FIFO is staler than IN-PLACE; the least ratio", _least(ten, FIFO, IN_PLACE, heavy), low=1.1),
        Claim("10 keys: shedding is staler than FIFO; the least ratio", _least(ten, SHED, FIFO, heavy), low=1.1),
        Claim("1 key: shedding is staler than IN-PLACE; the least ratio", _least(one, SHED, IN_PLACE, heavy), low=1.1),
        about(
            "append grows with the run: twice as long is twice as stale, at load 10",
            found[TWICE, 10.0].staleness / ten[APPEND][10.0],
            2.0,
            0.1,
        ),
    ]


def _least(found: Mapping[str, Mapping[float, float]], queue: str, other: str, loads: list[float]) -> float:
    return min(found[queue][load] / found[other][load] for load in loads)


FIGURE = Figure("staleness-queues", "002 Fig. 7", "append and update queues by load", settings, findings)
