"""Keys that are updated seldom pass the others (002 Fig. 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millrace.experiments.figures.claims import Claim, about
from millrace.experiments.figures.curves import Curve, along, chart, table
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_queues import GUARDED, IN_PLACE, PRINTED, QueueCase, Spaced, in_queue

KEYS = 10
LOADS = (3, 5)
TICKS = 6_000


def settings() -> dict[Key, QueueCase]:
    """Every number of slow keys, at each load, by each rule."""
    return {
        (_name(queue, load), float(slow)): QueueCase(Spaced(KEYS, slow, TICKS), queue, load)
        for load in LOADS
        for slow in range(KEYS + 1)
        for queue in (IN_PLACE, PRINTED, GUARDED)
    }


def _name(queue: str, load: int) -> str:
    return f"{queue}, load {load}"


def gain(found: Mapping[Key, Outcome], queue: str, load: int) -> dict[float, float]:
    """The queue staleness of IN-PLACE over that of another rule, by the number of slow keys."""
    base = along(found, _name(IN_PLACE, load), in_queue)
    return {slow: base[slow] / value for slow, value in along(found, _name(queue, load), in_queue).items()}


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """How much less stale the keys are than in place."""
    lines = [
        Curve(_name(queue, load), list(gain(found, queue, load).items()))
        for load in LOADS
        for queue in (PRINTED, GUARDED)
    ]
    picture = chart(
        "Queue staleness of IN-PLACE over that of LINECUTTING, 10 keys",
        "slow keys",
        "ratio of queue staleness",
        lines,
        log_x=False,
        log_y=False,
    )
    rows = table(found, "slow_keys", results=lambda each: each.results, queue_staleness=in_queue)
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    printed = {load: gain(found, PRINTED, load) for load in LOADS}
    guarded = {load: gain(found, GUARDED, load) for load in LOADS}
    ends = [
        value for each in (*printed.values(), *guarded.values()) for slow, value in each.items() if slow in (0.0, KEYS)
    ]
    best = {load: max(each, key=each.__getitem__) for load, each in printed.items()}
    return [
        Claim("with none and with all of them slow, nothing is gained; the greatest ratio", max(ends), 0.98, 1.02),
        Claim("nor lost; the least ratio", min(ends), 0.98, 1.02),
        about("printed, load 3: at its best about 2.3 times less stale", max(printed[3].values()), 2.3, 0.1),
        Claim("printed, load 3: with about 8 slow keys", best[3], 7, 8),
        Claim("printed, load 5: at its best", max(printed[5].values()), low=1.5),
        Claim("printed, load 5: that is with 8 slow keys", best[5], 8, 8, reproduces=False),
        *(
            Claim(f"{name}, load {load}: above 1 it rises to one peak and falls; turns", turns(each[load]), 1, 1)
            for name, each in (("printed", printed), ("guarded", guarded))
            for load in LOADS
        ),
        Claim("printed, it starves fast keys where too many cut; the least ratio", _least(printed), high=0.5),
        Claim("guarded: never noticeably worse than IN-PLACE; the least ratio", _least(guarded), low=0.98),
        Claim("guarded, load 3: at its best", max(guarded[3].values()), low=1.8),
    ]


def _least(found: Mapping[int, Mapping[float, float]]) -> float:
    return min(value for each in found.values() for value in each.values())


def turns(values: Mapping[float, float]) -> int:
    """How often a curve that begins upwards changes its direction, by 2 % or more, while it is above 1.

    >>> turns({0: 1, 1: 1.5, 2: 2.0, 3: 1.2, 4: 0.4, 5: 1.0})
    1
    """
    above: Sequence[float] = [max(value, 1.0) for value in values.values()]
    found, up, extreme = 0, True, above[0]
    for value in above:
        ahead = value > extreme if up else value < extreme
        if ahead:
            extreme = value
        elif abs(value - extreme) > 0.02 * extreme:
            found, up, extreme = found + 1, not up, value
    return found


FIGURE = Figure("linecutting", "002 Fig. 9", "slow keys cut the line", settings, findings)
