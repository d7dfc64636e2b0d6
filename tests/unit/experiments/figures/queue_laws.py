"""What the figures of update queues find if it is what the paper found (002), and what breaks their claims."""

from __future__ import annotations

from collections.abc import Callable

from millrace.experiments.figures.curves import Measured
from millrace.experiments.figures.updates.overload import ANSWERED, BY_SHARES, FORMULA, KINDS, MIXED, PHASES
from millrace.experiments.figures.updates.queue_staleness import expected

Law = Callable[[str, float], Measured]


def stale(staleness: float, queue: float = 0.0) -> Measured:
    kinds = {"staleness": staleness, "queue_staleness": queue, "beyond_queue": staleness - queue}
    return {"results": 100, "wrong": 0, "peak": 0, "p99": 0, "switches": 0, **kinds}


def application(curve: str, load: float) -> Measured:
    queue = expected(load) * (10 if curve == "10 keys" else 1)
    return stale(queue + load, queue)


def queues(curve: str, load: float) -> Measured:
    """As Fig. 7 has it, in ticks."""
    many = 10 if curve.endswith("10 keys") or "," not in curve else 1
    factors = {"IN-PLACE": 5.0, "update FIFO": 7.8 if many == 10 else 5.0, "append, shedding": 20.0}
    for name, factor in factors.items():
        if curve.startswith(name):
            return stale(factor * load * many / 10)
    return stale(900.0 if curve == "append, twice as long" else 450.0)


def cutting(curve: str, slow: float) -> Measured:
    rule, load = curve.split(", load ")
    best = {"3": 2.3, "5": 1.7}[load]
    peak = {"3": 8, "5": 5}[load]
    gained = 1 + (best - 1) * (slow / peak if slow <= peak else 0.0)
    if slow in (0.0, 10.0) or rule == "IN-PLACE":
        gained = 1.0
    if rule == "LINECUTTING as printed" and slow == 9.0:
        gained = 0.1
    return stale(0.0, 10.0 / gained)


def overloaded(curve: str, place: float) -> Measured:
    mixed = KINDS[int(place)] == MIXED
    mean = {"IN-PLACE": 15.0, "LINECUTTING": 11.0 if mixed else 15.1, "update FIFO": 23.0, "append": 70.0}[curve]
    p99 = 144.0 if curve == "append" else 45.0
    return {**stale(mean), "p99": p99, "peak": 1000, "wrong": 900 if curve == "append" else 0}


def together(curve: str, _: float) -> Measured:
    total = {
        "together": FORMULA * 0.9,
        "a quarter each": BY_SHARES,
        "alone": BY_SHARES / 4,
    }
    return {**stale(total[curve]), "of_a": 1.0, "of_b": 2.0, "of_c": 3.0, "of_d": 4.0}


def switching(curve: str, _: float) -> Measured:
    mean, switches, calm = {"append": (900.0, 0, 1.0), "auto": (0.5, 4, 1.0), "IN-PLACE": (0.45, 0, 0.97)}[curve]
    busy = 1.0 if curve == "append" else 0.3
    parts = {name: calm if load < 1 else busy for name, load in zip(ANSWERED, PHASES, strict=True)}
    return {**stale(mean), "switches": switches, **parts}


def active(curve: str, load: float) -> Measured:
    factors = {"IN-PLACE": 1.0, "update FIFO": 2.0, "LINECUTTING as printed": 3.0, "LINECUTTING": 0.8}
    return stale(10 * load * factors[curve])


def bursts(curve: str, slow: float) -> Measured:
    cut = curve != "IN-PLACE" and slow <= 5
    starved = 2.0 if curve == "LINECUTTING as printed" and slow == 9 else 1.0
    return {"slow": 1.0 if cut else 4.0, "fast": 12.0 * starved, "all": 9.0 if cut else 10.0}


QUEUE_LAWS: dict[str, Law] = {
    "staleness-app-queue": application,
    "staleness-queues": queues,
    "key-activity": active,
    "linecutting": cutting,
    "slow-bursts": bursts,
}
OVERLOAD_LAWS: dict[str, Law] = {
    "overload": overloaded,
    "queries-together": together,
    "auto-switch": switching,
}

BROKEN_QUEUES: list[tuple[str, Law, list[str]]] = [
    ("staleness-app-queue", lambda curve, load: application("1 key", load), ["10 keys: the queue's"]),
    (
        "staleness-app-queue",
        lambda curve, load: stale(*[application(curve, load)["queue_staleness"]] * 2),
        ["1 key: at a load", "10 keys: likewise", "1 key: the difference", "10 keys: the difference"],
    ),
    (
        "staleness-app-queue",
        lambda curve, load: stale(load + 4.05, 4.05),
        ["1 key: the queue", "10 keys: the", "up to"],
    ),
    (
        "staleness-queues",
        lambda curve, load: queues(curve.replace("update FIFO", "IN-PLACE"), load),
        ["10 keys, load 10: update", "10 keys: FIFO"],
    ),
    (
        "staleness-queues",
        lambda curve, load: queues(curve.replace("IN-PLACE, 10", "update FIFO, 10").replace("twice as", "as"), load),
        ["10 keys, load 10: IN-PLACE", "10 keys: FIFO", "append grows"],
    ),
    (
        "staleness-queues",
        lambda curve, load: queues(curve.replace("append, shedding", "IN-PLACE"), load),
        ["10 keys: shedding", "1 key: shedding"],
    ),
    (
        "linecutting",
        lambda curve, slow: cutting(curve.replace("LINECUTTING as printed", "IN-PLACE"), slow),
        ["printed, load 3: at", "printed, load 3: with", "printed, load 5", *["printed, load"] * 2, "printed, it"],
    ),
    (
        "linecutting",
        lambda curve, slow: cutting(curve.replace("LINECUTTING, ", "LINECUTTING as printed, "), slow),
        ["guarded: never"],
    ),
    (
        "linecutting",
        lambda curve, slow: cutting(curve, 1.0 if slow == 10.0 and curve[0] == "L" else slow),
        ["with none", *(f"{rule}, load {load}: above" for rule in ("printed", "guarded") for load in (3, 5))],
    ),
    (
        "key-activity",
        lambda curve, load: active("IN-PLACE", load),
        ["as printed", "update FIFO"],
    ),
    (
        "key-activity",
        lambda curve, load: {**active(curve.replace("LINECUTTING", "update FIFO")[:11], load), "wrong": 1},
        ["LINECUTTING is fresher", "keys that"],
    ),
    (
        "slow-bursts",
        lambda curve, slow: bursts("IN-PLACE", slow),
        ["as printed: up to 5", "guarded: so", "as printed, 9"],
    ),
    (
        "slow-bursts",
        lambda curve, slow: {**bursts(curve, slow), "fast": len(curve) * 1.0, "all": len(curve) * 1.0},
        ["the fast ones", "guarded: all"],
    ),
    (
        "overload",
        lambda curve, place: overloaded(curve.replace("IN-PLACE", "append"), place),
        ["IN-PLACE: p99", "IN-PLACE is fresher", "append has", "update queues"],
    ),
    (
        "overload",
        lambda curve, place: {**overloaded(curve, place), "staleness": 15.0 + (curve == "LINECUTTING"), "wrong": 1},
        [
            "LINECUTTING, uniform",
            "LINECUTTING, Zipf 0.5",
            "LINECUTTING, Zipf 0.9",
            "LINECUTTING, slow",
            "update queues",
        ],
    ),
    ("overload", lambda curve, place: {**overloaded(curve, place), "peak": 1001}, ["IN-PLACE: the most"]),
    ("queries-together", lambda curve, _: together("a quarter each", _), ["together over a", "together: (sum"]),
    ("queries-together", lambda curve, _: {**together(curve, _), "wrong": 1}, ["keys whose"]),
    ("auto-switch", lambda curve, _: switching(curve.replace("auto", "append"), _), ["it switches", "its", "that of"]),
    ("auto-switch", lambda curve, _: switching(curve.replace("auto", "IN-PLACE"), _), ["it sw", "where", "before"]),
    ("auto-switch", lambda curve, _: {**switching(curve, _), "switches": 6, "wrong": 1}, ["it switches", "keys whose"]),
]
