"""The window join of 003 section 7: a slow and a fast stream, joined in order of time by each method.

Every pair of rows in a window is compared. Every fast row names the slow row before it as its partner, and with that
one alone it makes a result. Such a result tells the response time of the fast row: how long after its arrival it has
been joined and what it makes may leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.experiment import Outcome
from millrace.hosts.virtual.host import Costs, VirtualRun
from millrace.kernel.elements import Times
from millrace.language import parse_network
from millrace.plan.joins.join_cost import JoinCost
from millrace.plan.nodes.endpoints import TIMESTAMP

SYNC, FILTER, ADAPTIVE = "Sync-Filter", "Filter-Order", "Adaptive"
METHODS = {SYNC: "sync_filter", FILTER: "filter_order", ADAPTIVE: "adaptive"}
WINDOW = 60.0
"""Seconds."""
ALPHA = 0.29
_SECOND = 1_000_000


@dataclass(frozen=True)
class Arrivals:
    """When rows of both streams arrive, in microseconds; that is their timestamp too."""

    slow: Times
    fast: Times

    def feeds(self) -> dict[str, list[pa.Table]]:
        """The rows: those of the slow stream are numbered, those of the fast one name their partner."""
        partners = np.searchsorted(self.slow, self.fast, side="right") - 1
        slow = {"id": np.arange(len(self.slow)), "ts": pa.array(self.slow).cast(TIMESTAMP)}
        return {
            "slow": [pa.table(slow)],
            "fast": [pa.table({"partner": partners, "ts": pa.array(self.fast).cast(TIMESTAMP)})],
        }


def even(slow: float, fast: float, seconds: float) -> Arrivals:
    """Evenly spaced rows; of the fast ones between two slow ones the first comes right after a slow one.

    >>> [times.tolist() for times in (even(1, 2, 2).slow, even(1, 2, 2).fast)]
    [[0, 1000000], [1, 500001, 1000001, 1500001]]
    """
    first, second = (np.round(np.arange(round(rate * seconds)) * (_SECOND / rate)) for rate in (slow, fast))
    return Arrivals(first.astype(np.int64), second.astype(np.int64) + 1)


def poisson(slow: float, fast: float, seconds: float, seed: int) -> Arrivals:
    """Rows at random."""
    random = np.random.default_rng(seed)
    first, second = (
        np.sort(random.integers(0, round(seconds * _SECOND), random.poisson(rate * seconds))) for rate in (slow, fast)
    )
    return Arrivals(first, second)


def network(method: str, window: float = WINDOW, alpha: float = ALPHA) -> str:
    """The query, joined by a method."""
    length = f"{round(window * _SECOND)} MICROSECONDS"
    options = f"join = '{METHODS[method]}'" + (f", alpha = {alpha}" if method == ADAPTIVE else "")
    return f"""CREATE STREAM slow (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE STREAM fast (partner BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;
CREATE QUERY joined WITH ({options}) AS
  SELECT f.ts FROM slow [RANGE {length}] AS s, fast [RANGE {length}] AS f
  WHERE s.id - f.partner = 0 ORDER BY greatest(s.ts, f.ts);"""


def responses(run: VirtualRun) -> tuple[Times, Times]:
    """The fast rows that have found their partner, by their arrival, and how long each took (microseconds)."""
    arrived = [each.rows.column("ts").cast(pa.int64()).to_numpy() for each in run.deliveries]
    taken = [each.now - times for each, times in zip(run.deliveries, arrived, strict=True)]
    empty = [np.empty(0, np.int64)]
    return np.concatenate([*empty, *arrived]), np.concatenate([*empty, *taken])


@dataclass(frozen=True)
class JoinCase:
    """The join of two streams for so long: a pair takes `pair` seconds; with a seed rows come at random."""

    method: str
    pair: float
    slow: float
    fast: float
    seconds: float
    seed: int | None = None

    def arrivals(self) -> Arrivals:
        """What arrives when."""
        if self.seed is None:
            return even(self.slow, self.fast, self.seconds)
        return poisson(self.slow, self.fast, self.seconds, self.seed)

    def outcome(self) -> Outcome:
        """The mean response time of a fast row that comes when windows are full and before the last slow row does."""
        arrivals = self.arrivals()
        costs = Costs(pair=self.pair * _SECOND)
        run = VirtualRun(parse_network(network(self.method)), feeds=arrivals.feeds(), cost=costs, rows_per_step=1)
        run.run()
        arrived, taken = responses(run)
        counted = taken[(arrived >= WINDOW * _SECOND) & (arrived < arrivals.slow[-1])]
        return Outcome(results=len(counted), latency=float(counted.mean()) / _SECOND)


@dataclass(frozen=True)
class FormulaCase:
    """The mean response time that a method has by the equations of 003."""

    method: str
    cost: JoinCost

    def outcome(self) -> Outcome:
        """Equation 3 or equation 5."""
        return Outcome(latency=self.cost.sync_filter if self.method == SYNC else self.cost.filter_order)
