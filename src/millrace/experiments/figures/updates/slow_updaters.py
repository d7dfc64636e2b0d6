"""The figures of 002 section 5.3: keys of which some are updated far more often, and slow ones that come at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log

import numpy as np

from millrace.experiments.figures.claims import Claim
from millrace.experiments.figures.curves import Chart, Curve, Measured, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.updates.update_queues import (
    FIFO,
    GUARDED,
    IN_PLACE,
    PRINTED,
    SECOND,
    KeyUpdates,
    QueueCase,
    SlowKeys,
)
from millrace.kernel.columns.integers import Integers

SYMBOLS, MOST = 3_100, 4_305
"""The paper's day has more than 3,000 keys; the most active is updated 4,305 times, the least active once."""
TRADING = 6.5 * 3600
"""Seconds of a trading day."""
LOADS = (2.0, 5.0)


def activity() -> Integers:
    """The updates of each key on a day, the most active first: they fall by a power of the rank.

    >>> activity()[[0, 1, 9, 99, -1]].tolist()
    [4305, 2092, 392, 36, 1]
    """
    ranks = np.arange(1, SYMBOLS + 1)
    return np.round(MOST * ranks ** (-log(MOST) / log(SYMBOLS))).astype(np.int64)


@dataclass(frozen=True)
class TradingDay:
    """A day's updates, each at any moment of it."""

    def updates(self) -> KeyUpdates:
        """All of them."""
        random, keys = np.random.default_rng(8), np.repeat(np.arange(SYMBOLS), activity())
        came = np.sort(random.integers(0, round(TRADING * SECOND), len(keys)))
        return KeyUpdates(random.permutation(keys), came, came)


def _day_case(queue: str, load: float) -> QueueCase:
    """At a load of 2 an update takes as long as two updates are apart on average."""
    return QueueCase(TradingDay(), queue, load * TRADING / int(activity().sum()), step=None)


def _ranked(_: Results) -> list[Curve]:
    ranks = np.unique(np.geomspace(1, SYMBOLS, 40).astype(int))
    return [Curve("a key", [(float(rank), float(activity()[rank - 1])) for rank in ranks])]


def _of_day(found: Results) -> list[Curve]:
    return [
        Curve(queue, list(enumerate(found.along(queue, "staleness").values())))
        for queue in (IN_PLACE, FIFO, PRINTED, GUARDED)
    ]


@figure(
    cases=lambda: {
        (queue, load): _day_case(queue, load) for load in LOADS for queue in (IN_PLACE, FIFO, PRINTED, GUARDED)
    },
    columns={"load": PLACE, "results": "results", "mean_staleness_seconds": "staleness"},
    panels=[
        Chart("rank of the key", "updates on a day", _ranked, title="Fig. 8"),
        Chart(
            "",
            "mean application staleness, seconds",
            _of_day,
            log="y",
            places=[f"load {load:g}" for load in LOADS],
            title="such a day by queue",
        ),
    ],
)
def key_activity(found: Results) -> list[Claim]:
    """002 Fig. 8: updates of 3,100 keys on a day, and how stale queues leave them.

    The paper's data are not public: they are drawn by what it says of them, and by a power law between.
    """
    printed, guarded = (found.ratios(queue, IN_PLACE, "staleness") for queue in (PRINTED, GUARDED))
    fifo = found.ratios(FIFO, IN_PLACE, "staleness")
    wrong = sum(each["wrong"] for each in found.values())
    return [
        Claim("LINECUTTING is fresher than IN-PLACE; the greatest ratio", max(guarded.values()), high=1.0),
        Claim("as printed it starves fast keys; the least ratio", min(printed.values()), low=1.5),
        Claim("update FIFO at load 2: staler; the ratio", fifo[2.0], low=1.5),
        Claim("keys that went back in time, or did not end with their newest value", wrong, high=0),
    ]


KEYS, LOAD, TICKS = 10, 3, 3_000
SLOW = tuple(range(1, KEYS))


@dataclass(frozen=True)
class BurstCase:
    """Ten keys of which some are slow, and all of these are updated at once."""

    queue: str
    slow: int

    def measure(self) -> Measured:
        """The application staleness of slow keys, of fast ones and of all, in ticks."""
        source = SlowKeys(KEYS, self.slow, TICKS, at_once=True)
        keys = QueueCase(source, self.queue, LOAD).run(source.updates()).samples("mapped").keys
        assert keys is not None
        ticks = keys.column("application_mean").to_numpy() / SECOND
        slow = keys.column("k").to_numpy() >= KEYS - self.slow
        return {"slow": float(ticks[slow].mean()), "fast": float(ticks[~slow].mean()), "all": float(ticks.mean())}


def _of_keys(found: Results, value: str) -> list[Curve]:
    return [Curve(queue, list(found.along(queue, value).items())) for queue in (IN_PLACE, PRINTED, GUARDED)]


@figure(
    cases=lambda: {
        (queue, float(slow)): BurstCase(queue, slow) for slow in SLOW for queue in (IN_PLACE, PRINTED, GUARDED)
    },
    columns={"slow_keys": PLACE, "slow_staleness": "slow", "fast_staleness": "fast", "staleness": "all"},
    panels=[
        Chart(
            "slow keys of 10", "mean application staleness, ticks", partial(_of_keys, value=value), log="", title=title
        )
        for value, title in (("slow", "slow keys"), ("fast", "fast keys"), ("all", "all keys"))
    ],
)
def slow_bursts(found: Results) -> list[Claim]:
    """002 section 5.3: slow keys that are all updated at once.

    One update per tick in all, load 3; a slow key is updated ten times more seldom than a fast one.
    """
    few, some = [slow for slow in SLOW if slow <= 5], (3, 4, 5)
    printed, guarded = (found.ratios(IN_PLACE, queue, "slow") for queue in (PRINTED, GUARDED))
    fast = {queue: found.ratios(queue, IN_PLACE, "fast") for queue in (PRINTED, GUARDED)}
    most = max(each[slow] for each in fast.values() for slow in few)
    worst = max(found.ratios(GUARDED, IN_PLACE, "all").values())
    return [
        Claim("as printed: up to 5 slow keys are fresher; IN-PLACE over it", min(printed[n] for n in few), low=3),
        Claim("guarded: so are 3 to 5, where all gain enough; IN-PLACE over it", min(guarded[n] for n in some), low=2),
        Claim("the fast ones hardly pay for that; the greatest ratio to IN-PLACE", most, high=1.05),
        Claim("as printed, 9 slow keys: the fast one starves; over IN-PLACE", fast[PRINTED][9.0], low=1.3),
        Claim("guarded: all keys, never worse; the greatest ratio", worst, high=1.02),
    ]
