"""What a run has committed, as far as it has read its records: its reports, and what holds it back, come from them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from millrace.hosts.report import Report
from millrace.hosts.spark.batch_times import MicroBatch, profile
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.hosts.spark.operator_reports import metrics_of as operators_of
from millrace.hosts.spark.stage.bucket_modes import modes_of
from millrace.hosts.spark.stage.bucket_queues import QueueReport, counts_of, queue_metrics_of, staleness_of
from millrace.hosts.why.lag import Lag, recorded
from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import (
    AggregateMetrics,
    InputCounts,
    JoinMetrics,
    LookupCounts,
    QueueMetrics,
    SourceMetrics,
)
from millrace.kernel.progress.quarantine import reasons_of
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import queue_policies

_BATCHES = 60
"""How many of the last micro-batches are told of."""


class CommitReader:
    """The micro-batches of a run; `profiled` keeps where the time of each goes."""

    def __init__(self, log: CommitLog, *, profiled: bool) -> None:
        self._log = log
        self._batch, self._earlier = -1, 0
        self.newest: Record = {}
        """The record of the last micro-batch that was looked at."""
        self._before: Record = {}
        """That of the one before it; nothing until this run has seen one."""
        self._began = time.monotonic()
        self._profiled: dict[int, MicroBatch] | None = {} if profiled else None
        self._parts: Counter[str] = Counter()
        self._batches: deque[dict[str, Any]] = deque(maxlen=_BATCHES)
        self._timed = -1
        """The last micro-batch whose length is known, or is not to be learned."""
        self._timed_at = (0.0, 0.0)
        """When the last micro-batch of which Spark has told how long it took had begun, and how long it took."""
        self._untold: dict[int, Mapping[str, int]] = {}
        """By micro-batch the results of each query that left in it, until it is known how long it took."""
        self._latency: dict[str, Latency] = {}
        self._unchanged_at = 0

    def go_on(self) -> None:
        """Begin after what earlier runs have committed."""
        if (newest := self._log.newest()) is not None:
            self.newest, self._batch = newest, newest["batch"]
            self._earlier = sum(source["received"] for source in newest["sources"].values())

    def look(self) -> Iterator[tuple[int, Record]]:
        """Each micro-batch that was committed since the last look."""
        for batch, record in self._log.records(after=self._batch):
            self._batch, self._before, self.newest = batch, self.newest, record
            metrics = record.get("metrics", {})
            self._parts.update(metrics.get("took", {}))
            earlier = self._before.get("metrics", {}).get("results", {})
            self._untold[batch] = {
                name: rows - earlier.get(name, 0) for name, rows in metrics.get("results", {}).items()
            }
            told = {"tasks": metrics.get("took", {}), "state": metrics.get("state", {})}
            self._batches.append({"batch": batch, **told, "buckets": record.get("buckets", [])})
            yield batch, record

    def settled(self) -> dict[str, int]:
        """How many files of each stream are not read again, whatever happens: the newest micro-batch may be replayed.

        None of a stream that is not in both: it came back, and is read from the first file that is there.
        """
        newest, before = (record.get("sources", {}) for record in (self.newest, self._before))
        return {
            name: min(newest[name].get("files", 0), before[name].get("files", 0)) for name in newest if name in before
        }

    def measure(self, query: StreamingQuery) -> None:
        """Keep how long micro-batches took, if that was asked for."""
        if self._profiled is not None:
            records = dict(self._log.records(after=max(self._profiled, default=-1)))
            for progress in query.recentProgress if records else ():
                if (batch := progress["batchId"]) in records and "addBatch" in progress["durationMs"]:
                    self._profiled[batch] = MicroBatch.of(progress, records[batch])

    def time_newest(self, query: StreamingQuery, interval: Microseconds | None) -> None:
        """Learn from Spark how long the newest micro-batches took, each once; `interval` is that of its triggers."""
        untimed = {told["batch"]: told for told in self._batches if told["batch"] > self._timed}
        newest: Any = query.lastProgress if untimed else None
        if newest is None:
            return
        # Spark may have gone on while results were shown: it keeps its progress of the last hundred.
        passed = newest["batchId"] > min(untimed)
        for progress in query.recentProgress if passed else (newest,):
            told = untimed.get(progress["batchId"])
            if told is not None and "addBatch" in progress["durationMs"]:
                took = {name: each / 1000 for name, each in progress["durationMs"].items()}
                told |= {"seconds": took.pop("triggerExecution", 0.0), "spark": took}
                self._timed = told["batch"]
                self._time_results(progress, told, interval)
        if passed:
            # Whatever Spark does not tell now of those that it has passed, it never tells.
            self._timed = max(self._timed, *(batch for batch in untimed if batch < newest["batchId"]))
        self._untold = {batch: left for batch, left in self._untold.items() if batch > self._timed}

    def _time_results(
        self, progress: Mapping[str, Any], told: Mapping[str, Any], interval: Microseconds | None
    ) -> None:
        """Count the results of a micro-batch as old as the rows that it read may be when it is committed.

        They came after Spark had looked for rows before: at its last trigger, or when the micro-batch before began.
        Without an interval they were there already.
        """
        began, seconds = datetime.fromisoformat(progress["timestamp"]).timestamp(), told["seconds"]
        before, lasted = self._timed_at
        waited = 0.0 if interval is None else min(began - before, max(lasted, interval / 1e6))
        self._timed_at = began, seconds
        for name, rows in self._untold.pop(told["batch"], {}).items():
            if rows > 0:
                latency = self._latency.setdefault(name, Latency())
                latency.add(np.array([round((waited + seconds) * 1e6)]), rows)

    def report(self, queries: Iterable[Query]) -> Report:
        """The run as of the last micro-batch that was looked at."""
        newest = self.newest
        metrics, queues, sources = (newest.get(name, {}) for name in ("metrics", "queues", "sources"))
        malformed = sum((Counter(each.get("malformed", {})) for each in (metrics, *sources.values())), Counter())
        return Report(
            sources={name: _source_metrics(known, counts_of(name, queues)) for name, known in sources.items()},
            results={query.name: metrics.get("results", {}).get(query.name, 0) for query in queries},
            held=metrics.get("held", 0),
            turned_away=metrics.get("turned_away", 0),
            in_vain=sum(LookupCounts(**each).in_vain for each in metrics.get("lookups", {}).values()),
            state_bytes=metrics.get("state_bytes", 0),
            elapsed=time.monotonic() - self._began,
            steps=self._batch + 1,
            earlier=self._earlier,
            profile=profile([*self._profiled.values()]) if self._profiled else None,
            queues={title: queue_metrics_of(told) for title, told in queues.items()} | _unheard(queries, queues),
            joins=modes_of(JoinMetrics, metrics.get("joins", {})),
            aggregates=modes_of(AggregateMetrics, metrics.get("aggregates", {})),
            malformed={query.name: count for query in queries if (count := malformed[query.name])},
            operators=operators_of([newest.get("low", {}), metrics.get("operators", {})], newest.get("bounds", {})),
            parts=dict(self._parts),
            batches=tuple(each for each in self._batches if "seconds" in each),
            latency={name: each.copy() for name, each in self._latency.items()},
            now=time.time_ns() // 1_000,
        )

    def found_nothing(self, now: Microseconds) -> None:
        """Note that at this time of the clock there was nothing to read since the newest commit."""
        self._unchanged_at = now

    def lag(self) -> Lag:
        """What holds time back, as of the newest commit, or of when nothing had come since it."""
        newest = self._newest()
        if not newest:
            return Lag(0, False, {}, {})
        lag = recorded(newest)
        return replace(lag, now=max(lag.now, self._unchanged_at))

    def staleness(self, query: str, queries: Iterable[Query]) -> pa.Table:
        """How stale the most stale keys of each bucket were as of the newest commit (see bucket_queues.py)."""
        has_queue = any(queue_policies(each) for each in queries if each.name == query)
        return staleness_of(query, self._newest().get("queues", {}), has_queue=has_queue)

    def _newest(self) -> Record:
        """The newest commit; of a run that has ended and had no folder to keep, the last that was looked at."""
        return self._log.newest() or self.newest


def _unheard(queries: Iterable[Query], queues: Mapping[str, QueueReport]) -> dict[str, QueueMetrics]:
    """The empty queues of queries that no micro-batch has told of yet."""
    heard = {told["query"] for told in queues.values()}
    return {
        title: QueueMetrics(policy)
        for each in queries
        if each.name not in heard
        for title, policy in queue_policies(each).items()
    }


def _source_metrics(known: Mapping[str, Any], queued: InputCounts) -> SourceMetrics:
    return SourceMetrics(
        received=known["received"],
        late=known["late"],
        quarantined=known["quarantined"],
        buffered=queued.waiting,
        bound=known.get("bound", NO_BOUND),
        greatest=known.get("greatest", NO_BOUND),
        enabled=known.get("enabled", 0),
        shed=queued.shed,
        superseded=queued.superseded,
        unit=known.get("unit", "time"),
        moved_at=known.get("moved_at", NO_BOUND),
        seen_at=known.get("seen_at", NO_BOUND),
        disorder=Latency.read(known["disorder"]) if known.get("disorder") else None,
        aside=reasons_of(known.get("aside", {})),
    )
