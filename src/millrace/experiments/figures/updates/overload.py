"""Figures beyond 002: update queues under overload, several queries on one processor, and a load that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from millrace.experiments.figures.claims import Claim, about
from millrace.experiments.figures.curves import Chart, Curve, Measured, Point, Results
from millrace.experiments.figures.experiment import PLACE, figure
from millrace.experiments.figures.updates.update_queues import (
    APPEND,
    FIFO,
    GUARDED,
    IN_PLACE,
    SECOND,
    KeyUpdates,
    QueueCase,
    costs,
    keys_of,
    measured,
)
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.columns.integers import Integers
from millrace.language import parse_network

KEYS = 1_000
SERVED = 20
"""Rows per second."""
LOAD = 5
UNORDERED, LATENESS = 0.1, 30.0
"""The share of rows that are out of order, and by how many seconds at most."""
UNIFORM, ZIPF_5, ZIPF_9, MIXED = "uniform", "Zipf 0.5", "Zipf 0.9", "slow and fast"
KINDS = (UNIFORM, ZIPF_5, ZIPF_9, MIXED)
_THETAS = {UNIFORM: 0.0, ZIPF_5: 0.5, ZIPF_9: 0.9}
_FAST, _TIMES = 0.2, 50
"""Of the mix: the share of fast keys, and how many times the updates of the others they have."""


@dataclass(frozen=True)
class OverloadUpdates:
    """Evenly spaced rows of many keys, so many times as many as can be served; some are out of order."""

    kind: str
    seconds: float
    keys: int = KEYS
    per_second: float = LOAD * SERVED

    def updates(self) -> KeyUpdates:
        """All of them."""
        rows = round(self.seconds * self.per_second)
        random = np.random.default_rng(2)
        came = np.round(np.arange(rows) * (SECOND / self.per_second)).astype(np.int64)
        late = (random.random(rows) < UNORDERED) * random.random(rows) * LATENESS * SECOND
        return KeyUpdates(self._keys(rows, random), came - late.astype(np.int64), came)

    def _keys(self, rows: int, random: np.random.Generator) -> Integers:
        if self.kind != MIXED:
            return keys_of(self.keys, rows, _THETAS[self.kind])
        share = np.where(np.arange(self.keys) < round(self.keys * _FAST), float(_TIMES), 1.0)
        return random.choice(self.keys, rows, p=share / share.sum()).astype(np.int64)


def _overload_cases() -> dict[Point, QueueCase]:
    """Every queue with every distribution of keys.

    An append queue runs shorter: afterwards it processes what it has not served, five times as long as rows came.
    A row takes longer than a queue releases at once, so whole batches may enter it: the answers are the same, sooner.
    """
    runs = [(queue, place, 1_800) for place in range(len(KINDS)) for queue in (GUARDED, IN_PLACE, FIFO)]
    runs += [(APPEND, place, 180) for place in range(len(KINDS))]
    return {
        (queue, float(place)): QueueCase(
            OverloadUpdates(KINDS[place], seconds), queue, 1 / SERVED, step=None, look=0.97
        )
        for queue, place, seconds in runs
    }


@figure(
    cases=_overload_cases,
    columns={
        "keys": PLACE,
        "results": "results",
        "mean_staleness_seconds": "staleness",
        "p99_staleness_seconds": "p99",
        "most_rows_waiting": "peak",
        "wrong_keys": "wrong",
    },
    panels=[Chart("distribution of the keys", "mean staleness, seconds", "staleness", log="", places=KINDS)],
    sort_rows=False,
    places=KINDS,
)
def overload(found: Results) -> list[Claim]:
    """beyond 002: 1,000 keys at five times what can be served.

    It lasts half an hour. A tenth of the rows is out of order: they come up to half a minute after newer rows.
    """
    ratios = dict(zip(KINDS, found.ratios(GUARDED, IN_PLACE, "staleness").values(), strict=True))
    p99 = max(found.along(IN_PLACE, "p99").values())
    append = min(found.along(APPEND, "p99").values()) / p99
    fifo = min(found.ratios(FIFO, IN_PLACE, "staleness").values())
    wrong = sum(each["wrong"] for (queue, _), each in found.items() if queue != APPEND)
    return [
        Claim("IN-PLACE: the most rows that ever wait", max(found.along(IN_PLACE, "peak").values()), high=KEYS),
        Claim("IN-PLACE: p99 of the staleness, at most 1,000 / service rate", p99, high=KEYS / SERVED, unit="s"),
        *(
            Claim(f"LINECUTTING, {kind}: its staleness over that of IN-PLACE", ratios[kind], high=1.02)
            for kind in _THETAS
        ),
        Claim(f"LINECUTTING, {MIXED}: better; the ratio", ratios[MIXED], high=0.9),
        Claim("IN-PLACE is fresher than update FIFO; the least ratio", fifo, low=1.0),
        Claim(
            "append has the p99 after 3 minutes that update queues never have; the least, over theirs", append, low=2.0
        ),
        Claim("update queues: keys that went back in time, or did not end with their newest value", wrong, high=0),
    ]


TOGETHER, SHARED, ALONE = "together", "a quarter each", "alone"


@dataclass(frozen=True)
class QueryLoad:
    """A query: how many keys it has, and what an update costs (seconds)."""

    keys: int
    cost: float


QUERIES = {"a": QueryLoad(2, 1.0), "b": QueryLoad(8, 0.5), "c": QueryLoad(40, 0.1), "d": QueryLoad(80, 0.02)}
FORMULA = sum(query.keys * sqrt(query.cost) for query in QUERIES.values()) ** 2 / 2
BY_SHARES = 2 * sum(query.keys**2 * query.cost for query in QUERIES.values())


@dataclass(frozen=True)
class QueriesCase:
    """All queries at once, or one by one on a slower processor; a key is updated `every` so many seconds."""

    at_once: bool
    slower: int = 1
    seconds: float = 240.0
    every: float = 1.0

    def measure(self) -> Measured:
        """The staleness summed over all keys, and that of each query."""
        runs = [tuple(QUERIES)] if self.at_once else [(name,) for name in QUERIES]
        found = {name: values for names in runs for name, values in self._run(names).items()}
        parts = {f"of_{name}": found[name]["staleness"] * query.keys for name, query in QUERIES.items()}
        totals = {value: sum(each[value] for each in found.values()) for value in ("results", "wrong")}
        return {**totals, "staleness": sum(parts.values()), **parts}

    def _run(self, names: Sequence[str]) -> dict[str, Measured]:
        network = parse_network("\n".join(_query_text(name) for name in names))
        updates = {name: self._updates(name) for name in names}
        run = VirtualRun(
            network,
            feeds={f"s_{name}": each.feed() for name, each in updates.items()},
            cost=costs(network, {name: QUERIES[name].cost * self.slower for name in names}),
        )
        run.run()
        return {name: measured(run, name, updates[name]) for name in names}

    def _updates(self, name: str) -> KeyUpdates:
        """Every key at even intervals, of which the first begins at any moment."""
        keys = QUERIES[name].keys
        begins = np.sort(np.random.default_rng(list(QUERIES).index(name)).random(keys)) * self.every
        rounds = np.arange(int(self.seconds / self.every)) * self.every
        came = np.round((rounds[:, None] + begins[None, :]).ravel() * SECOND).astype(np.int64)
        return KeyUpdates(np.tile(np.arange(keys), len(rounds)), came, came)


def _query_text(name: str) -> str:
    return f"""CREATE STREAM s_{name} (k BIGINT, v BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable REPLAY BY ts;
CREATE QUERY {name} WITH (queue = 'inplace') AS SELECT k, v + 0 AS v, ts FROM s_{name};"""


def _numbered(found: Results, values: Sequence[str]) -> list[Curve]:
    """One curve per case through so many of its values."""
    return [
        Curve(name, [(place, each[value]) for place, value in enumerate(values)]) for (name, _), each in found.items()
    ]


@figure(
    cases=lambda: {
        (TOGETHER, None): QueriesCase(at_once=True),
        (SHARED, None): QueriesCase(at_once=False, slower=len(QUERIES)),
        (ALONE, None): QueriesCase(at_once=False),
    },
    columns={
        "results": "results",
        "staleness_seconds": "staleness",
        **{f"of_{name}": f"of_{name}" for name in QUERIES},
    },
    panels=[
        Chart(
            "query",
            "staleness summed over its keys, seconds",
            lambda found: _numbered(found, [f"of_{name}" for name in QUERIES]),
            log="",
            places=[f"{each.keys} keys of {each.cost:g} s" for each in QUERIES.values()],
        )
    ],
    sort_rows=False,
)
def queries_together(found: Results) -> list[Claim]:
    """beyond 002: four queries served for least staleness.

    A key that is released every T has a mean staleness of about T/2. With n keys of a cost c each in a query, the
    processor is full when the sum of n·c/T is 1, and the sum of n·T/2 is least where T is proportional to the root of
    c: it is then (sum of n·√c)² / 2. A quarter of the processor for each query gives 2·(sum of n²·c).
    """
    together, shared = (found.level(way, "staleness") for way in (TOGETHER, SHARED))
    wrong = sum(each["wrong"] for each in found.values())
    by_formulas = FORMULA / BY_SHARES
    return [
        Claim(f"together over a quarter each ({by_formulas:.2f} by the formulas)", together / shared, high=0.85),
        about("together: (sum of n·√c)²/2, as far as keys have an update waiting", together, FORMULA, 0.15, "s"),
        Claim("keys whose last answer is not their newest", wrong, high=0),
    ]


AUTO = "auto"
PHASES = (0.5, 3.0, 0.5, 3.0, 0.5)
"""The load of each phase."""
ANSWERED = [f"answered_{number}" for number in range(1, len(PHASES) + 1)]
PHASE_RATE = 10
"""Rows that are served per second."""


@dataclass(frozen=True)
class PhasesCase:
    """Rows of ten keys at random, as many as the load of each phase says, and a queue."""

    queue: str
    seconds: float = 600.0

    def measure(self) -> Measured:
        """The staleness, the switches, and the share of each phase's rows that were answered."""
        updates = self.updates()
        run = QueueCase(self, self.queue, 1 / PHASE_RATE, step=None).run(updates)
        rows = np.concatenate([each.rows.column("v").to_numpy() for each in run.deliveries])
        phase = (updates.came // round(self.seconds * SECOND)).astype(np.int64)
        answered = np.bincount(phase[rows], minlength=len(PHASES)) / np.bincount(phase, minlength=len(PHASES))
        parts = dict(zip(ANSWERED, answered.tolist(), strict=True))
        return {**measured(run, "mapped", updates), "results": len(rows), **parts}

    def updates(self) -> KeyUpdates:
        """All rows."""
        random, length = np.random.default_rng(1), round(self.seconds * SECOND)
        came = [
            np.sort(random.integers(0, length, random.poisson(load * PHASE_RATE * self.seconds))) + phase * length
            for phase, load in enumerate(PHASES)
        ]
        times = np.concatenate(came)
        return KeyUpdates(random.integers(0, 10, len(times)), times, times)


@figure(
    cases=lambda: {(queue, None): PhasesCase(queue) for queue in (APPEND, AUTO, IN_PLACE)},
    columns={
        "results": "results",
        "mean_staleness_seconds": "staleness",
        "most_rows_waiting": "peak",
        "switches": "switches",
        **{name: name for name in ANSWERED},
    },
    panels=[
        Chart(
            "phase",
            "share of the rows that are answered",
            lambda found: _numbered(found, ANSWERED),
            log="",
            places=[f"load {load:g}" for load in PHASES],
        )
    ],
    sort_rows=False,
)
def auto_switch(found: Results) -> list[Claim]:
    """beyond 002: append while it keeps up, update under load."""
    auto, append, in_place = (found[queue, None] for queue in (AUTO, APPEND, IN_PLACE))
    changes = len(PHASES) - 1
    calm = min(auto[name] for name, load in zip(ANSWERED, PHASES, strict=True) if load < 1)
    return [
        Claim("it switches once for each change of the load", auto["switches"], changes, changes),
        Claim("its staleness over that of IN-PLACE", auto["staleness"] / in_place["staleness"], high=1.25),
        Claim("that of append over its own", append["staleness"] / auto["staleness"], low=100),
        Claim(
            "where the load is low it answers nearly every row; the least share of a phase", calm, low=0.99, unit="%"
        ),
        Claim("before the load first rises, every row", auto[ANSWERED[0]], 1, 1, "%"),
        Claim("there IN-PLACE answers", in_place[ANSWERED[0]], high=0.995, unit="%"),
        Claim("keys whose last answer is not their newest", auto["wrong"] + in_place["wrong"], high=0),
    ]
