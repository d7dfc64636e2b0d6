"""The low level of a stream: files in, exchange rows out, all of it in one task.

Rules:
- Rows are stamped, checked, filtered and projected by the kernel, then packed: one Arrow blob per bucket and port.
- The progress of the stream goes to every bucket on a row of its own, so that bounds need no second pass. Of partitions
  and groups it names those that have changed.
- A task knows the stream as it was when its micro-batch began. The files of a micro-batch are read side by side, except
  where what becomes of a row depends on all rows before it. Small files share a task, which takes longer to start than
  they take to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.files.file_options import reading
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.input_files import Span, list_files
from millrace.connectors.generators.generated_input import make_slice, slices_of
from millrace.connectors.native import is_generated
from millrace.connectors.stream_input import Chunk, read_schema
from millrace.hosts.spark.batch_times import Stopwatch
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles, changed_order
from millrace.hosts.spark.exchange.buckets import split
from millrace.hosts.spark.exchange.rows import STREAM_PORT, Row, exchange_rows
from millrace.hosts.spark.operator_reports import meter, operator_reports
from millrace.hosts.spark.source.feed_files import count_removed, file_name
from millrace.hosts.spark.source.stream_files import FileScan, Listing
from millrace.hosts.spark.source.stream_partitions import SlicePartition, chunks_of
from millrace.hosts.tables.table_files import TABLES, use_tables
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import ARRIVED, PARTITION, Batch
from millrace.kernel.graph.executor import Executor
from millrace.kernel.progress.ingress import Ingress
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.physical.levels import Exchange
from millrace.plan.physical.stages import Physical

_PACK_ROWS = 1_000_000
_PACKS = 1_000_003
"""More than a file makes of them; odd, so that what may go anywhere goes to all buckets in turn."""
_TASK_BYTES = 2**20
"""How large the files of a task are together at least, if there are so many."""


@dataclass(frozen=True)
class StreamLowLevel:
    """What one stream of a network does before the shuffle (see `stream_files.LowLevel`).

    `live` says that the run goes on until it is stopped, so that files are read as they come.
    """

    plan: Physical
    stream_name: str
    buckets: tuple[int, ...]
    live: bool = False
    version: int = 1
    """The number of the plan."""
    folder: str = ""
    """The checkpoint's, where the partitions of the stream are found."""
    committed: int = 0
    """When the micro-batch before was committed."""
    tables: Mapping[str, Any] = field(default_factory=dict)
    """The versions of the network's tables."""

    @cached_property
    def _stream(self) -> Stream:
        return next(each for each in self.plan.network.streams() if each.name == self.stream_name)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read."""
        return read_schema(self._stream, self.plan.columns_read(self.stream_name))

    @cached_property
    def _exchanges(self) -> dict[str, Exchange]:
        return {each.port: each for each in self.plan.exchanges() if each.stream.name == self.stream_name}

    def files(self) -> Listing:
        """What there is to read, in order: files, or the slices of a generated stream."""
        connector = self._stream.connector
        if is_generated(connector):
            return Listing([f"{number:08d}" for number in range(slices_of(self._stream))])
        # Executors need not work in the folder of the driver.
        here = f"{Path.cwd()}/"
        paths = [path if path.startswith("/") else here + path for path in list_files(connector, self.stream_name)]
        # Looked up after the files: those that vanish in between are counted.
        removed = count_removed(Path(connector.options["path"]))
        if removed:
            paths = [path for path in paths if path.rpartition("/")[2] >= file_name(removed)]
        return Listing(paths, removed)

    @property
    def in_sequence(self) -> bool:
        """True if one task reads a micro-batch: what becomes of a row depends on all rows before it."""
        measured = self._stream.time.max_future_skew is not None and not self._measured_by_clock
        return measured or self.plan.in_sequence(self.stream_name)

    @property
    def _measured_by_clock(self) -> bool:
        return self.live and self._stream.replay is None

    def tasks(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[int]:
        """How many of a micro-batch's files each task reads, one after another."""
        if self.in_sequence and paths:
            return [len(paths)]
        if is_generated(self._stream.connector) or not paths:
            return [1] * len(paths)
        sizes = sizes or [self.size(path) for path in paths]
        # There are as many buckets as tasks run at once. More tasks than those only cost: each has a start, and what
        # it aggregates beforehand is less.
        whole = max(_TASK_BYTES, -(-sum(sizes) // len(self.buckets)))
        counts, room = [0], whole
        for size in sizes:
            if counts[-1] and size > room:
                counts, room = [*counts, 0], whole
            counts[-1] += 1
            room -= size
        return counts

    def arrived(self, path: str) -> int | None:
        """The clock at which a file was put in its place, or later: that of its last change, a new name included."""
        return None if is_generated(self._stream.connector) else Path(path).stat().st_ctime_ns // 1000

    def size(self, path: str) -> int:
        """The bytes of a file; what is generated takes none."""
        return 0 if is_generated(self._stream.connector) else Path(path).stat().st_size

    @property
    def is_ours(self) -> bool:
        """True if no files of a user are read."""
        connector = self._stream.connector
        return is_generated(connector) or Path(connector.options.get("path", "")).is_relative_to(
            Path(self.folder) / "feeds"
        )

    def read(
        self,
        paths: Sequence[str],
        index: int,
        scan: FileScan,
        before: dict[str, Any],
        *,
        alone: bool,
        spans: Sequence[Span] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The exchange rows of some files, or of spans of them, one after another."""
        chunks = (chunk for path, span in zip_longest(paths, spans) for chunk in self._chunks(path, span))
        return self.exchange(chunks, index, index + len(paths), scan, before, alone=alone)

    def read_slices(self, part: SlicePartition) -> Iterator[pa.RecordBatch]:
        """The exchange rows of parts of partitions, one after another."""
        chunks = chunks_of(self._stream, self.schema, part.slices)
        read = part.index + len(part.slices)
        return self.exchange(chunks, part.index, read, part.scan, part.before, alone=part.alone, partitions=part.known)

    def exchange(
        self,
        chunks: Iterable[Chunk],
        index: int,
        read: int,
        scan: FileScan,
        before: dict[str, Any],
        *,
        alone: bool,
        partitions: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The exchange rows of rows as they are read; tasks come in the order of `index`, and `read` says how far the
        stream has been read after this one. The bound of the stream waits for the `partitions` of its source."""
        pa.set_cpu_count(1)
        now = scan.now
        # What the system stamps must not fall behind the clock of an earlier micro-batch.
        entered = scan.came if self._stream.time.kind == "external" else now
        live = (self.stream_name,) if self._measured_by_clock else ()
        graph = self.plan.low(self.stream_name)
        executor = Executor(graph, live=live, meter=meter)
        use_tables(graph, executor.ingress.values(), Path(self.folder) / TABLES, self.tables)
        ingress = executor.ingress[self.stream_name]
        ingress.frozen = bool(self._stream.time.partitions) and not alone
        if before:
            ingress.resume(self._progress(before))
        if self._stream.time.partitions == (PARTITION,):
            ingress.order.expect((name,) for name in partitions)
        gathered: dict[str, list[Batch]] = {port: [] for port in self._exchanges}
        rows, number, watch = 0, index * _PACKS, Stopwatch()
        for chunk in watch.each("read", chunks):
            with watch("low"):
                if chunk.unread:
                    executor.edges.reject(self.stream_name, chunk.unread, entered)
                executor.push(self.stream_name, chunk.rows, entered, chunk.locate)
                executor.run(StandingClock(now))
                for port, batches in executor.take(now).items():
                    gathered[port] += batches
                    rows += sum(map(len, batches))
            if rows >= _PACK_ROWS:
                with watch("pack"):
                    packed = self._packed(gathered, number)
                yield packed
                gathered, rows, number = {port: [] for port in self._exchanges}, 0, number + 1
        summary = self._summary(ingress, read, scan, before)
        with watch("low"):
            # The end of the task, not of the stream: what the low level still holds is released.
            executor.edges.end(self.stream_name)
            executor.run(StandingClock(now))
            for port, batches in executor.take(now).items():
                gathered[port] += batches
        with watch("pack"):
            packed = self._packed(gathered, number)
        yield packed
        queries = self.plan.queries_of_ports()
        further = {
            "malformed": executor.malformed(queries),
            "disorder": ingress.disorder.save(),
            "took": watch.took,
            "operators": operator_reports(graph.operators(), now, queries),
        }
        note = json.dumps({**summary, **further})
        yield exchange_rows([Row(bucket, STREAM_PORT, index, note=note) for bucket in self.buckets])

    def _chunks(self, path: str, span: Span | None) -> Iterator[Chunk]:
        schema = self.schema
        if is_generated(self._stream.connector):
            yield Chunk(make_slice(self._stream, schema, int(path)).drop_columns([ARRIVED]))
            return
        # Rows that were fed from Python have no place that a user knows.
        ours = self.is_ours
        for batch in read_file(Path(path), reading(self._stream), schema, batch_rows=262_144, span=span):
            yield Chunk(batch.rows, batch.unread, locate=None if ours else batch.locate)

    def _packed(self, gathered: dict[str, list[Batch]], number: int) -> pa.RecordBatch:
        """One row per port and bucket, with all its tuples; the number says in which order tuples entered."""
        return exchange_rows(
            [
                row
                for port, batches in gathered.items()
                for row in split(port, batches, self._exchanges[port].keys, self.buckets, number)
            ]
        )

    def _progress(self, before: dict[str, Any]) -> dict[str, Any]:
        """The progress of the stream; groups that do not change need not be sent again."""
        known = ProgressFiles(Path(self.folder) / "commits").whole(before)
        return {**known, "order": {**known["order"], "told": True}}

    def _summary(self, ingress: Ingress, read: int, scan: FileScan, before: dict[str, Any]) -> dict[str, Any]:
        """The progress of the stream, as it is sent to every bucket; `since` is how many files had been read before."""
        known = {"stream": self.stream_name, "files": read, "now": scan.now, "first": scan.first, "all": scan.all}
        run = {"plan": self.version, "live": self.live, "committed": self.committed}
        order = changed_order(ingress, before.get("order", {}).get("runs", ()))
        return {**known, **run, "since": before.get("files", 0), **ingress.save(order)}
