"""The query of 002 section 5: a map over an update stream, a queue in front of it, and rows that take time.

Rules:
- The map above the queue pays what a row costs; all other work costs nothing.
- Staleness counts from the first update to the last one. The rows that wait then are still processed: the last answer
  of each key must be that of its newest update.
- One unit of time is a second, or a tick where a paper counts ticks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.curves import Measured
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import DeliveredRows, VirtualRun
from millrace.hosts.virtual.samples import QueueSamples
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import TIMESTAMP, Times
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

APPEND, SHED, FIFO, IN_PLACE = "append", "append, shedding", "update FIFO", "IN-PLACE"
PRINTED, GUARDED = "LINECUTTING as printed", "LINECUTTING"
QUEUES = {
    APPEND: "append",
    SHED: "append_shed",
    FIFO: "update_fifo",
    IN_PLACE: "inplace",
    PRINTED: "linecutting_as_printed",
    GUARDED: "linecutting",
}
SECOND = 1_000_000


def keys_of(keys: int, rows: int, theta: float | None = None, seed: int = 1) -> Integers:
    """The key of each row: in turn, or by Zipf's law, by which key n has a share of 1 / n**theta.

    >>> keys_of(3, 7).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    >>> np.bincount(keys_of(2, 3000, theta=1.0)).round(-2).tolist()
    [2000, 1000]
    """
    if theta is None:
        return np.arange(rows) % keys
    shares = 1 / np.arange(1, keys + 1) ** theta
    ends = np.cumsum(shares) / shares.sum()
    # The last end may be a little less than 1.
    return np.minimum(np.searchsorted(ends, np.random.default_rng(seed).random(rows), side="right"), keys - 1)


@dataclass(frozen=True)
class KeyUpdates:
    """Rows in the order in which they come: their keys, their timestamps and when each comes (microseconds)."""

    keys: Integers
    stamped: Times
    came: Times

    @property
    def ordered(self) -> bool:
        """True if the timestamps are the arrivals."""
        return self.stamped is self.came

    def feed(self) -> list[pa.Table]:
        """The rows as the feed of a stream; their values are their numbers."""
        columns = {"k": self.keys, "v": np.arange(len(self.keys)), "ts": pa.array(self.stamped).cast(TIMESTAMP)}
        return [pa.table(columns if self.ordered else {**columns, "came": pa.array(self.came).cast(TIMESTAMP)})]

    def newest(self) -> dict[int, int]:
        """The value of the newest row of each key; of equally new ones the later."""
        order = np.lexsort((self.stamped, self.keys))
        last = order[np.diff(self.keys[order], append=-1) != 0]
        return dict(zip(self.keys[last].tolist(), last.tolist(), strict=True))


class UpdateSource(Protocol):
    """Where updates come from: frozen data."""

    def updates(self) -> KeyUpdates:
        """All of them."""


@dataclass(frozen=True)
class EvenUpdates:
    """So many updates per second, evenly spaced: of keys by Zipf's law, or, without `theta`, in turn."""

    keys: int
    rows: int
    theta: float | None = 0.0
    rate: int = 1

    def updates(self) -> KeyUpdates:
        """All of them."""
        came = np.round(np.arange(self.rows) / self.rate * SECOND).astype(np.int64)
        return KeyUpdates(keys_of(self.keys, self.rows, self.theta), came, came)


@dataclass(frozen=True)
class SlowKeys:
    """Keys that are updated at even intervals, `slow` of them ten times as long; all together once per second.

    The slow keys are updated `at_once`, or at any time.
    """

    keys: int
    slow: int
    ticks: int
    at_once: bool = False

    def updates(self) -> KeyUpdates:
        """All of them; the keys begin at any moment of their intervals."""
        rates = np.where(np.arange(self.keys) < self.keys - self.slow, 1.0, 0.1)
        rates /= rates.sum()
        begins = np.random.default_rng(1).random(self.keys)
        if self.at_once:
            begins[self.keys - self.slow :] = 0.5
        came = [
            np.round((np.arange(int(self.ticks * rate) + 1) + begin) / rate * SECOND).astype(np.int64)
            for rate, begin in zip(rates, begins, strict=True)
        ]
        keys, times = np.repeat(np.arange(self.keys), [len(each) for each in came]), np.concatenate(came)
        order = np.argsort(times, kind="stable")
        order = order[times[order] < self.ticks * SECOND]
        return KeyUpdates(keys[order], times[order], times[order])


@dataclass(frozen=True)
class QueueCase:
    """Updates that wait in a queue, of which each row costs so many seconds; `options` are further ones of the query.

    `step` is 1 if one row at a time goes through the graph; every `look` seconds all keys are sampled.
    """

    source: UpdateSource
    queue: str
    cost: float
    options: str = ""
    step: int | None = 1
    look: float | None = None

    def measure(self) -> Measured:
        """How stale the keys were while updates came, the locations that the queue kept, and the answers."""
        updates = self.source.updates()
        return measured(self.run(updates), "mapped", updates)

    def run(self, updates: KeyUpdates) -> VirtualRun:
        """The run, finished."""
        network = parse_network(text(QUEUES.get(self.queue, self.queue), self.options, ordered=updates.ordered))
        run = VirtualRun(
            network,
            feeds={"s": updates.feed()},
            cost=costs(network, {"mapped": self.cost}),
            rows_per_step=self.step,
            sample_every=None if self.look is None else round(self.look * SECOND),
        )
        run.run()
        return run


def text(queue: str, options: str = "", *, ordered: bool = True) -> str:
    """The stream and the query."""
    came, order, by = ("", "ORDERED", "ts") if ordered else (", came TIMESTAMP", "DISORDER INTERVAL 1 MINUTE", "came")
    return f"""CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP{came})
  TIMESTAMP BY ts {order} UPDATE KEY (k) FROM iterable REPLAY BY {by};
CREATE QUERY mapped WITH ({spelling("queue", queue)}{options}) AS SELECT k, v + 0 AS v, ts FROM s;"""


def costs(network: QueryNetwork, seconds: Mapping[str, float]) -> Costs:
    """What a row costs at the last operator of each query."""
    nodes = physical(network).whole().nodes
    last = {name: nodes[name].inputs[0].producer.name for name in seconds}
    return Costs(of={last[name]: round(cost * SECOND) for name, cost in seconds.items()})


def measured(run: VirtualRun, query: str, updates: KeyUpdates) -> Measured:
    """What came of a query: its queue while input came, and its answers.

    `wrong` counts the keys of which an answer went back in time, or the last one is not the newest.
    """
    samples = run.samples(query)
    metrics = samples.metrics
    assert metrics is not None
    return {
        "results": metrics.let_go,
        "peak": samples.peak_waiting,
        "staleness": metrics.application_mean / SECOND,
        "queue_staleness": metrics.queue_mean / SECOND,
        "beyond_queue": (metrics.application_mean - metrics.queue_mean) / SECOND,
        "wrong": wrong([each for each in run.deliveries if each.query == query], updates.newest()),
        "switches": metrics.switches,
        **(_sampled(samples) if samples.samples else {}),
    }


def _sampled(samples: QueueSamples) -> Measured:
    """What is known only of a queue that was sampled: the share of locations `in_use` and the p99 of the staleness."""
    return {
        "p99": samples.application.quantile(0.99) / SECOND,
        "allocated": samples.mean_allocated,
        "in_use": samples.mean_used / samples.mean_allocated,
    }


def wrong(answers: list[DeliveredRows], newest: Mapping[int, int]) -> int:
    """How many keys have an answer that is older than one before it, or a last answer that is not the newest."""
    rows = pa.concat_tables([each.rows for each in answers])
    keys, values = rows.column("k").to_numpy(), rows.column("v").to_numpy()
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    order = np.argsort(keys, kind="stable")
    back = (np.diff(keys[order]) == 0) & (np.diff(times[order]) < 0)
    ends = order[np.diff(keys[order], append=-1) != 0]
    last = dict(zip(keys[ends].tolist(), values[ends].tolist(), strict=True))
    return len(set(keys[order][1:][back].tolist()) | {key for key in newest if last.get(key) != newest[key]})
