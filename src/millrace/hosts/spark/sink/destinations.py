"""Where results go on Spark: files, memory and console, writers of the user's own, and sinks that Spark writes.

Rules:
- Tasks write files; the commit of the sink gives them names (see network_sink.py). What is kept in memory, shown,
  relayed or taken by a writer (see deliveries.py) goes to files in the checkpoint first; these files are removed when
  they have been passed on.
- Of update queries tasks also write the latest answers, into the checkpoint, wherever the results go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.connectors.native import PLAIN_SINKS, is_native_sink
from millrace.connectors.sink_index import has_writer
from millrace.hosts.answers.answer_files import folder_of
from millrace.hosts.checkpoint.durable_files import sync_all
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.sinks.outputs import file_options
from millrace.hosts.sinks.sinks import Sinks, sink_folder
from millrace.hosts.sinks.writers import WriterSpec, reached_now, run_name
from millrace.hosts.spark.commit_log.answer_index import kept_answers, write_index
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.hosts.spark.sink.deliveries import staged_folder
from millrace.hosts.spark.sink.network_sink import clean
from millrace.hosts.spark.sink.relay import relayed_from
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import key_of

Spec = dict[str, Any]

_MERGE_EVERY = 16
"""Micro-batches after which the files of latest answers are merged."""


class Destinations:
    """Where the results of a network's queries go."""

    def __init__(self, folder: Path, queries: Sequence[Query], *, fresh: bool) -> None:
        self.folder = folder
        self.specs: dict[str, Spec] = {}
        """What the tasks are told, by query (see `Version.sinks`)."""
        self._fresh = fresh
        self._commits = CommitLog(folder / "commits")
        epoch = None if fresh else self._committed()
        # Its results have their names before it is on record; it is run again, and they are replaced.
        pending = (folder / "spark" / "offsets" / str(0 if epoch is None else epoch + 1)).exists()
        answered = any(key_of(query) is not None for query in queries)
        kept = None if fresh else kept_answers(folder, self._commits) if answered else {}
        self.sinks = Sinks(
            queries, fresh=fresh, checkpoint=folder, epoch=epoch, kept=kept, relayed=True, pending=pending
        )
        self.prepare(queries)()

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Check the sinks of a changed network; the call that it returns takes them into use (see `Sinks.prepare`)."""
        was = renamed or {}
        take_sinks = self.sinks.prepare(queries, was)
        specs = {
            query.name: self._spec(query, is_new=was.get(query.name, query.name) not in self.specs) for query in queries
        }

        def take_into_use() -> None:
            take_sinks()
            self.specs = specs
            # Before the change is on record: if it never is, answers are missing until their keys change; afterwards
            # a query that takes another's name might show its answers.
            self._merge_answers(self._committed())

        return take_into_use

    def _committed(self) -> int | None:
        """The newest micro-batch that is committed."""
        newest = self._commits.newest()
        return None if newest is None else int(newest["batch"])

    def _merge_answers(self, batch: int | None) -> None:
        """Make few files of the latest answers, as of a micro-batch that is committed."""
        if batch is not None:
            sync_all((), self.sinks.answers.stage(batch))
            write_index(self.folder, batch, self.sinks.answers.kept())
            self.sinks.answers.sweep()

    def put_answers(self, record: Record) -> None:
        """Put the latest answers of a committed micro-batch, given its record."""
        self.sinks.answers.put_parts(record.get("answers", {}))
        if record["batch"] % _MERGE_EVERY == 0:
            self._merge_answers(record["batch"])

    def _spec(self, query: Query, *, is_new: bool) -> Spec:
        connector = query.sink.connector
        if has_writer(connector):
            spec: Spec = {"format": "arrow", "path": str(staged_folder(self.folder, query.name))}
            spec["writer"] = WriterSpec.of(query, self._run_name())
        elif is_native_sink(query.sink):
            spec = {"format": "parquet", "path": str(relayed_from(self.folder, query))}
        elif connector.format in PLAIN_SINKS:
            spec = {"format": "parquet", "path": str(self.folder / "results" / query.name)}
        else:
            path = str(sink_folder(query.sink).resolve())
            spec = {"format": connector.format, "path": path, "options": file_options(query.sink)}
        if is_new:
            clean(spec["path"])
        if (key := key_of(query)) is not None:
            spec["latest"] = {"path": str(folder_of(self.folder, query.name)), "key": list(key)}
        return spec

    def _run_name(self) -> str:
        name, self._fresh = run_name(self.folder, fresh=self._fresh), False
        return name

    def writers(self) -> list[WriterSpec]:
        """The writers among the destinations."""
        return [spec["writer"] for spec in self.specs.values() if "writer" in spec]

    def reached(self, queries: Sequence[Query], renamed: Mapping[str, str]) -> dict[str, WriterSpec]:
        """The writers of a run that is resumed (see `reached_now`)."""
        return reached_now(queries, renamed, self._run_name)

    def take_shown(self, record: Record) -> Iterator[tuple[str, pa.Table]]:
        """New rows of the queries whose results are kept in memory or shown; their files are removed."""
        for name, query in self.sinks.queries.items():
            if query.sink.connector.format not in PLAIN_SINKS:
                continue
            for file in record["outputs"].get(name, {}).get("files", []):
                path = Path(self.specs[name]["path"], file)
                rows = pq.read_table(path, partitioning=None)
                if name in self.sinks.memory:
                    self.sinks.memory[name].append(rows)
                yield name, rows
                files().remove(path)
