"""Results for a sink that Spark writes: relayed from the files in which the network has committed them.

Rules:
- The network's own sink commits results as files, each once. A second streaming query reads these files and writes
  them to Spark's sink, with a checkpoint of its own: each file is relayed once, or again if Spark repeats a micro-batch
  that failed; what that means depends on the sink.
- Files that have been relayed are removed after a while.
- A new checkpoint is refused on a folder in which Spark's file sink has written before: Spark would take the new
  micro-batches for old ones, and drop them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.native import PLAIN_SINKS, is_native_sink
from millrace.errors import MillraceError, RequestError, RunError
from millrace.hosts.spark.failures import unwrap
from millrace.hosts.spark.source.native_streams import is_not_found, no_format, spark_schema
from millrace.plan.nodes.content_names import content_name
from millrace.plan.nodes.query_network import Query
from millrace.secrets import resolved


class Relay:
    """The way of one query's results from the folder where they are committed to its sink."""

    def __init__(
        self,
        session: SparkSession,
        query: Query,
        folder: Path,
        checkpoint: Path,
        trigger: str,
        log_file: Path | None = None,
    ) -> None:
        self.session = session
        self.query = query
        self.sink = query.sink
        self.folder = folder
        self.checkpoint = checkpoint
        self.trigger = trigger
        self.log_file = log_file
        self._running: StreamingQuery | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._refuse_other_results()

    def start(self) -> None:
        """Relay what comes to the folder, until it is stopped."""
        self._running = self._begin(self._writer().trigger(processingTime=self.trigger))

    def check(self) -> None:
        """Raise what made it fail, if it did."""
        if self._running is None or self._running.isActive:
            return
        error = self._running.exception()
        if error is not None:
            raise self._failed(error)
        raise RunError(
            f'sink "{self.sink.name}" of query "{self.query.name}" is no longer written to',
            hint="Start the run again: it relays what is missing.",
        )

    def drain(self) -> None:
        """Relay all that is in the folder, and end."""
        self.check()
        self.stop()
        try:
            self._begin(self._writer().trigger(availableNow=True)).awaitTermination()
        except (PySparkException, Py4JError) as error:
            raise self._failed(error) from None

    def stop(self) -> None:
        """End where it is; what has not been relayed waits for the next start."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _writer(self) -> DataStreamWriter:
        reader = self.session.readStream.schema(spark_schema(self.query.root.schema)).option("cleanSource", "delete")
        rows = reader.format("parquet").name("results").load(str(self.folder))
        connector = self.sink.connector
        options = resolved(connector.options, f'sink "{self.sink.name}"')
        writer = rows.writeStream.format(connector.format).options(**options).outputMode("append")
        return writer.option("checkpointLocation", str(self.checkpoint))

    def _begin(self, writer: DataStreamWriter) -> StreamingQuery:
        try:
            return writer.start()
        except (PySparkException, Py4JError) as error:
            if is_not_found(error):
                raise no_format(f'sink "{self.sink.name}"', self.sink.connector, (*FORMATS, *PLAIN_SINKS)) from None
            raise self._failed(error) from None

    def _failed(self, error: BaseException) -> MillraceError:
        found = unwrap(error, self.log_file)
        fact = found.fact.removeprefix("the run failed: ")
        return RunError(f'sink "{self.sink.name}" of query "{self.query.name}" failed: {fact}', hint=found.hint)

    def _refuse_other_results(self) -> None:
        path = self.sink.connector.options.get("path")
        if path and (Path(path) / "_spark_metadata").exists() and not self.checkpoint.exists():
            raise RequestError(
                f'the folder "{path}" of sink "{self.sink.name}" holds results of another run',
                hint="Spark's file sinks go on only for the same query, with the same columns and options, on its "
                "--checkpoint: give the sink another path, or empty the folder, _spark_metadata too.",
            )


class Relays:
    """The relays of a run, one per query whose sink Spark writes; `folder` is the checkpoint."""

    def __init__(self, session: SparkSession, folder: Path, trigger: str, log_file: Path) -> None:
        self._session, self._folder, self._trigger, self._log_file = session, folder, trigger, log_file
        self._queries: dict[str, Query] = {}
        self._relays: dict[str, Relay] = {}
        self._leaving: list[Query] = []
        """Queries whose last results are still to be relayed."""

    def take(self, queries: Sequence[Query]) -> None:
        """Relay the results of these queries from now on; of others only what they have left."""
        before, self._queries = self._queries, {each.name: each for each in queries if is_native_sink(each.sink)}
        self._leaving += [query for name, query in before.items() if not self._alike(query, self._queries.get(name))]

    @property
    def changed(self) -> bool:
        """True if relays must be started or stopped."""
        return bool(self._leaving) or set(self._relays) != set(self._queries)

    def check_queries(self, queries: Sequence[Query]) -> None:
        """Refuse queries whose sinks Spark cannot write to; those that it writes to already are left alone."""
        for query in queries:
            relay = self._relays.get(query.name)
            if is_native_sink(query.sink) and not (relay is not None and self._alike(query, relay.query)):
                self._relay(query).drain()

    def relay_last(self) -> None:
        """Relay the last results of queries that leave."""
        while self._leaving:
            query = self._leaving[-1]
            (self._relays.pop(query.name, None) or self._relay(query)).drain()
            self._leaving.pop()

    def start(self, *, follow: bool) -> None:
        """Relay results as they come if told to `follow`, else when told to `drain`."""
        for name, query in self._queries.items():
            if name not in self._relays:
                self._relays[name] = self._relay(query)
                if follow:
                    self._relays[name].start()

    def restart(self) -> None:
        """Start those that follow again: their waiting is over."""
        for relay in self._relays.values():
            relay.stop()
            relay.start()

    def check(self) -> None:
        """Raise what made a relay fail, if one did."""
        for relay in self._relays.values():
            relay.check()

    def drain(self) -> None:
        """Relay all that there is, and end."""
        for relay in self._relays.values():
            relay.drain()

    def stop(self) -> None:
        """End where they are."""
        for relay in self._relays.values():
            relay.stop()

    def _relay(self, query: Query) -> Relay:
        results = relayed_from(self._folder, query)
        checkpoint = self._folder / "relays" / results.name
        return Relay(self._session, query, results, checkpoint, self._trigger, self._log_file)

    def _alike(self, query: Query, other: Query | None) -> bool:
        """True if two queries have one relay."""
        return other is not None and relayed_from(self._folder, query) == relayed_from(self._folder, other)


def relayed_from(checkpoint: Path, query: Query) -> Path:
    """The folder from which results are relayed: another one for another sink or other columns."""
    name = content_name(query.name, (query.sink.connector, query.root.schema.to_string()))
    return checkpoint / "relayed" / name.replace("#", "-")
