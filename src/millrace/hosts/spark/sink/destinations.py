"""Where results go on Spark: files, memory and console, writers of the user's own, and sinks that Spark writes.

Rules:
- Tasks write files; the sink's commit gives them names (writer.py). What is shown or relayed goes to files in the
  checkpoint first, what a writer takes is staged there; these files go when they have been handed on.
- A folder that holds results of another run is refused, unless its query goes on.
- Of update queries tasks also write the latest answers, into the checkpoint, wherever the results go (standing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from millrace.connectors.native import HANDED, is_native_sink
from millrace.hosts.answers.answer_files import folder_of
from millrace.hosts.answers.run_answers import RunAnswers
from millrace.hosts.sinks.outputs import (
    PLAIN,
    checked_folder,
    file_sinks,
    joining_folder,
    kept_in_memory,
    prepare_folder,
    sink_folder,
)
from millrace.hosts.sinks.writer_protocol import WriterSpec, run_name
from millrace.hosts.spark.commit_log.commit_log import CommitLog, Record
from millrace.hosts.spark.sink.network_sink import clean
from millrace.hosts.spark.sink.relay import Relay
from millrace.plan.nodes.content_names import content_name
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import key_of

Spec = dict[str, Any]

_MERGE_EVERY = 16
"""Micro-batches after which the files of latest answers are merged."""


class Destinations:
    """The sinks of a network's queries."""

    def __init__(self, folder: Path, queries: Sequence[Query], *, fresh: bool) -> None:
        self.folder = folder
        self.memory: dict[str, list[pa.Table]] = {}
        self.specs: dict[str, Spec] = {}
        """What the tasks are told, by query: {"format", "path", "options"} or "writer", and "latest" (plans.py)."""
        self._fresh = self._begins = fresh
        self._queries: dict[str, Query] = {}
        self._relays: dict[str, Relay] = {}
        self._leaving: list[Query] = []
        """Queries whose last results are still to be relayed."""
        self._commits = CommitLog(folder / "commits")
        self.answers = RunAnswers(queries, folder, None if fresh else self._committed())
        self.prepare(queries, known=not fresh)()

    def prepare(
        self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None, *, known: bool = False
    ) -> Callable[[], None]:
        """Check the sinks of a changed network; the call it gives takes them into use.

        Queries that write where they wrote before, or did before they were `renamed`, go on; all do if they are known.
        """
        was = renamed or {}
        files = file_sinks(queries, relayed=True)
        specs = {}
        for query in queries:
            before = self.specs.get(was.get(query.name, query.name))
            specs[query.name] = self._spec(query, files, before, known=known)
        memory = kept_in_memory([query for query in queries if not self._goes_on(query)])
        take_answers = self.answers.prepare(queries, was)

        def take_into_use() -> None:
            before = self._relayed
            self.specs, self._queries = specs, {query.name: query for query in queries}
            self._leaving += [
                query for name, query in before.items() if not self._alike(query, self._relayed.get(name))
            ]
            self.memory.update(memory)
            take_answers()
            # Before the change is on record: if it never is, answers are missing until their keys change; afterwards
            # a query that takes another's name might show its answers.
            self.merge(self._committed())

        return take_into_use

    def _committed(self) -> int | None:
        """The newest micro-batch that is committed."""
        newest = self._commits.newest()
        return None if newest is None else int(newest["batch"])

    def merge(self, batch: int | None) -> None:
        """Make few files of the latest answers, as of a micro-batch that is committed."""
        if batch is not None:
            self.answers.stage(batch)
            self.answers.sweep()

    def stand(self, batch: int) -> None:
        """Let the latest answers of a committed micro-batch stand."""
        self.answers.put_parts(batch)
        if batch % _MERGE_EVERY == 0:
            self.merge(batch)

    def _spec(self, query: Query, files: Iterable[str], before: Spec | None, *, known: bool) -> Spec:
        connector = query.sink.connector
        if connector.format == HANDED:
            staged = self.folder / "staged" / query.name
            spec: Spec = {"format": "arrow", "path": str(staged)}
            spec["writer"] = WriterSpec.of(query, run_name(self.folder, fresh=self._fresh))
            self._fresh = False
        elif query.name in files:
            own = self._folder(query, before, known=known).resolve()
            options = {key: value for key, value in connector.options.items() if key not in ("path", "mode")}
            spec = {"format": connector.format, "path": str(own), "options": options}
        elif is_native_sink(query.sink):
            spec = {"format": "parquet", "path": str(self._relayed_from(query))}
        else:
            spec = {"format": "parquet", "path": str(self.folder / "results" / query.name)}
        if before is None:
            clean(spec["path"])
        if (key := key_of(query)) is not None:
            spec["latest"] = {"path": str(folder_of(self.folder, query.name)), "key": list(key)}
        return spec

    def _folder(self, query: Query, before: Spec | None, *, known: bool) -> Path:
        """The folder of a file sink: that of a query that goes on may hold results."""
        own = sink_folder(query.sink)
        if known or (before is not None and before["path"] == str(own.resolve())):
            return checked_folder(query.sink, fresh=False)
        return checked_folder(query.sink, fresh=True) if self._begins else joining_folder(query.sink)

    def clear(self) -> None:
        """Empty the folders of a run that begins anew, now that nothing refuses it: their sinks say to overwrite."""
        if self._begins:
            for query in file_sinks(list(self._queries.values()), relayed=True).values():
                prepare_folder(query, fresh=True)
            self._begins = False

    def _goes_on(self, query: Query) -> bool:
        before = self._queries.get(query.name)
        return before is not None and before.root == query.root

    def taken(self, record: Record) -> Iterator[tuple[str, pa.Table]]:
        """New rows of the queries whose results are kept in memory or shown; their files go."""
        for name, query in self._queries.items():
            if query.sink.connector.format not in PLAIN:
                continue
            for file in record["outputs"].get(name, {}).get("files", []):
                path = Path(self.specs[name]["path"], file)
                rows = pq.read_table(path, partitioning=None)
                if name in self.memory:
                    self.memory[name].append(rows)
                yield name, rows
                path.unlink()

    # Sinks that Spark writes

    @property
    def _relayed(self) -> dict[str, Query]:
        return {name: query for name, query in self._queries.items() if is_native_sink(query.sink)}

    @property
    def relays_anew(self) -> bool:
        """Whether relays must be started or stopped."""
        return bool(self._leaving) or set(self._relays) != set(self._relayed)

    def check_relays(self, session: SparkSession, queries: Sequence[Query], trigger: str, log_file: Path) -> None:
        """Refuse queries whose sinks Spark cannot write to; those that it writes to already are left alone."""
        for query in queries:
            relay = self._relays.get(query.name)
            if is_native_sink(query.sink) and not (relay is not None and self._alike(query, relay.query)):
                self._relay(session, query, trigger, log_file).drain()

    def hand_last_on(self, session: SparkSession, trigger: str, log_file: Path) -> None:
        """Hand on the last results of queries that leave."""
        while self._leaving:
            query = self._leaving[-1]
            (self._relays.pop(query.name, None) or self._relay(session, query, trigger, log_file)).drain()
            self._leaving.pop()

    def relay(self, session: SparkSession, trigger: str, log_file: Path, *, follow: bool) -> None:
        """Hand results on to the sinks that Spark writes: as they come if told to follow, or when told to drain."""
        for name, query in self._relayed.items():
            if name not in self._relays:
                self._relays[name] = self._relay(session, query, trigger, log_file)
                if follow:
                    self._relays[name].start()

    def _relay(self, session: SparkSession, query: Query, trigger: str, log_file: Path) -> Relay:
        results = self._relayed_from(query)
        return Relay(session, query, results, self.folder / "relays" / results.name, trigger, log_file)

    def _relayed_from(self, query: Query) -> Path:
        """The folder from which results are relayed: another one for another sink or other columns."""
        name = content_name(query.name, (query.sink.connector, query.root.schema.to_string()))
        return self.folder / "relayed" / name.replace("#", "-")

    def _alike(self, query: Query, other: Query | None) -> bool:
        """Whether two queries have one relay."""
        return other is not None and self._relayed_from(query) == self._relayed_from(other)

    def check(self) -> None:
        """Raise what made a relay fail, if one did."""
        for relay in self._relays.values():
            relay.check()

    def drain(self) -> None:
        """Hand on all that there is, and end."""
        for relay in self._relays.values():
            relay.drain()

    def stop(self) -> None:
        """Hand nothing on any more."""
        for relay in self._relays.values():
            relay.stop()
