"""Results for a sink that Spark writes: relayed from the files in which the network has committed them.

Rules:
- The network's own sink commits results as files, each once. A second streaming query reads these files and writes
  them to Spark's sink, with a checkpoint of its own: each file is handed over once, or again if the sink repeats a
  micro-batch that failed; what that means depends on the sink.
- Files that have been handed over are removed in time; the sink has the results.
- A checkpoint that is new and a folder in which Spark's file sink has written before do not fit: it would take the
  new micro-batches for old ones, and drop them.
"""

from __future__ import annotations

from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.native import SHOWN
from millrace.errors import MillraceError, RequestError, RunError
from millrace.hosts.spark.failures import unwrap
from millrace.hosts.spark.source.native_streams import is_not_found, no_format, spark_schema
from millrace.plan.nodes.query_network import Query


class Relay:
    """The way of one query's results from the folder where they are committed to its sink.

    `start` lets it follow the folder, `check` raises what made it fail, `drain` hands over what is there and ends,
    `stop` ends it where it is.
    """

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
        """Follow the folder until told otherwise."""
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
            hint="Start the run again: what has not been handed over comes then.",
        )

    def drain(self) -> None:
        """Hand over all that is in the folder, and end."""
        self.check()
        self.stop()
        try:
            self._begin(self._writer().trigger(availableNow=True)).awaitTermination()
        except (PySparkException, Py4JError) as error:
            raise self._failed(error) from None

    def stop(self) -> None:
        """End where it is; what has not been handed over waits for the next start."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _writer(self) -> DataStreamWriter:
        reader = self.session.readStream.schema(spark_schema(self.query.root.schema)).option("cleanSource", "delete")
        rows = reader.format("parquet").name("results").load(str(self.folder))
        connector = self.sink.connector
        writer = rows.writeStream.format(connector.format).options(**connector.options).outputMode("append")
        return writer.option("checkpointLocation", str(self.checkpoint))

    def _begin(self, writer: DataStreamWriter) -> StreamingQuery:
        try:
            return writer.start()
        except (PySparkException, Py4JError) as error:
            if is_not_found(error):
                raise no_format(f'sink "{self.sink.name}"', self.sink.connector, (*FORMATS, *SHOWN)) from None
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
