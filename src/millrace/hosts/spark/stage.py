"""The high level: a bucket's query graph in a stateful Python stage, woken by each micro-batch.

Rules:
- All tuples of a micro-batch are pushed before any bound of it, so the order of tasks does not matter.
- The kernel owns the state: segments under names that are never used twice, and a manifest of those that count.
- A worker process keeps a bucket's graph at hand. It may go on with it only if the random token it wrote last is the
  one in the manifest: a batch may have been replayed elsewhere, or here after another bucket had failed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from millrace.errors import CheckpointError
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.rows import CONTROL_PORT, REPORT_OUTPUT, STREAM_PORT, pack, unpack
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import Batch, user_table
from millrace.kernel.executor import Executor, Place
from millrace.plan.nodes import Network
from millrace.plan.stages import physical

_LAYOUT = 2
_MANIFEST = ("", 0)
_COUNTS = ("received", "late", "quarantined")


@dataclass
class Bucket:
    """A bucket's graph at work, and what the manifest says of its state."""

    executor: Executor
    ports: dict[str, list[str]]
    """The ports of each stream."""
    segments: dict[Place, int] = field(default_factory=dict)
    """Where in the state store each live segment is."""
    streams: dict[str, dict[str, int]] = field(default_factory=dict)
    """The accounting of each stream, and how many of its files have been read."""
    results: dict[str, int] = field(default_factory=dict)
    token: str = ""


_AT_HAND: dict[tuple[str, int], Bucket] = {}


class Stage(StatefulProcessor):
    """Runs the high level of a network for one bucket at a time."""

    def __init__(self, network: Network, fingerprint: str, *, live: bool) -> None:
        self.network = network
        self.fingerprint = fingerprint
        self.live = live

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once a task."""
        pa.set_cpu_count(1)
        self._state = handle.getMapState("segments", "op string, part long", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Called once a micro-batch with all exchange rows of a bucket."""
        number = int(key[0])
        with carrying():
            bucket = self._open(number)
            news = _News.of(rows)
            results = self._work(bucket, news)
            self._save(bucket)
            outputs = [(name, pack(table), "") for name, table in results.items()]
            report = (REPORT_OUTPUT, b"", json.dumps(self._report(bucket, news)))
        yield pd.DataFrame([*outputs, report], columns=["output", "blob", "note"])
        _AT_HAND[self.fingerprint, number] = bucket

    def close(self) -> None:
        """Called at the end of a task."""

    def _work(self, bucket: Bucket, news: _News) -> dict[str, pa.Table]:
        executor = bucket.executor
        for port, blob in news.blobs:
            for rows in unpack(blob).to_batches():
                executor.push_stamped(port, Batch(rows))
        for stream, summaries in news.summaries.items():
            _account(bucket.streams.setdefault(stream, {}), summaries)
            for port in bucket.ports[stream]:
                _observe(executor, port, summaries, news.now)
        if news.end:
            for port in executor.ingress:
                executor.end(port)
        executor.run(StandingClock(news.now), self._silent(bucket, news))
        results = {}
        for name, batches in executor.take(news.now).items():
            results[name] = user_table(batches)
            bucket.results[name] = bucket.results.get(name, 0) + results[name].num_rows
        return results

    def _silent(self, bucket: Bucket, news: _News) -> dict[str, int]:
        """The ports that may be spoken for: of streams with nothing left to read, in a run that is not bounded.

        Each with the clock when its stream was looked at, or that of the first look where it had nothing new.
        """
        looks = {stream: summaries[-1] for stream, summaries in news.summaries.items()}
        return {
            port: looks[stream]["now"] if stream in looks else news.first
            for stream, ports in bucket.ports.items()
            for port in ports
            if self.live and (stream not in looks or looks[stream]["all"])
        }

    def _report(self, bucket: Bucket, news: _News) -> dict[str, Any]:
        metrics = bucket.executor.metrics()
        sources = {stream: _known(bucket, stream) for stream in bucket.ports}
        every_port = [port for ports in bucket.ports.values() for port in ports]
        return {
            "sources": sources,
            "wake_at": bucket.executor.wake_at(every_port) if self.live else None,
            "metrics": {
                "results": bucket.results,
                "held": sum(metrics.held.values()),
                "state_bytes": sum(metrics.state_bytes.values()),
            },
            "now": news.now,
        }

    # State

    def _open(self, number: int) -> Bucket:
        """The bucket as the last committed micro-batch left it."""
        at_hand = _AT_HAND.pop((self.fingerprint, number), None)
        stored = self._state.getValue(_MANIFEST)
        if stored is None:
            return self._new()
        manifest = json.loads(bytes(stored[0]))
        if manifest["layout"] != _LAYOUT or manifest["network"] != self.fingerprint:
            raise CheckpointError(
                "the checkpoint's state belongs to other queries",
                hint="Run the queries it was made with, or start anew with another --checkpoint folder.",
            )
        if at_hand is not None and at_hand.token == manifest["token"]:
            return at_hand
        return self._restored(manifest)

    def _new(self) -> Bucket:
        plan = physical(self.network)
        ports: dict[str, list[str]] = {}
        for exchange in plan.exchanges():
            ports.setdefault(exchange.stream.name, []).append(exchange.port)
        return Bucket(Executor(plan.high()), ports)

    def _restored(self, manifest: dict[str, Any]) -> Bucket:
        bucket = self._new()
        bucket.segments = {(node, part): place for node, part, place in manifest["segments"]}
        bucket.streams, bucket.results = manifest["streams"], manifest["results"]
        segments = {(node, part): self._segment(node, place) for (node, part), place in bucket.segments.items()}
        bucket.executor.restore(manifest["control"], segments)
        return bucket

    def _segment(self, node: str, place: int) -> pa.Table:
        stored = self._state.getValue((node, place))
        assert stored is not None, "the manifest names a segment that is not there"
        return unpack(bytes(stored[0]))

    def _save(self, bucket: Bucket) -> None:
        saved = bucket.executor.save()
        for (node, part), table in saved.added.items():
            bucket.segments[node, part] = secrets.randbits(62)
            self._state.updateValue((node, bucket.segments[node, part]), (pack(table),))
        for node, part in saved.removed:
            self._state.removeKey((node, bucket.segments.pop((node, part))))
        bucket.token = secrets.token_hex(8)
        manifest = {
            "layout": _LAYOUT,
            "network": self.fingerprint,
            "token": bucket.token,
            "control": saved.control,
            "segments": [[node, part, place] for (node, part), place in bucket.segments.items()],
            "streams": bucket.streams,
            "results": bucket.results,
        }
        self._state.updateValue(_MANIFEST, (json.dumps(manifest).encode(),))


@dataclass(frozen=True)
class _News:
    """What a micro-batch brought to a bucket."""

    blobs: list[tuple[str, bytes]]
    summaries: dict[str, list[dict[str, Any]]]
    first: int
    now: int
    end: bool

    @staticmethod
    def of(frames: Iterator[pd.DataFrame]) -> _News:
        blobs: list[tuple[str, bytes]] = []
        summaries: dict[str, list[dict[str, Any]]] = {}
        nows, end = [], False
        rows = sorted(
            (row for frame in frames for row in frame.itertuples(index=False)), key=lambda row: (row.port, row.seq)
        )
        for row in rows:
            if row.port not in (CONTROL_PORT, STREAM_PORT):
                blobs.append((row.port, row.blob))
                continue
            note = json.loads(row.note)
            nows.append(note["now"])
            if row.port == CONTROL_PORT:
                end = end or note["end"]
            else:
                summaries.setdefault(note["stream"], []).append(note)
        return _News(blobs, summaries, min(nows, default=0), max(nows, default=0), end)


def _observe(executor: Executor, port: str, summaries: list[dict[str, Any]], now: int) -> None:
    """Learn how far a stream has come.

    Streams are read one after another, so their clocks differ a little. Where the system stamps rows, what comes in a
    later micro-batch is stamped after all clocks of this one: rows need not wait for each other until then.
    """
    if executor.ingress[port].contract.kind != "external":
        executor.ingress[port].raise_bound(now)
    executor.observe(port, summaries)


def _account(known: dict[str, int], summaries: list[dict[str, Any]]) -> None:
    """Add a micro-batch's summaries of a stream to what is known of it."""
    for name in _COUNTS:
        known[name] = known.get(name, 0) + sum(summary[name] for summary in summaries)
    known["files"] = max(summary["files"] for summary in summaries)


def _known(bucket: Bucket, stream: str) -> dict[str, Any]:
    """The accounting of a stream and how far it has come: its ports differ by the ETS made for each, no more.

    A stream of which nothing has been read is known too: it may have been spoken for.
    """
    edges = [bucket.executor.ingress[port] for port in bucket.ports[stream]]
    return {
        **dict.fromkeys((*_COUNTS, "files"), 0),
        **bucket.streams.get(stream, {}),
        **edges[0].progress(),
        "bound": max(edge.bound for edge in edges),
        "enabled": max(edge.enabled for edge in edges),
    }
