"""A high level: its buckets' query graphs in a stateful Python stage, woken by each micro-batch.

Rules:
- The kernel owns the state: segments under names that are never used twice, and a manifest of the valid ones.
- A worker process caches a bucket's graph. It may go on with it only if the random token it wrote last is the one in
  the manifest: a batch may have been replayed elsewhere, or here after another bucket had failed.
- Rows for later levels leave as exchange rows; the last level gives output rows.
- A bucket works by the plan that its rows name. If its state is of an earlier one, operators of both plans keep their
  state, and that of others is removed.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from millrace.errors import CheckpointError
from millrace.hosts.spark.batch_times import Stopwatch
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles
from millrace.hosts.spark.exchange.buckets import split
from millrace.hosts.spark.exchange.rows import (
    BOUNDS_PORT,
    CONTROL_PORT,
    REPORT_OUTPUT,
    RESULT_PORT,
    STREAM_PORT,
    Row,
    pack,
)
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.stage.bucket import Bucket
from millrace.hosts.spark.stage.bucket_input import BucketInput, plan_of, read_input, rows_of
from millrace.hosts.spark.stage.bucket_state import BucketState
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.hosts.spark.stage.segment_files import SegmentFiles, shared_folder
from millrace.hosts.tables.table_files import TABLES, use_tables
from millrace.kernel.elements import Batch

_LAYOUT = 12
_MOST_BYTES = 64 << 20
"""About how many bytes Spark gets at once; its limit is that of an array in Java."""

_CACHED: dict[tuple[str, int, int], tuple[float, Bucket]] = {}
"""Buckets by folder, level and number, and when each was at work last."""
_IDLE = 300.0
"""Seconds after which a bucket that was not at work is dropped: its run has ended, or another worker has it."""


class Stage:
    """Runs one high level of a network for one bucket at a time; a task makes one, over Spark's map of its state."""

    def __init__(
        self, state: Any, folder: str, buckets: Sequence[int], *, level: int, last: bool, pace: TriggerPace | None
    ) -> None:
        pa.set_cpu_count(1)
        self.folder = folder
        self.buckets = tuple(buckets)
        self.level = level
        self.last = last
        self.pace = pace
        self._plans = PlanLog(Path(self.folder) / "plans")
        self._state = state
        self._files = SegmentFiles(self.folder, shared_folder())

    def work(self, number: int, rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Called once per micro-batch with all exchange rows of a bucket."""
        store, watch = self._store(number), Stopwatch()
        with carrying():
            taken = rows_of(rows)
            with watch("open"):
                bucket = self._open(store, number, plan_of(taken))
            with watch("work"):
                received = read_input(taken, self.level, bucket.level.ports)
                outputs = bucket.work(received, self.pace)
            with watch("send"):
                leaving = [*received.passing, *self._sent(bucket, number, outputs)]
            with watch("save"):
                self._save(store, bucket)
            told = bucket.report(received.now, live=received.live)
            told["metrics"] |= {"took": self._took(watch, received, number), "state": store.counts}
            leaving.append(Row(number, REPORT_OUTPUT, 0, note=json.dumps(told)))
        for together in _framed(leaving):
            yield _outputs(together) if self.last else pd.DataFrame(together, columns=list(Row._fields))
        _cache((self.folder, self.level, number), bucket)

    def _store(self, number: int) -> BucketState:
        return BucketState(self._state, self._files, number, self.level)

    def _took(self, watch: Stopwatch, received: BucketInput, number: int) -> dict[str, float]:
        """The seconds of this bucket; the first one of all tells those of the readers, too."""
        tasks = [summary["took"] for summaries in received.summaries.values() for summary in summaries]
        first = self.level == 1 and number == self.buckets[0]
        return dict(sum(map(Counter, tasks if first else []), Counter(watch.took)))

    def _sent(self, bucket: Bucket, number: int, outputs: dict[str, list[Batch]]) -> Iterator[Row]:
        """What leaves a bucket in a micro-batch: tuples and bounds for later levels, and results."""
        place, leaving = self.buckets.index(number), bucket.level.leaving
        for port, crossing in leaving.items():
            yield from split(port, outputs.pop(port, []), crossing.keys, self.buckets, place)
        for promise in bucket.promises():
            note = json.dumps({**promise, "bucket": str(number)})
            yield from (Row(each, BOUNDS_PORT, place, note=note) for each in self.buckets)
        for name, table in bucket.counted(outputs).items():
            for piece in _pieces(table):
                yield Row(number, RESULT_PORT, 0, pack(piece), name)

    # State

    def _open(self, store: BucketState, number: int, version: int) -> Bucket:
        """The bucket as the last committed micro-batch left it, at work by a version of the plan."""
        _, cached = _CACHED.pop((self.folder, self.level, number), (0.0, None))
        manifest = store.manifest()
        if manifest is None:
            return self._new(number, version)
        if [manifest.get(name) for name in ("layout", "level")] != [_LAYOUT, self.level]:
            raise CheckpointError(
                "the checkpoint's state belongs to another stage, or to another version of Millrace",
                hint="Go on with the version it was made with, or start anew with another --checkpoint folder.",
            )
        version = max(version, manifest["plan"])
        if cached is not None and cached.token == manifest["token"] and cached.version == version:
            return cached
        return self._restored(store, number, manifest, version)

    def _new(self, number: int, version: int) -> Bucket:
        read, place = self._plans.read(version), self.buckets.index(number)
        progress_files = ProgressFiles(Path(self.folder) / "commits")
        bucket = Bucket.new(read.plan, self.level, len(self.buckets), progress_files, version, place)
        use_tables(bucket.executor.graph, bucket.edges.values(), Path(self.folder) / TABLES, read.tables)
        return bucket

    def _restored(self, store: BucketState, number: int, manifest: dict[str, Any], version: int) -> Bucket:
        bucket = self._new(number, version)
        bucket.recall(manifest["bucket"])
        segments = {(node, part): store.segment(node, place) for (node, part), place in bucket.segments.items()}
        bucket.executor.restore(manifest["control"], segments)
        bucket.catch_up(manifest["control"]["sources"])
        return bucket

    def _save(self, store: BucketState, bucket: Bucket) -> None:
        """Write what has changed since the last micro-batch."""
        saved = bucket.executor.save()
        for (node, part), table in saved.added.items():
            bucket.segments[node, part] = store.add(node, table)
        for node, part in saved.removed:
            store.remove(node, bucket.segments.pop((node, part)))
        while bucket.stale_segments:
            store.remove(*bucket.stale_segments.pop())
        bucket.token = secrets.token_hex(8)
        store.write_manifest(
            {
                "layout": _LAYOUT,
                "level": self.level,
                "plan": bucket.version,
                "token": bucket.token,
                "control": saved.control,
                "bucket": bucket.note(),
            }
        )


def _cache(place: tuple[str, int, int], bucket: Bucket) -> None:
    now = time.monotonic()
    for idle in [each for each, (used, _) in _CACHED.items() if now - used > _IDLE]:
        del _CACHED[idle]
    _CACHED[place] = now, bucket


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """Results in pieces: Spark takes no cell that is too large, and a hot key may give many rows."""
    size = max(1, table.num_rows * _MOST_BYTES // max(table.nbytes, 1))
    yield from (table.slice(start, size) for start in range(0, table.num_rows, size))


def _framed(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows as Spark takes them one after another, some together but not too much; once at least."""
    together: list[Row] = []
    size = 0
    for row in rows:
        if together and size + len(row.blob) > _MOST_BYTES:
            yield together
            together, size = [], 0
        together.append(row)
        size += len(row.blob)
    yield together


def _outputs(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows of a last level that the sink takes."""
    outputs = [
        (row.note, row.blob, "") if row.port == RESULT_PORT else (row.port, row.blob, row.note)
        for row in rows
        if row.port not in (CONTROL_PORT, STREAM_PORT)
    ]
    return pd.DataFrame(outputs, columns=["output", "blob", "note"])
