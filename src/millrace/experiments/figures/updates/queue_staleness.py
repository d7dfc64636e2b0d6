"""The figures of 002 section 5: the staleness and the memory of queues, by load and by how keys are updated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise

from millrace.experiments.figures.claims import Claim, about, furthest
from millrace.experiments.figures.curves import Chart, Curve, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.updates.update_queues import (
    APPEND,
    FIFO,
    GUARDED,
    IN_PLACE,
    PRINTED,
    SHED,
    EvenUpdates,
    QueueCase,
    SlowKeys,
)

LOADS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0)
"""Ticks that an update takes; one update comes per tick."""
TICKS = 5_000
KEYS = {"1 key": 1, "10 keys": 10}


def expected(load: float) -> float:
    """The queue staleness of one key at a whole load: an update right after a release waits for the rest of the work.

    >>> expected(10)
    4.05
    """
    return (load - 1) ** 2 / (2 * load) if load > 1 else 0.0


def _both_kinds(found: Results, name: str) -> list[Curve]:
    kinds = {"application": "staleness", "queue": "queue_staleness"}
    return [Curve(kind, list(found.along(name, value).items())) for kind, value in kinds.items()]


_LOAD, _LAW = "load: ticks per update", {"(L-1)²/2L": expected}


@figure(
    cases=lambda: {
        (name, load): QueueCase(EvenUpdates(keys, TICKS), IN_PLACE, load)
        for load in LOADS
        for name, keys in KEYS.items()
    },
    columns={
        "load": PLACE,
        "results": "results",
        "application_staleness": "staleness",
        "queue_staleness": "queue_staleness",
    },
    panels=[
        Chart(_LOAD, "mean staleness, ticks", partial(_both_kinds, name="1 key"), _LAW, log="", title="(a) one key"),
        Chart(_LOAD, "mean staleness, ticks", partial(_both_kinds, name="10 keys"), log="", title="(b) ten keys"),
    ],
)
def staleness_app_queue(found: Results) -> list[Claim]:
    """002 Fig. 5: staleness of application and queue by load."""
    one, ten = (found.along(name, "queue_staleness") for name in KEYS)
    apart = {name: found.along(name, "beyond_queue") for name in KEYS}
    overloaded = [load for load in LOADS if load > 1]
    most = LOADS[-1]
    slopes = {name: (each[most] - each[5.0]) / (most - 5) for name, each in apart.items()}
    formula = furthest(one[load] / expected(load) for load in overloaded)
    tenfold = furthest(ten[load] / one[load] for load in overloaded)
    return [
        about("1 key: the queue's is (L-1)²/2L; the furthest ratio to that", formula, 1.0, 0.02),
        about("10 keys: the queue's is about ten times that; the furthest ratio", tenfold, 10.0, 0.1),
        about(f"1 key: at a load of {most:g} the two differ by the load", apart["1 key"][most], most, 0.1),
        about(f"10 keys: likewise at {most:g}", apart["10 keys"][most], most, 0.1),
        *(
            about(f"{name}: the difference is linear, one tick for each of load; from 5 on", slope, 1.0, 0.1)
            for name, slope in slopes.items()
        ),
        Claim("up to a load of 1 nothing waits; the greatest queue staleness", max(ten[1.0], one[1.0]), high=0.0),
    ]


QUEUE_LOADS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
APPEND_TICKS = 1_000
"""An append queue falls behind for as long as it runs, and has to process all of that in the end."""
TWICE = "append, twice as long"
TURNS = "update FIFO, in turn"
HEADROOM = 0.95
"""The share of the time that shedding leaves to be used."""


def _queue_cases() -> dict[Point, QueueCase]:
    """Every queue at each load, for both numbers of keys."""
    found: dict[Point, QueueCase] = {}
    for load in QUEUE_LOADS:
        for name, keys in KEYS.items():
            long, short = EvenUpdates(keys, TICKS), EvenUpdates(keys, APPEND_TICKS)
            found[f"{IN_PLACE}, {name}", load] = QueueCase(long, IN_PLACE, load)
            found[f"{FIFO}, {name}", load] = QueueCase(long, FIFO, load)
            found[f"{SHED}, {name}", load] = QueueCase(long, SHED, load, f", keep = {min(1.0, HEADROOM / load):.6f}")
            found[f"{APPEND}, {name}", load] = QueueCase(short, APPEND, load)
        found[TURNS, load] = QueueCase(EvenUpdates(10, TICKS, theta=None), FIFO, load)
    return found | {(TWICE, 10.0): QueueCase(EvenUpdates(10, 2 * APPEND_TICKS), APPEND, 10.0)}


def _by_queue(found: Results, name: str) -> list[Curve]:
    queues = APPEND, SHED, FIFO, IN_PLACE
    return [Curve(queue, list(found.along(f"{queue}, {name}", "staleness").items())) for queue in queues]


@figure(
    cases=_queue_cases,
    columns={"load": PLACE, "results": "results", "application_staleness": "staleness"},
    panels=[
        Chart(_LOAD, "mean application staleness, ticks", partial(_by_queue, name="1 key"), title="(a) one key"),
        Chart(_LOAD, "mean application staleness, ticks", partial(_by_queue, name="10 keys"), title="(b) ten keys"),
    ],
)
def staleness_queues(found: Results) -> list[Claim]:
    """002 Fig. 7: append and update queues by load."""
    in_place = found.along(f"{IN_PLACE}, 10 keys", "staleness")
    fifo = found.along(f"{FIFO}, 10 keys", "staleness")
    twice = found[TWICE, 10.0]["staleness"] / found[f"{APPEND}, 10 keys", 10.0]["staleness"]

    def ratios(queue: str, other: str, keys: str) -> list[float]:
        found_ratios = found.ratios(f"{queue}, {keys}", f"{other}, {keys}", "staleness")
        return [ratio for load, ratio in found_ratios.items() if load > 1]

    alike = furthest(ratios(FIFO, IN_PLACE, "1 key"))
    return [
        about("10 keys, load 10: IN-PLACE about 50 ticks", in_place[10.0], 50.0, 0.1),
        about("10 keys, load 10: update FIFO about 78 ticks", fifo[10.0], 78.0, 0.1),
        Claim("1 key: both update queues are alike; the furthest ratio", alike, 1, 1),
        Claim("10 keys: FIFO is staler than IN-PLACE; the least ratio", min(ratios(FIFO, IN_PLACE, "10 keys")), 1.1),
        Claim("10 keys: shedding is staler than FIFO; the least ratio", min(ratios(SHED, FIFO, "10 keys")), 1.1),
        Claim("1 key: shedding is staler than IN-PLACE; the least ratio", min(ratios(SHED, IN_PLACE, "1 key")), 1.1),
        about("append grows with the run: twice as long is twice as stale, at load 10", twice, 2.0, 0.1),
    ]


LINE_KEYS = 10
LINE_LOADS = (3, 5)


def _gain(found: Results, queue: str, load: int) -> dict[float, float]:
    """The queue staleness of IN-PLACE over that of another rule, by the number of slow keys."""
    return found.ratios(f"{IN_PLACE}, load {load}", f"{queue}, load {load}", "queue_staleness")


def _gains(found: Results, load: int) -> list[Curve]:
    return [Curve(queue, list(_gain(found, queue, load).items())) for queue in (PRINTED, GUARDED)]


@figure(
    cases=lambda: {
        (f"{queue}, load {load}", float(slow)): QueueCase(SlowKeys(LINE_KEYS, slow, 6_000), queue, load)
        for load in LINE_LOADS
        for slow in range(LINE_KEYS + 1)
        for queue in (IN_PLACE, PRINTED, GUARDED)
    },
    columns={"slow_keys": PLACE, "results": "results", "queue_staleness": "queue_staleness"},
    panels=[
        Chart("slow keys of 10", "queue staleness, IN-PLACE over it", partial(_gains, load=load), log="", title=title)
        for load, title in zip(LINE_LOADS, ("load 3", "load 5, as in the paper"), strict=True)
    ],
)
def linecutting(found: Results) -> list[Claim]:
    """002 Fig. 9: slow keys cut the line."""
    printed, guarded = ({load: _gain(found, queue, load) for load in LINE_LOADS} for queue in (PRINTED, GUARDED))
    ends = [each[load][slow] for each in (printed, guarded) for load in LINE_LOADS for slow in (0.0, LINE_KEYS)]
    best = {load: max(each, key=each.__getitem__) for load, each in printed.items()}
    return [
        Claim("with none and with all of them slow, nothing is gained; the greatest ratio", max(ends), 0.98, 1.02),
        Claim("nor lost; the least ratio", min(ends), 0.98, 1.02),
        about("printed, load 3: at its best about 2.3 times less stale", max(printed[3].values()), 2.3, 0.1),
        Claim("printed, load 3: with about 8 slow keys", best[3], 7, 8),
        Claim("printed, load 5: at its best", max(printed[5].values()), low=1.5),
        Claim("printed, load 5: that is with 8 slow keys", best[5], 8, 8, reproduces=False),
        *(
            Claim(
                f"{name}, load {load}: above 1 it rises to one peak and falls; turns", turns(rule[load].values()), 1, 1
            )
            for name, rule in (("printed", printed), ("guarded", guarded))
            for load in LINE_LOADS
        ),
        Claim("printed, it starves fast keys where too many cut; the least ratio", _least(printed.values()), high=0.5),
        Claim("guarded: never noticeably worse than IN-PLACE; the least ratio", _least(guarded.values()), low=0.98),
        Claim("guarded, load 3: at its best", max(guarded[3].values()), low=1.8),
    ]


def turns(values: Iterable[float]) -> int:
    """How often a curve that begins upwards changes its direction, by 2 % or more, while it is above 1.

    >>> turns([1, 1.5, 2.0, 1.2, 0.4, 1.0])
    1
    """
    found, up, extreme = 0, True, 1.0
    for value in (max(value, 1.0) for value in values):
        ahead = value > extreme if up else value < extreme
        if ahead:
            extreme = value
        elif abs(value - extreme) > 0.02 * extreme:
            found, up, extreme = found + 1, not up, value
    return found


THETAS = (0.0, 0.3, 0.6, 0.9)
RATES = (1000, 500, 200, 100, 50, 20)
"""Rows per second."""
SERVED = 10
"""Rows per second."""
PAGED, NAIVE = "paged", "naive"


def page_case(memory: str, theta: float, rate: int, results: int = 1000) -> QueueCase:
    """Rows of 100 keys, for as long as so many results take.

    A row takes no multiple of the time between two looks, so that they come at any stage of its work.
    """
    source = EvenUpdates(100, rate * results // SERVED, theta, rate)
    naive = ", baseline = 'naive_memory'" if memory == NAIVE else ""
    return QueueCase(source, IN_PLACE, 1 / SERVED, naive, look=0.037)


_SHARE, _KEPT, _RATE = "share of the locations in use", "mean locations kept", "rows per second, of which 10 are served"


def _by_theta(found: Results, value: str) -> list[Curve]:
    return [
        Curve(
            f"{memory}, {rate} per second", [(theta, found[f"{memory}, θ {theta:g}", rate][value]) for theta in THETAS]
        )
        for memory in (PAGED, NAIVE)
        for rate in (RATES[-1], RATES[-3])
    ]


def _by_rate(found: Results, value: str) -> list[Curve]:
    names = [f"{memory}, θ {theta:g}" for memory in (PAGED, NAIVE) for theta in (THETAS[0], THETAS[-1])]
    return [Curve(name, list(found.along(name, value).items())) for name in names]


@figure(
    cases=lambda: {
        (f"{memory}, θ {theta:g}", float(rate)): page_case(memory, theta, rate)
        for rate in RATES
        for theta in THETAS
        for memory in (PAGED, NAIVE)
    },
    columns={"rows_a_second": PLACE, "results": "results", "average_usage": "allocated", "effective_usage": "in_use"},
    panels=[
        Chart("Zipf's θ", _SHARE, partial(_by_theta, value="in_use"), log="", title="Fig. 16(a)"),
        Chart("Zipf's θ", _KEPT, partial(_by_theta, value="allocated"), log="", title="Fig. 16(b)"),
        Chart(_RATE, _SHARE, partial(_by_rate, value="in_use"), log="x", title="Fig. 17(a)"),
        Chart(_RATE, _KEPT, partial(_by_rate, value="allocated"), log="x", title="Fig. 17(b)"),
    ],
)
def paging(found: Results) -> list[Claim]:
    """002 Figs. 16, 17: memory of an update queue, paged and naive."""
    paged = [found.along(f"paged, θ {theta:g}", "in_use") for theta in THETAS]
    naive = [found.along(f"naive, θ {theta:g}", "in_use") for theta in THETAS]
    skewed = [more[rate] / less[rate] for less, more in pairwise(naive) for rate in RATES]
    loaded = [each[more] / each[less] for more, less in pairwise(RATES) for each in naive]
    below = [found.ratios(f"paged, θ {theta:g}", f"naive, θ {theta:g}", "allocated") for theta in THETAS]
    greatest = max(ratio for each in below for ratio in each.values())
    return [
        Claim("paged: every location kept is in use; the least share", _least(paged), 1, 1, "%"),
        Claim("naive: the share in use falls with θ; the greatest ratio to the θ before", max(skewed), high=1.0),
        Claim("naive, 20 per second: the share at θ 0.9 over that at θ 0", naive[-1][20] / naive[0][20], high=0.6),
        Claim("naive: it rises with the load; the least ratio to the rate before", min(loaded), low=1.0),
        Claim("paged keeps fewer locations than naive; the greatest ratio", greatest, high=1.0),
        Claim("20 per second, θ 0.9: the locations of paged over those of naive", below[-1][20], high=0.5),
    ]


def _least(curves: Iterable[Mapping[float, float]]) -> float:
    return min(value for each in curves for value in each.values())
