"""The query of 002 section 5: a map over an update stream, a queue in front of it, and a row that takes its time.

Rules:
- What a row costs is paid by the map above the queue; whatever else is done costs nothing.
- Staleness counts from the first update to the last one. What waits then is worked off: the last answer of each key
  must be that of its newest update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from millrace.experiments.figures.experiment import Outcome
from millrace.experiments.figures.key_arrivals import keys_of
from millrace.hosts.virtual.host import Costs, DeliveredRows, VirtualRun
from millrace.kernel.aggregates.panes.window_geometry import Numbers
from millrace.kernel.elements import Times
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling
from millrace.plan.nodes.endpoints import TIMESTAMP
from millrace.plan.nodes.query_network import Network
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


@dataclass(frozen=True)
class Updates:
    """Rows in the order in which they come: their keys, their timestamps and when each comes (microseconds)."""

    keys: Numbers
    stamped: Times
    came: Times

    @property
    def ordered(self) -> bool:
        """Whether the timestamps are the arrivals."""
        return self.stamped is self.came

    def feed(self) -> list[pa.Table]:
        """The rows as a stream is fed with them; their values are their numbers."""
        columns = {"k": self.keys, "v": np.arange(len(self.keys)), "ts": pa.array(self.stamped).cast(TIMESTAMP)}
        return [pa.table(columns if self.ordered else {**columns, "came": pa.array(self.came).cast(TIMESTAMP)})]

    def newest(self) -> dict[int, int]:
        """The value of the newest row of each key; of equally new ones the later."""
        order = np.lexsort((self.stamped, self.keys))
        last = order[np.diff(self.keys[order], append=-1) != 0]
        return dict(zip(self.keys[last].tolist(), last.tolist(), strict=True))


class Source(Protocol):
    """Where updates come from: frozen data."""

    def updates(self) -> Updates:
        """All of them."""


@dataclass(frozen=True)
class Ticks:
    """An update every second: of a key at random, or of the keys in turn."""

    keys: int
    ticks: int
    in_turn: bool = False

    def updates(self) -> Updates:
        """All of them."""
        came = np.arange(self.ticks) * SECOND
        return Updates(keys_of(self.keys, self.ticks, None if self.in_turn else 0.0), came, came)


@dataclass(frozen=True)
class Spaced:
    """Keys that are updated evenly spaced, `slow` of them ten times more seldom; all together once a second."""

    keys: int
    slow: int
    ticks: int

    def updates(self) -> Updates:
        """All of them; the keys begin at any moment of their intervals."""
        rates = np.where(np.arange(self.keys) < self.keys - self.slow, 1.0, 0.1)
        rates /= rates.sum()
        begins = np.random.default_rng(1).random(self.keys)
        came = [
            np.round((np.arange(int(self.ticks * rate) + 1) + begin) / rate * SECOND).astype(np.int64)
            for rate, begin in zip(rates, begins, strict=True)
        ]
        keys, times = np.repeat(np.arange(self.keys), [len(each) for each in came]), np.concatenate(came)
        order = np.argsort(times, kind="stable")
        order = order[times[order] < self.ticks * SECOND]
        return Updates(keys[order], times[order], times[order])


@dataclass(frozen=True)
class QueueCase:
    """Updates that wait in a queue, of which a row costs so many seconds.

    `step` is 1 where a row at a time goes through the graph; `look` says how many seconds apart all keys are looked at.
    """

    source: Source
    queue: str
    cost: float
    keep: float | None = None
    step: int | None = 1
    look: float | None = None

    def outcome(self) -> Outcome:
        """How stale the keys were while updates came, and whether all was right in the end."""
        updates = self.source.updates()
        network = parse_network(text(QUEUES.get(self.queue, self.queue), self.keep, ordered=updates.ordered))
        run = VirtualRun(
            network,
            feeds={"s": updates.feed()},
            cost=costs(network, {"mapped": self.cost}),
            rows_per_step=self.step,
            sample_every=None if self.look is None else round(self.look * SECOND),
        )
        run.run()
        return seen(run, "mapped", updates.newest())


def text(queue: str, keep: float | None = None, *, ordered: bool = True) -> str:
    """The stream and the query."""
    came, order, by = ("", "ORDERED", "ts") if ordered else (", came TIMESTAMP", "DISORDER INTERVAL 1 MINUTE", "came")
    kept = "" if keep is None else f", keep = {keep:.6f}"
    return f"""CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP{came})
  TIMESTAMP BY ts {order} UPDATE KEY (k) FROM iterable REPLAY BY {by};
CREATE QUERY mapped WITH ({spelling("queue", queue)}{kept}) AS SELECT k, v + 0 AS v, ts FROM s;"""


def costs(network: Network, seconds: Mapping[str, float]) -> Costs:
    """What a row costs at the last operator of each query."""
    nodes = physical(network).whole().nodes
    last = {name: nodes[name].inputs[0].producer.name for name in seconds}
    return Costs(of={last[name]: round(cost * SECOND) for name, cost in seconds.items()})


def seen(run: VirtualRun, query: str, newest: Mapping[int, int]) -> Outcome:
    """What came of a query: its queue while input came, and its answers."""
    watched = run.samples(query)
    metrics = watched.metrics
    assert metrics is not None
    return Outcome(
        results=metrics.let_go,
        peak=watched.peak_waiting,
        staleness=metrics.application_mean / SECOND,
        queue_staleness=metrics.queue_mean / SECOND,
        p99=watched.application.quantile(0.99) / SECOND if watched.samples else 0.0,
        wrong=wrong([each for each in run.deliveries if each.query == query], newest),
        switches=metrics.switches,
    )


def wrong(answers: list[DeliveredRows], newest: Mapping[int, int]) -> int:
    """How many keys have an answer that is older than one before it, or end with another than the newest."""
    rows = pa.concat_tables([each.rows for each in answers])
    keys, values = rows.column("k").to_numpy(), rows.column("v").to_numpy()
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    order = np.argsort(keys, kind="stable")
    back = (np.diff(keys[order]) == 0) & (np.diff(times[order]) < 0)
    ends = order[np.diff(keys[order], append=-1) != 0]
    last = dict(zip(keys[ends].tolist(), values[ends].tolist(), strict=True))
    return len(set(keys[order][1:][back].tolist()) | {key for key in newest if last.get(key) != newest[key]})


def application(outcome: Outcome) -> float:
    """The mean staleness of the application."""
    return outcome.staleness


def in_queue(outcome: Outcome) -> float:
    """The mean staleness of the queue."""
    return outcome.queue_staleness
