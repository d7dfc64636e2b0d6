"""The queues of a bucket: they take in all rows of a micro-batch, then release what the budget allows.

Rules:
- Queues release rows one after another, so that the cost of each one's rows can be measured: first those whose
  allowance does not depend on others, nearer to the streams first. Those that share time release in slices of it, the
  most urgent first, as `Queue.urgency` and the query's `share` say; so their total staleness is least.
- The cost of a row is measured by the clock of the worker, and counts from the next micro-batch on (see budget.py). The
  urgency of a queue depends only on its state and the micro-batch's clock.
- The clock of queues stands still in a micro-batch. Rows arrived when its first file did, as the offset says. What a
  micro-batch releases is delivered when it is committed; the next one knows that moment, from the offset too.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from millrace.errors import RequestError
from millrace.hosts.spark.exchange.rows import pack, unpack
from millrace.hosts.spark.stage.budget import MOST, BatchBudget, RowCost, TriggerPace, WaitingQueue
from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import GraphNode
from millrace.kernel.metrics import InputCounts, QueueMetrics, least_processed
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import QueueSettings

QueueReport = dict[str, Any]
"""A queue as plain data: its metrics, the streams that it reads, and its most stale keys."""

STALEST = 20
"""The number of keys whose staleness a bucket reports."""
_FEW_KEYS = 10_000
"""A bucket with more keys reports none: finding the most stale would cost too much every time."""
_SUMS = ("keys", "waiting", "entered", "let_go", "superseded", "shed", "allocated", "used", "switches")
_MEANS = ("queue_now", "queue_mean", "application_now", "application_mean")


class BucketQueues:
    """The queues of a bucket's graph; `titles` says by node to which query each belongs, and what it is called.

    `shares` says by query what its staleness counts beside that of others: 1 if it is not there.
    """

    def __init__(
        self,
        executor: Executor,
        titles: Mapping[str, tuple[str, str]],
        place: int,
        buckets: int,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        self.executor = executor
        self.titles = titles
        self.shares = shares or {}
        self.place, self.buckets = place, buckets
        self.pace = TriggerPace()
        self.turn = 0
        self.clock: Microseconds = 0
        """That of the last micro-batch."""
        self.share = MOST
        self.behind: Microseconds | None = None
        """The clock of the last micro-batch, if it left rows behind: then the next one has followed at once."""
        self.costs: dict[str, RowCost] = {}
        for name in titles:
            self._queue(name).deliver_late()

    # Work

    def take_in(self, committed: Microseconds, arrived: Mapping[str, Microseconds]) -> None:
        """Let queues take in all rows, and release none.

        What they released before was delivered when it was committed; `arrived` says by source of the graph when its
        present rows arrived.
        """
        if self.titles:
            self.executor.queue_gate.shut()
        for name in self.titles:
            queue, inputs = self._queue(name), self.executor.graph.nodes[name].inputs
            # Not before it was released, whatever the clock was set to meanwhile.
            queue.on_delivery(max(committed, self.clock))
            sources = [_source(arc.producer) for arc in inputs]
            queue.arrived = min([arrived[source] for source in sources if source in arrived], default=None)

    def serve(self, run: Callable[[], object], now: Microseconds, pace: TriggerPace, *, free: bool) -> None:
        """Release what the budget allows, and `run` what is downstream; `pace` counts from the next time on."""
        if not self.titles:
            return
        if self.behind is not None:
            self.share = self.pace.kept(self.share, now - self.behind)
        budget = BatchBudget(self.pace, self.place, self.buckets, self.turn, free=free, share=self.share)
        took: dict[str, float] = {}
        while due := [
            self._waiting(name, now) for name, queue in self.executor.queue_gate.queues().items() if queue.due
        ]:
            if (chosen := budget.next(due)) is None:
                break
            took[chosen.name] = took.get(chosen.name, 0.0) + self._let_go(budget, chosen, due, run)
        self.executor.queue_gate.shut()
        self._learn(budget, took)
        self.turn, self.pace, self.clock = self.turn + 1, pace, now
        self.behind = now if self.held_back() else None

    def _let_go(
        self, budget: BatchBudget, chosen: WaitingQueue, due: Sequence[WaitingQueue], run: Callable[[], object]
    ) -> float:
        """One queue's turn; the microseconds it took."""
        node = self.executor.graph.nodes[chosen.name]
        before, began = node.metrics.rows_out, time.perf_counter()
        self.executor.queue_gate.open({chosen.name: budget.allowance(chosen, due)})
        run()
        budget.spend(chosen, node.metrics.rows_out - before)
        return (time.perf_counter() - began) * 1e6

    def _learn(self, budget: BatchBudget, took: Mapping[str, float]) -> None:
        """Know what rows cost, from the next micro-batch on."""
        for name, micros in took.items():
            cost = self.costs.setdefault(name, RowCost())
            cost.learn(budget.released[name], micros)
            if cost.row is not None:
                self._queue(name).learn_cost(cost.row)

    def _waiting(self, name: str, now: Microseconds) -> WaitingQueue:
        queue, query = self._queue(name), self.titles[name][0]
        settings = queue.settings or QueueSettings()
        return WaitingQueue(
            query,
            queue.held,
            self.costs.get(name) or RowCost(),
            settings.budget_rows,
            settings.budget_time,
            name=name,
            urgency=self.shares.get(query, 1.0) * queue.urgency(now),
        )

    def _queue(self, name: str) -> Queue:
        return self.executor.queue_gate.queues()[name]

    # What they say

    def held_back(self) -> int:
        """How many rows are releasable, but have no allowance."""
        return (
            sum(queue.held for queue in self.executor.queue_gate.queues().values() if queue.due) if self.titles else 0
        )

    def told(self, now: Microseconds, streams: Mapping[str, str]) -> dict[str, QueueReport]:
        """Each queue by its title; `streams` says whose rows the sources of the graph give."""
        return {self.titles[name][1]: self._told(name, now, streams) for name in self.titles}

    def _told(self, name: str, now: Microseconds, streams: Mapping[str, str]) -> QueueReport:
        queue = self._queue(name)
        metrics = queue.queue_metrics(now)
        read = [streams.get(_source(arc.producer)) for arc in self.executor.graph.nodes[name].inputs]
        stale = (
            [b64encode(pack(_by_staleness(queue.staleness(now)).slice(0, STALEST))).decode()]
            if 0 < metrics.keys <= _FEW_KEYS
            else []
        )
        return {"query": self.titles[name][0], **asdict(metrics), "streams": read, "stale": stale}

    # State

    def note(self) -> dict[str, Any]:
        """All that must be remembered, as plain data."""
        costs = {name: cost.saved() for name, cost in self.costs.items()}
        pace = [self.pace.interval, self.pace.cores]
        note = {"turn": self.turn, "pace": pace, "share": self.share, "behind": self.behind, "clock": self.clock}
        return {**note, "costs": costs}

    def recall(self, note: Mapping[str, Any]) -> None:
        """Go on from what `note` gave; of queues that have left nothing is kept."""
        self.turn, self.pace = note["turn"], TriggerPace(*note["pace"])
        self.share, self.behind, self.clock = note["share"], note["behind"], note.get("clock", 0)
        self.costs = {name: RowCost(*each) for name, each in note["costs"].items() if name in self.titles}


def titles_of(executor: Executor, queries: Mapping[str, str], level: int) -> dict[str, tuple[str, str]]:
    """By node the query of each queue and what it is called, given the query of each sink of the graph."""
    found: dict[str, tuple[str, str]] = {}
    for name, title in executor.queue_gate.titles().items():
        sink, _, number = title.partition("#")
        query = queries.get(sink, sink)
        found[name] = query, query + (f"@{level}" if level > 1 else "") + (f"#{number}" if number else "")
    return found


def _source(node: GraphNode) -> str:
    """The source whose rows come to a queue by a node, by its name; none if they are rows of no single one."""
    while not node.is_source:
        if node.operator is None or not node.operator.passes_rows or len(node.inputs) != 1:
            return ""
        node = node.inputs[0].producer
    return node.name


def _by_staleness(keys: pa.Table) -> pa.Table:
    return keys.sort_by([("application_now", "descending"), ("application_mean", "descending")])


# The reports of all buckets


def merged(reports: Iterable[Mapping[str, QueueReport]]) -> dict[str, QueueReport]:
    """Queues as all buckets know them: counts add up, staleness is a mean over all keys."""
    found: dict[str, QueueReport] = {}
    for report in reports:
        for title, told in report.items():
            found[title] = _joined(found[title], told) if title in found else dict(told)
    return found


def _joined(one: QueueReport, other: QueueReport) -> QueueReport:
    joined = {**one, **{name: one[name] + other[name] for name in _SUMS}}
    for name in _MEANS:
        joined[name] = _mean([(one[name], one["keys"]), (other[name], other["keys"])])
    joined["cost"] = _mean([(one["cost"], one["let_go"]), (other["cost"], other["let_go"])])
    joined["mode"] = one.get("mode") if one.get("mode") == other.get("mode") else "mixed"
    joined["oldest"] = max(one["oldest"], other["oldest"])
    joined["by_input"] = [
        {name: first[name] + second[name] for name in first}
        for first, second in zip(one["by_input"], other["by_input"], strict=True)
    ]
    joined["stale"] = [*one["stale"], *other["stale"]]
    return joined


def _mean(weighed: Sequence[tuple[float, float]]) -> float:
    whole = sum(weight for _, weight in weighed)
    return sum(value * weight for value, weight in weighed) / whole if whole else 0.0


def queue_metrics_of(told: Mapping[str, Any]) -> QueueMetrics:
    """The metrics of a reported queue."""
    known = {each.name: told[each.name] for each in fields(QueueMetrics) if each.name in told}
    return QueueMetrics(**{**known, "by_input": tuple(InputCounts(**each) for each in told["by_input"])})


def counts_of(stream: str, queues: Mapping[str, QueueReport]) -> InputCounts:
    """What became of the rows of a stream in the queue that has processed least of them."""
    return least_processed(_counts_of(stream, queues))


def _counts_of(stream: str, queues: Mapping[str, QueueReport]) -> Iterator[InputCounts]:
    for told in queues.values():
        for name, counts in zip(told["streams"], told["by_input"], strict=True):
            if name == stream:
                yield InputCounts(**counts)


def staleness_of(query: str, queues: Mapping[str, QueueReport], *, has_queue: bool) -> pa.Table:
    """The most stale keys of a query, as buckets told of them; with a column `input` if it has several queues."""
    own = [told["stale"] for told in queues.values() if told["query"] == query]
    if not own and not has_queue:
        raise RequestError(
            f'query "{query}" has no queue, so nothing in it grows stale',
            hint="Queries over update streams have one: declare UPDATE KEY (column) for the stream it reads.",
        )
    tables = [pa.concat_tables(unpack(b64decode(each)) for each in stale) for stale in own if stale]
    if not tables:
        raise RequestError(
            f'no bucket has reported single keys of query "{query}"',
            hint="None does before its first micro-batch or with many keys: metrics().queues has means over all keys.",
        )
    if len(own) > 1:
        tables = [
            each.append_column("input", pa.array([number] * len(each), pa.int64()))
            for number, each in enumerate(tables)
        ]
    return _by_staleness(pa.concat_tables(tables, promote_options="default"))
