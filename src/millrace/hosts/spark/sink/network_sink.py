"""The one sink of a network: how a micro-batch is committed.

1. Each task writes its results as hidden files under random names, syncs them, and returns a `TaskOutput` with them
   and with the reports of its buckets (`NetworkWriter.write`). Of an update query it also writes the latest answer of
   each key.
2. The driver syncs the disk of the checkpoint: Spark does not sync what it keeps there, its offsets and its state.
3. The driver gives the files their final names, which are fixed by batch and partition: a replayed batch replaces its
   files (`NetworkWriter.commit`, from here on). Only those staged for writers stay as the first attempt made them: a
   writer may have them already.
4. The driver merges the reports into the record of the batch, with the progress of streams in files beside the log.
5. The folders of these files are synced, and the record is written to the commit log: from then on the batch counts.
   All files of it are in place by then, and survive a power cut.
6. Spark writes its own commit. If the process dies between 5 and 6, Spark runs the batch again, and steps 1 to 5 write
   the same files and the same record again.
7. Meanwhile the run gives writers what is staged for them (see deliveries.py).
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from millrace.hosts.answers.answer_files import kept_name, part_name, write
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.checkpoint.durable_files import make_folder, sync_all
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.sinks.writers import stage_rows
from millrace.hosts.spark.batch_times import Stopwatch
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.exchange.rows import REPORT_OUTPUT, unpack
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.sink.deliveries import LOOK, is_behind
from millrace.hosts.spark.sink.reports import merge

Sink = Mapping[str, Any]
"""Where the results of a query go (see `Version.sinks`)."""

_HIDDEN = ".millrace-"
_PRUNE_EVERY = 50


@dataclass(frozen=True)
class TaskOutput(WriterCommitMessage):
    """What one task wrote: per output a hidden file and its number of rows, and the buckets' reports."""

    partition: int
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    reports: list[Record] = field(default_factory=list)
    latest: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By output a hidden file with the latest answers, and its digest."""
    digests: dict[str, str] = field(default_factory=dict)
    """By output that of the file that is staged for its writer."""


class NetworkSink(DataSource):
    """Output rows into files and commit records.

    Options: `folder` (the checkpoint's), where the plans are that say where results go, and the commit log; `owner`,
    the run that may write it.
    """

    @classmethod
    def name(cls) -> str:
        return "millrace_sink"

    def streamWriter(self, schema: StructType, overwrite: bool) -> NetworkWriter:
        return NetworkWriter(self.options)


class NetworkWriter(DataSourceStreamArrowWriter):
    """Writes in the tasks, commits in the driver."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.folder, self.owner = Path(options["folder"]), options.get("owner")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        with carrying():
            reports: list[Record] = []
            tables: dict[str, list[pa.Table]] = defaultdict(list)
            for output, blob, note in _rows(iterator):
                if output == REPORT_OUTPUT:
                    reports.append(json.loads(note))
                else:
                    tables[output].append(unpack(blob))
            sinks, watch, digests = self._sinks(reports), Stopwatch(), dict[str, str]()
            with watch("write"):
                files = {
                    output: self._write_output(output, sinks[output], parts, digests)
                    for output, parts in tables.items()
                }
                latest = {
                    output: self._write_latest(output, sinks[output]["latest"], parts)
                    for output, parts in tables.items()
                    if "latest" in sinks[output] and files[output][1]
                }
            reports.append({"metrics": {"took": watch.took}})
            context = TaskContext.get()
            partition = context.partitionId() if context else 0
            return TaskOutput(partition, _not_empty(files), reports, latest, digests)

    def _sinks(self, reports: Iterable[Record]) -> Mapping[str, Sink]:
        """Where results go, by the plan that the reports are of."""
        number = max((report.get("plan", 0) for report in reports), default=0)
        return PlanLog(self.folder / "plans").read(number).sinks if number else {}

    def _write_output(
        self, output: str, sink: Sink, parts: Sequence[pa.Table], digests: dict[str, str]
    ) -> tuple[str, int]:
        """The hidden file with all of the task's rows for the output, and their number; the digest of a staged one."""
        rows = pa.concat_tables(parts)
        if not rows.num_rows:
            return "", 0
        path = Path(sink["path"]) / f"{_HIDDEN}{uuid4().hex}.{sink['format']}"
        if path.is_relative_to(self.folder):  # That of a sink was made at the start: one that was removed is an error.
            make_folder(path.parent, "the folder of results")
        if "writer" in sink:
            digests[output] = stage_rows(path, sink["writer"], rows)
        else:
            self.write_file(path, sink["format"], rows, sink.get("options", {}))
        files().sync_file(path)
        return path.name, rows.num_rows

    def _write_latest(self, query: str, spec: Mapping[str, Any], parts: Sequence[pa.Table]) -> tuple[str, str]:
        """The hidden file with the last of the task's rows for each key, and its digest."""
        found = AnswerTable(query, parts[0].schema, spec["key"])
        for rows in parts:
            found.put(rows)
        path = Path(spec["path"]) / f"{_HIDDEN}{uuid4().hex}.arrow"
        make_folder(path.parent, "the folder of latest answers")
        return path.name, write(path, found.table(), query, spec["key"])

    def write_file(self, path: Path, format: str, rows: pa.Table, options: Mapping[str, str]) -> None:
        """One file of results, by the connector of its format."""
        # Imported in the task: planning a query need not load every file format.
        from millrace.connectors.files.file_writer import write_file

        write_file(path, format, rows, options, files().create)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with carrying():
            tasks = sorted(_written(messages), key=lambda task: task.partition)
            reports = [report for task in tasks for report in task.reports]
            sinks, watch = self._sinks(reports), Stopwatch()
            log = CommitLog(self.folder / "commits")
            self._check_owner(log)
            has_writers = any("writer" in sink for sink in sinks.values())
            while has_writers and is_behind(self.folder, batchId):
                self._check_owner(log)
                time.sleep(LOOK)
            first = ((log.at(batchId) if has_writers else None) or {}).get("outputs", {})
            with watch("commit"):
                # What Spark itself has written for this batch must be on disk before any result of it is given away.
                files().sync_disk(self.folder)
                outputs = {
                    output: self._publish(output, sink, tasks, batchId, first.get(output, {}))
                    for output, sink in sinks.items()
                }
                answers: dict[str, str] = {}
                for output, sink in sinks.items():
                    if "latest" in sink:
                        answers |= _publish_latest(output, Path(sink["latest"]["path"]), tasks, batchId)
                sync_all((), _folders(sinks.values()))
            reports.append({"metrics": {"took": watch.took}})
            merged = merge(log.before(batchId), reports)
            merged["sources"] = log.progress_files.save_changed(merged["sources"])
            record = {"batch": batchId, "outputs": outputs, **merged, "committed": time.time_ns() // 1000}
            if answers:
                record["answers"] = answers
            log.write(batchId, record)
            if batchId % _PRUNE_EVERY == 0:
                log.prune()

    def _check_owner(self, log: CommitLog) -> None:
        if self.owner is not None:
            log.check_owner(self.owner)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        for task in _written(messages):
            for output, sink in self._sinks(task.reports).items():
                if output in task.files:
                    files().remove(Path(sink["path"]) / task.files[output][0])
                if output in task.latest:
                    files().remove(Path(sink["latest"]["path"]) / task.latest[output][0])

    def _publish(
        self, output: str, sink: Sink, tasks: Sequence[TaskOutput], batch: int, first: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Give the batch's files of one output their final names, and drop what an earlier attempt left.

        Of a batch that is on record by its first attempt, a writer may have the rows already: those stay.
        """
        folder, names, rows = Path(sink["path"]), dict[str, str](), 0
        for task in tasks:
            final = folder / f"part-{batch:08d}-{task.partition:04d}.{sink['format']}"
            hidden, count = task.files.get(output, ("", 0))
            if hidden and "staged" in first:
                files().remove(folder / hidden)
            elif hidden:
                files().rename(folder / hidden, final)
                names[final.name] = task.digests.get(output, "")
                rows += count
            elif final.exists() and "staged" not in first:
                files().remove(final)
        if "writer" in sink:
            return {"rows": rows, "files": [], "staged": names, **first}
        return {"rows": rows, "files": list(names)}


def _publish_latest(output: str, folder: Path, tasks: Sequence[TaskOutput], batch: int) -> dict[str, str]:
    """Give the latest answers of a batch their final names, in the place of what an earlier attempt left.

    Their digests by path in the checkpoint.
    """
    found: dict[str, str] = {}
    for task in tasks:
        final = folder / part_name(batch, task.partition)
        if output in task.latest:
            hidden, found[kept_name(final)] = task.latest[output]
            files().rename(folder / hidden, final)
        elif final.exists():
            files().remove(final)
    return found


def clean(path: Path | str) -> None:
    """Remove what tasks that died have left in an output's folder; only while no run writes to it."""
    for hidden in Path(path).glob(f"{_HIDDEN}*"):
        files().remove(hidden)


def _folders(sinks: Iterable[Sink]) -> set[Path]:
    """The folders in which files of a micro-batch get their names."""
    found = {folder["path"] for sink in sinks for folder in (sink, sink.get("latest")) if folder is not None}
    return {Path(path) for path in found if Path(path).is_dir()}


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Any, str]]:
    """Each output row; there are few, for the tuples are in the blobs."""
    for batch in batches:
        outputs, notes = batch.column("output").to_pylist(), batch.column("note").to_pylist()
        for index, (output, note) in enumerate(zip(outputs, notes, strict=True)):
            yield output, batch.column("blob")[index].as_buffer(), note


def _not_empty(files: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    return {output: written for output, written in files.items() if written[1]}


def _written(messages: Iterable[WriterCommitMessage | None]) -> list[TaskOutput]:
    """The messages of tasks that wrote; a failed task has none."""
    return [message for message in messages if isinstance(message, TaskOutput)]
