"""Four queries on one processor: served for least staleness of all together, or with a share each (beyond 002).

A key that is let go every T has a mean staleness of about T/2. With n keys of a cost c each in a query, the processor
is full when the sum of n·c/T is 1, and the sum of n·T/2 is least where T is proportional to the root of c: it is then
(sum of n·√c)² / 2. A quarter of the processor for each query gives 2·(sum of n²·c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from millrace.experiments.figures.claims import Claim, about
from millrace.experiments.figures.curves import Curve, chart
from millrace.experiments.figures.experiment import Figure, Findings, Key, Outcome
from millrace.experiments.figures.update_queues import SECOND, Updates, costs, seen
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network

TOGETHER, SHARED, ALONE = "together", "a quarter each", "alone"
EVERY = 1.0
"""Seconds between two updates of a key."""
SECONDS = 240.0


@dataclass(frozen=True)
class Query:
    """A query: how many keys it has, and what an update costs (seconds)."""

    keys: int
    cost: float


QUERIES = {"a": Query(2, 1.0), "b": Query(8, 0.5), "c": Query(40, 0.1), "d": Query(80, 0.02)}
FORMULA = sum(query.keys * sqrt(query.cost) for query in QUERIES.values()) ** 2 / 2
BY_SHARES = 2 * sum(query.keys**2 * query.cost for query in QUERIES.values())


@dataclass(frozen=True)
class Together:
    """All queries at once, or one by one on a processor that is so many times slower."""

    at_once: bool
    slower: int = 1
    seconds: float = SECONDS

    def outcome(self) -> Outcome:
        """The staleness summed over all keys, and that of each query."""
        runs = [tuple(QUERIES)] if self.at_once else [(name,) for name in QUERIES]
        found = {name: outcome for names in runs for name, outcome in self._run(names).items()}
        parts = tuple(found[name].staleness * query.keys for name, query in QUERIES.items())
        return Outcome(
            results=sum(each.results for each in found.values()),
            staleness=sum(parts),
            wrong=sum(each.wrong for each in found.values()),
            parts=parts,
        )

    def _run(self, names: Sequence[str]) -> dict[str, Outcome]:
        network = parse_network("\n".join(_text(name) for name in names))
        updates = {name: self._updates(name) for name in names}
        run = VirtualRun(
            network,
            feeds={f"s_{name}": each.feed() for name, each in updates.items()},
            cost=costs(network, {name: QUERIES[name].cost * self.slower for name in names}),
        )
        run.run()
        return {name: seen(run, name, updates[name].newest()) for name in names}

    def _updates(self, name: str) -> Updates:
        """Every key evenly spaced, beginning at any moment."""
        query = QUERIES[name]
        begins = np.sort(np.random.default_rng(list(QUERIES).index(name)).random(query.keys)) * EVERY
        rounds = np.arange(int(self.seconds / EVERY)) * EVERY
        came = np.round((rounds[:, None] + begins[None, :]).ravel() * SECOND).astype(np.int64)
        return Updates(np.tile(np.arange(query.keys), len(rounds)), came, came)


def _text(name: str) -> str:
    return f"""CREATE STREAM s_{name} (k BIGINT, v BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable REPLAY BY ts;
CREATE QUERY {name} WITH (queue = 'inplace') AS SELECT k, v + 0 AS v, ts FROM s_{name};"""


def settings() -> dict[Key, Together]:
    """All together; each with a quarter of the processor; each with all of it."""
    return {
        (TOGETHER, None): Together(at_once=True),
        (SHARED, None): Together(at_once=False, slower=len(QUERIES)),
        (ALONE, None): Together(at_once=False),
    }


def findings(found: Mapping[Key, Outcome]) -> Findings:
    """The staleness of all keys together, by query."""
    lines = [
        Curve(way, [(place, value) for place, value in enumerate(outcome.parts, 1)])
        for (way, _), outcome in found.items()
    ]
    picture = chart(
        "Staleness of four queries, summed over their keys",
        "query: 2 keys of 1 s, 8 of 0.5 s, 40 of 0.1 s, 80 of 0.02 s",
        "staleness, seconds",
        lines,
        log_x=False,
    )
    rows: list[dict[str, object]] = [
        {
            "curve": way,
            "results": outcome.results,
            "staleness_seconds": outcome.staleness,
            **{f"of_{name}": part for name, part in zip(QUERIES, outcome.parts, strict=True)},
        }
        for (way, _), outcome in found.items()
    ]
    return Findings(rows, _claims(found), picture)


def _claims(found: Mapping[Key, Outcome]) -> list[Claim]:
    together, shared = (found[way, None].staleness for way in (TOGETHER, SHARED))
    return [
        Claim(
            f"together over a quarter each ({FORMULA / BY_SHARES:.2f} by the formulas)", together / shared, high=0.85
        ),
        about("together: (sum of n·√c)²/2, as far as keys have an update waiting", together, FORMULA, 0.15, "s"),
        Claim("keys whose last answer is not their newest", sum(each.wrong for each in found.values()), high=0),
    ]


FIGURE = Figure("queries-together", "beyond 002", "four queries served for least staleness", settings, findings)
