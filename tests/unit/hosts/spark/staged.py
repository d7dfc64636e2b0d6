"""A network cut as for Spark, without Spark: files are read, rows shuffled and stages called by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles
from millrace.hosts.spark.exchange.rows import REPORT_OUTPUT, Row, unpack
from millrace.hosts.spark.sink.reports import merge
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.hosts.spark.source.wakeups import WakeupPartition, wakeup_rows
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.hosts.spark.stage.shipped_stage import ShippedStage
from millrace.hosts.spark.stage.stage import _CACHED
from millrace.hosts.tables.run_tables import RunTables
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

Key = tuple[str, int]


class State:
    """A map state per bucket, as a state store would keep it."""

    def __init__(self) -> None:
        self.values: dict[int, dict[Key, tuple[bytes]]] = defaultdict(dict)
        self.bucket = 0

    def getMapState(self, name: str, key: str, value: str) -> State:
        return self

    def getValue(self, key: Key) -> tuple[bytes] | None:
        return self.values[self.bucket].get(key)

    def updateValue(self, key: Key, value: tuple[bytes]) -> None:
        self.values[self.bucket][key] = value

    def removeKey(self, key: Key) -> None:
        del self.values[self.bucket][key]


class Staged:
    """All that a run on Spark does in a micro-batch, in this process."""

    def __init__(
        self,
        network: QueryNetwork,
        folder: Path,
        *,
        buckets: Sequence[int] = (3, 5, 8),
        live: bool = False,
        stages: int | None = None,
        pace: TriggerPace | None = None,
        took: int = 0,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.buckets, self.live = folder, tuple(buckets), live
        self.pace = pace
        self.took = took
        """How long after its clock each micro-batch is committed."""
        self.version = 0
        self.tables = RunTables(folder, tables, {}, lambda text: None)
        self.change(network)
        self.depth = stages or self.plan.depth
        self.states = [State() for _ in range(self.depth)]
        self.record: dict[str, Any] = {}
        self.read: dict[str, int] = defaultdict(int)
        self.wants: dict[str, int] = {}

    def change(self, network: QueryNetwork) -> None:
        """Go on by another plan."""
        self.version += 1
        self.plan = physical(network)
        self.tables.open(network, 0)
        PlanLog(self.folder / "plans").write(self.version, Version(network, tables=self.tables.saved()))

    def refresh(self, table: str) -> None:
        """Read a table again, and go on by it."""
        points = {name: {**each, "outlets": {}} for name, each in self.record.get("sources", {}).items()}
        if self.tables.put(self.tables.read(table, 0), self.plan.network, points):
            self.change(self.plan.network)

    def batch(
        self,
        files: Mapping[str, Sequence[pa.Table]],
        now: int,
        *,
        control: bool = False,
        end: bool = False,
        first: int | None = None,
        all: bool = True,
    ) -> dict[str, list[dict[str, Any]]]:
        """Read a few files of each stream, and give the results; `control` wakes with the clock and what is wanted.

        The first of the files came at `first`, or now; unless they are `all` there is more to read.
        """
        scan = FileScan(now, now if first is None else first, now, all=all)
        rows = [row for stream, tables in files.items() for row in self._exchanged(stream, tables, scan)]
        if control or end:
            self.wants = self.record.get("wants", {})
            partition, committed = WakeupPartition(now, end, self.wants), self.record.get("committed", 0)
            rows += _rows_of(wakeup_rows(partition, self.buckets, self.version, live=self.live, committed=committed))
        record, results = self._staged(rows)
        self.record = {**record, "committed": now + self.took}
        return results

    def restart(self) -> None:
        """Forget what worker processes have at hand."""
        _CACHED.clear()

    def saved(self) -> tuple[Any, ...]:
        """All that the next micro-batch depends on, for `back_to`."""
        return deepcopy((self.states, self.record, dict(self.read), self.wants))

    def back_to(self, saved: tuple[Any, ...]) -> None:
        """Take micro-batches back, as after a failure: what they wrote is forgotten."""
        self.states, self.record, read, self.wants = deepcopy(saved)
        self.read = defaultdict(int, read)
        self.restart()

    def twice(self, *given: Any, **options: Any) -> tuple[dict[str, list[dict[str, Any]]], ...]:
        """What `batch` gives with what is at hand, and what it gives when it is run again; the first goes on."""
        before = self.saved()
        first = self.batch(*given, **options)
        after, cached = self.saved(), dict(_CACHED)
        self.back_to(before)
        again = self.batch(*given, **options)
        self.back_to(after)
        _CACHED.update(cached)
        return first, again

    def drain(self, now: int) -> dict[str, list[dict[str, Any]]]:
        """Wake the buckets until their queues hold nothing back; the results."""
        results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        while self.record.get("queued"):
            for query, rows in self.batch({}, now, control=True).items():
                results[query] += rows
            now += 1
        return dict(results)

    def _exchanged(self, stream: str, tables: Sequence[pa.Table], scan: FileScan) -> list[Row]:
        folder, committed = str(self.folder), self.record.get("committed", 0)
        low = StreamLowLevel(
            self.plan, stream, self.buckets, self.live, self.version, folder, committed, self.tables.saved()
        )
        index, paths = self.read[stream], []
        for table in tables:
            paths.append(str(self.folder / f"{stream}-{self.read[stream]:04d}.parquet"))
            pq.write_table(table, paths[-1])
            self.read[stream] += 1
        before = self.record.get("sources", {}).get(stream, {})
        counts, rows = low.tasks(paths), []
        for number, count in enumerate(counts):
            at = sum(counts[:number])
            read = low.read(paths[at : at + count], index + at, scan, before, alone=len(counts) == 1)
            rows += [row for batch in read for row in _rows_of(batch)]
        return rows

    def _staged(self, rows: list[Row]) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
        outputs: list[tuple[str, bytes, str]] = []
        for level, state in enumerate(self.states, start=1):
            stage = ShippedStage(str(self.folder), self.buckets, level=level, last=level == self.depth, pace=self.pace)
            stage.init(state)  # type: ignore[arg-type]
            given = []
            for bucket in dict.fromkeys(row.bucket for row in rows):
                state.bucket = bucket
                own = pd.DataFrame([row for row in rows if row.bucket == bucket], columns=list(Row._fields))
                for frame in stage.handleInputRows((bucket,), iter([own[::2], own[1::2]]), None):
                    given += list(frame.itertuples(index=False, name=None))
            rows, outputs = ([Row(*each) for each in given], []) if level < self.depth else ([], given)
        reports = [json.loads(note) for output, _, note in outputs if output == REPORT_OUTPUT]
        results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for output, blob, _ in outputs:
            if output != REPORT_OUTPUT:
                results[output] += unpack(blob).to_pylist()
        record = merge(self.record or None, reports)
        record["sources"] = ProgressFiles(self.folder / "commits").save_changed(record["sources"])
        return record, dict(results)


def _rows_of(batch: pa.RecordBatch) -> list[Row]:
    return [Row(*each.values()) for each in batch.to_pylist()]
