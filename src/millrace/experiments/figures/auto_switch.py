"""A queue that appends while it keeps up, and updates under load (beyond 002).

The load rises and falls four times; rows come at random in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Curve, chart
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_queues import APPEND, IN_PLACE, QUEUES, SECOND, Updates, costs, seen, text
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network

AUTO = "auto"
PHASES = (0.5, 3.0, 0.5, 3.0, 0.5)
"""The load of each phase."""
SECONDS = 600.0
"""How long a phase is."""
KEYS = 10
SERVED = 10
"""Rows a second."""


@dataclass(frozen=True)
class Phases:
    """Poisson arrivals by phases, and a queue; `parts` is the share of each phase's rows that were answered."""

    queue: str
    seconds: float = SECONDS

    def outcome(self) -> Outcome:
        """The staleness, the switches and the answers."""
        updates = self.updates()
        network = parse_network(text(QUEUES.get(self.queue, self.queue)))
        run = VirtualRun(network, feeds={"s": updates.feed()}, cost=costs(network, {"mapped": 1 / SERVED}))
        run.run()
        found = seen(run, "mapped", updates.newest())
        phases = len(PHASES)
        rows = np.concatenate([each.rows.column("v").to_numpy() for each in run.deliveries])
        came = (updates.came // round(self.seconds * SECOND)).astype(np.int64)
        answered = np.bincount(came[rows], minlength=phases) / np.bincount(came, minlength=phases)
        return Outcome(
            results=len(rows),
            peak=found.peak,
            staleness=found.staleness,
            wrong=found.wrong,
            switches=found.switches,
            parts=tuple(answered.tolist()),
        )

    def updates(self) -> Updates:
        """All rows."""
        random, length = np.random.default_rng(1), round(self.seconds * SECOND)
        came = [
            np.sort(random.integers(0, length, random.poisson(load * SERVED * self.seconds))) + phase * length
            for phase, load in enumerate(PHASES)
        ]
        times = np.concatenate(came)
        return Updates(random.integers(0, KEYS, len(times)), times, times)


def settings() -> dict[Key, Phases]:
    """The queue that switches, and both that do not."""
    return {(queue, None): Phases(queue) for queue in (APPEND, AUTO, IN_PLACE)}


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The staleness, and the share of rows that was answered by phase."""
    picture = chart(
        "Share of the rows that are answered, by phase; loads 0.5, 3, 0.5, 3, 0.5",
        "phase",
        "share of rows answered",
        [Curve(queue, list(enumerate(outcome.parts, 1))) for (queue, _), outcome in found.items()],
        log_x=False,
        log_y=False,
    )
    rows: list[dict[str, object]] = [
        {
            "curve": queue,
            "results": outcome.results,
            "mean_staleness_seconds": outcome.staleness,
            "most_rows_waiting": outcome.peak,
            "switches": outcome.switches,
            **{f"answered_{number}": share for number, share in enumerate(outcome.parts, 1)},
        }
        for (queue, _), outcome in found.items()
    ]
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    auto, append, in_place = (found[queue, None] for queue in (AUTO, APPEND, IN_PLACE))
    changes = len(PHASES) - 1
    calm = [phase for phase, load in enumerate(PHASES) if load < 1]
    return [
        Claim("it switches once for each change of the load", auto.switches, changes, changes),
        Claim("its staleness over that of IN-PLACE", auto.staleness / in_place.staleness, high=1.25),
        Claim("that of append over its own", append.staleness / auto.staleness, low=100),
        Claim(
            "where the load is low it answers nearly every row; the least share of a phase",
            min(auto.parts[phase] for phase in calm),
            low=0.99,
            unit="%",
        ),
        Claim("before the load first rises, every row", auto.parts[0], 1, 1, "%"),
        Claim("there IN-PLACE answers", in_place.parts[0], high=0.995, unit="%"),
        Claim("keys whose last answer is not their newest", auto.wrong + in_place.wrong, high=0),
    ]


FIGURE = Figure("auto-switch", "beyond 002", "append while it keeps up, update under load", settings, findings)
