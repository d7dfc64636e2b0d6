"""What Spark does around our source, stages and sink in a micro-batch, in this process, with what it keeps on disk.

Spark's side of the contract, as far as recovery depends on it:
- The offsets of a micro-batch are logged before any of its tasks runs; its number is logged as committed after the sink
  has committed it. A run that starts again repeats the micro-batch whose offsets are logged and whose commit is not.
- State has a version per micro-batch. A repeated micro-batch begins with the version before it, whatever tasks of the
  first attempt have written.
- Every task has a reader, a stage or a writer of its own.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.exchange.rows import Row
from millrace.hosts.spark.sink.deliveries import Deliveries
from millrace.hosts.spark.sink.network_sink import NetworkWriter
from millrace.hosts.spark.source.network_source import NetworkReader
from millrace.hosts.spark.stage import stage as stages
from millrace.hosts.spark.stage.shipped_stage import ShippedStage
from millrace.plan.nodes.query_network import QueryNetwork
from tests.crash.kills import Kill
from tests.unit.hosts.spark.staged import State

BUCKETS = (3, 5)


class Killed(BaseException):
    """The process is gone: nothing catches this but the test."""


@dataclass
class Disk:
    """What survives a kill, beside the files of our own: Spark's offset log, commit log and state store."""

    offsets: list[dict[str, Any]] = field(default_factory=list)
    committed: int = 0
    """How many micro-batches Spark has committed."""
    states: dict[tuple[int, int], dict[int, Any]] = field(default_factory=dict)
    """By level and micro-batch the state of every bucket after it."""


class SparkByHand:
    """A run of a network in a folder; a killed one is followed by another on the same disk."""

    def __init__(self, network: QueryNetwork, sinks: Mapping[str, Mapping[str, Any]], folder: Path, disk: Disk) -> None:
        self.folder, self.disk = folder, disk
        plans = PlanLog(folder / "plans")
        plans.write(1, Version(network, sinks))
        for sink in sinks.values():
            Path(sink["path"]).mkdir(parents=True, exist_ok=True)
        self.depth = plans.read(1).plan.depth
        self.reader = self._reader()
        self.deliveries = Deliveries(folder)
        self.deliveries.resume({})

    def run(self) -> None:
        """Micro-batches until there is nothing new; the thread of deliveries has its turn after each of them."""
        self.deliveries.deliver()
        while self.micro_batch():
            self.deliveries.deliver()

    def run_to_the_end(self) -> None:
        """All that is there, and then the end of every stream."""
        self.reader.ends = True
        self.run()

    def micro_batch(self) -> bool:
        """Carry out the next micro-batch, or repeat one that was not committed; False if nothing is new."""
        number = self.disk.committed
        start = self.disk.offsets[number - 1] if number else self.reader.initialOffset()
        if len(self.disk.offsets) == number:
            end = self.reader.latestOffset(start, ReadAllAvailable())
            if end == start:
                return False
            self.disk.offsets.append(json.loads(json.dumps(end)))
        end = self.disk.offsets[number]
        batches = [batch for part in self.reader.partitions(start, end) for batch in self._reader().read(part)]
        rows = [Row(*each.values()) for batch in batches for each in batch.to_pylist()]
        for level in range(1, self.depth):
            rows = [Row(*each) for bucket in self._staged(level, number, rows).values() for each in bucket]
        tasks = self._staged(self.depth, number, rows)
        messages = [self._writer().write(_output_batches(given)) for given in tasks.values()]
        # Every task of this process has partition 0: their files are told apart by bucket, as Spark's partitions are.
        named = [_with_partition(message, place) for place, message in enumerate(messages)]
        self._writer().commit(named, number)
        self.disk.committed += 1
        return True

    def _staged(self, level: int, number: int, rows: list[Row]) -> dict[int, list[tuple[Any, ...]]]:
        """One stage over all buckets, with the state of the micro-batch before; what each bucket gives."""
        state, given = State(), {}
        state.values = deepcopy(self.disk.states.get((level, number - 1), defaultdict(dict)))
        for bucket in BUCKETS:
            own = pd.DataFrame([row for row in rows if row.bucket == bucket], columns=list(Row._fields))
            state.bucket, given[bucket] = bucket, []
            if not len(own):
                continue
            stage = ShippedStage(str(self.folder), BUCKETS, level=level, last=level == self.depth)
            stage.init(state)  # type: ignore[arg-type]
            for frame in stage.handleInputRows((bucket,), iter([own]), None):
                given[bucket] += list(frame.itertuples(index=False, name=None))
            # A task that ends has written its version of the state, whatever becomes of the micro-batch.
            self.disk.states[level, number] = deepcopy(state.values)
        return given

    def _reader(self) -> NetworkReader:
        return NetworkReader({"folder": str(self.folder), "plan": "1", "buckets": json.dumps(BUCKETS), "live": "false"})

    def _writer(self) -> NetworkWriter:
        return NetworkWriter({"folder": str(self.folder)})


@contextmanager
def killing_here(kill: Kill) -> Iterator[None]:
    """A block that is left by a kill at a point, as `tests.crash.kills` names it; fails if the point is not reached."""
    module, _, name = kill.point.partition(":")
    owner_name, _, attribute = name.rpartition(".")
    module_or_class = functools.reduce(getattr, filter(None, owner_name.split(".")), import_module(module))
    real, calls = getattr(module_or_class, attribute), 0

    @functools.wraps(real)
    def struck(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != kill.call:
            return real(*given, **named)
        if kill.when == "after":
            real(*given, **named)
        if kill.when != "inside":
            raise Killed
        return _first_of(real(*given, **named))

    with patch.object(module_or_class, attribute, struck):
        try:
            yield
        except Killed:
            return
    raise AssertionError(f"{kill} was not reached: {calls} calls")


def forget() -> None:
    """What dies with the worker processes: their cached buckets."""
    stages._CACHED.clear()


def _first_of(items: Iterator[Any]) -> Iterator[Any]:
    yield next(items)
    raise Killed


def _output_batches(given: list[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    columns = ("output", "blob", "note")
    types = (pa.string(), pa.binary(), pa.string())
    arrays = [pa.array([each[place] for each in given], kind) for place, kind in enumerate(types)]
    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _with_partition(message: Any, partition: int) -> Any:
    return replace(message, partition=partition)
