"""A thousand keys at five times the load that can be served, for half an hour (beyond 002).

A tenth of the rows is out of order: they come up to half a minute after rows that are newer than they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import along, chart, curves
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.key_arrivals import keys_of
from millrace.experiments.figures.update_queues import (
    APPEND,
    FIFO,
    GUARDED,
    IN_PLACE,
    SECOND,
    QueueCase,
    Updates,
    application,
)
from millrace.kernel.aggregates.panes.window_geometry import Numbers

KEYS = 1_000
SERVED = 20
"""Rows a second."""
LOAD = 5
SECONDS, APPEND_SECONDS = 1_800, 180
"""What an append queue has not served it works off afterwards, five times as long as rows came: it runs shorter."""
UNORDERED, LATENESS = 0.1, 30.0
"""The share of rows that are out of order, and by how many seconds at most."""
UNIFORM, ZIPF_5, ZIPF_9, MIXED = "uniform", "Zipf 0.5", "Zipf 0.9", "slow and fast"
KINDS = (UNIFORM, ZIPF_5, ZIPF_9, MIXED)
_THETAS = {UNIFORM: 0.0, ZIPF_5: 0.5, ZIPF_9: 0.9}
_FAST = 200
"""Of the mix: these keys have 50 times the updates of the others."""
_TIMES = 50
_LOOK = 0.97
"""Seconds from look to look: no multiple of what a row takes."""


@dataclass(frozen=True)
class Overload:
    """Rows of many keys, evenly spaced, so many times as many as can be served."""

    kind: str
    seconds: float
    keys: int = KEYS
    per_second: float = LOAD * SERVED

    def updates(self) -> Updates:
        """All of them."""
        rows = round(self.seconds * self.per_second)
        random = np.random.default_rng(2)
        came = np.round(np.arange(rows) * (SECOND / self.per_second)).astype(np.int64)
        late = (random.random(rows) < UNORDERED) * random.random(rows) * LATENESS * SECOND
        return Updates(self._keys(rows, random), came - late.astype(np.int64), came)

    def _keys(self, rows: int, random: np.random.Generator) -> Numbers:
        if self.kind != MIXED:
            return keys_of(self.keys, rows, _THETAS[self.kind])
        fast = self.keys * _FAST // KEYS
        share = np.where(np.arange(self.keys) < fast, float(_TIMES), 1.0)
        return random.choice(self.keys, rows, p=share / share.sum()).astype(np.int64)


def settings() -> dict[Key, QueueCase]:
    """Every queue with every distribution of keys."""
    found = {(queue, kind): _case(kind, queue, SECONDS) for kind in KINDS for queue in (GUARDED, IN_PLACE, FIFO)}
    appended = {(APPEND, kind): _case(kind, APPEND, APPEND_SECONDS) for kind in KINDS}
    return {(queue, float(KINDS.index(kind))): case for (queue, kind), case in (found | appended).items()}


def _case(kind: str, queue: str, seconds: float) -> QueueCase:
    # A row takes longer than a queue lets go of at once, so whole batches may enter it: it is the same, and faster.
    return QueueCase(Overload(kind, seconds), queue, 1 / SERVED, step=None, look=_LOOK)


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The staleness by distribution and queue."""
    picture = chart(
        "Mean staleness of 1,000 keys at load 5: uniform, Zipf 0.5, Zipf 0.9, slow and fast",
        "distribution of the keys",
        "mean staleness, seconds",
        curves(found, application),
        log_x=False,
    )
    rows: list[dict[str, object]] = [
        {
            "curve": queue,
            "keys": KINDS[int(place or 0)],
            "results": outcome.results,
            "mean_staleness_seconds": outcome.staleness,
            "p99_staleness_seconds": outcome.p99,
            "most_rows_waiting": outcome.peak,
            "wrong_keys": outcome.wrong,
        }
        for (queue, place), outcome in found.items()
    ]
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    in_place = along(found, IN_PLACE, application)
    guarded = along(found, GUARDED, application)
    ratios = {KINDS[int(place)]: guarded[place] / in_place[place] for place in in_place}
    updating = [outcome for (queue, _), outcome in found.items() if queue != APPEND]
    fifo = along(found, FIFO, application)
    return [
        Claim("IN-PLACE: the most rows that ever wait", max(along(found, IN_PLACE, _peak).values()), high=KEYS),
        Claim(
            "IN-PLACE: p99 of the staleness, at most 1,000 / service rate",
            max(along(found, IN_PLACE, _p99).values()),
            high=KEYS / SERVED,
            unit="s",
        ),
        *(
            Claim(f"LINECUTTING, {kind}: its staleness over that of IN-PLACE", ratios[kind], high=1.02)
            for kind in (UNIFORM, ZIPF_5, ZIPF_9)
        ),
        Claim(f"LINECUTTING, {MIXED}: better; the ratio", ratios[MIXED], high=0.9),
        Claim(
            "IN-PLACE is fresher than update FIFO; the least ratio",
            min(fifo[place] / in_place[place] for place in in_place),
            low=1.0,
        ),
        Claim(
            "append has the p99 after 3 minutes that update queues never have; the least, over theirs",
            min(along(found, APPEND, _p99).values()) / max(along(found, IN_PLACE, _p99).values()),
            low=2.0,
        ),
        Claim(
            "update queues: keys that went back in time, or did not end with their newest value",
            sum(outcome.wrong for outcome in updating),
            high=0,
        ),
    ]


def _peak(outcome: Outcome) -> float:
    return outcome.peak


def _p99(outcome: Outcome) -> float:
    return outcome.p99


FIGURE = Figure("overload", "beyond 002", "1,000 keys at five times what can be served", settings, findings)
