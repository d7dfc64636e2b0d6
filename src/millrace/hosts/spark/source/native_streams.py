"""Streams that Spark reads: any streaming source or DataFrame, through the low level, as exchange rows.

Rules:
- Spark's source gives rows; the low level is a step after it, in the same tasks. A source is read under its stream's
  name, so that other sources may come and go in the same checkpoint.
- The clock of a micro-batch is Spark's own, which a replay sees again. The progress of the stream comes from the commit
  record before the micro-batch.
- The order of rows is that of Spark's partitions. Where what becomes of a row depends on all rows before it, one task
  reads them all.
- A stream with rows is not silent: only Spark knows whether its source has more. Partitions of it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.native import DATAFRAME, SOURCES
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk, read_schema
from millrace.errors import RequestError, did_you_mean
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog
from millrace.hosts.spark.exchange.rows import EXCHANGE
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.physical.stages import Physical
from millrace.secrets import resolved

_CLOCK = "__clock"
_BATCH = "streaming.sql.batchId"
"""The property under which Spark tells a task the number of its micro-batch."""

_UNNAMED = "<Unassigned>"

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class NativeStream:
    """A stream that Spark reads, as its tasks see it: in which checkpoint, by which plan, for which buckets.

    `alone` says that one task reads all rows of a micro-batch.
    """

    folder: str
    version: int
    name: str
    buckets: tuple[int, ...]
    live: bool
    alone: bool = False

    def exchanged(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """The exchange rows of one task; none where it has nothing to read."""
        rows = iter(batches)
        first = next((batch for batch in rows if batch.num_rows), None)
        if first is None:
            return
        context = TaskContext.get()
        assert context is not None, "a task of Spark has a context"
        batch = int(context.getLocalProperty(_BATCH) or 0)
        yield from self.read(chain([first], rows), batch, context.partitionId())

    def read(self, batches: Iterable[pa.RecordBatch], batch: int, partition: int) -> Batches:
        """The exchange rows of a partition of a micro-batch, whose rows carry the clock."""
        with carrying():
            rows = iter(batches)
            first = next(rows)
            known = CommitLog(Path(self.folder) / "commits").before(batch) or {}
            # A clock that was set back must not undo what buckets have promised by it.
            now = max(_clock(first), known.get("now", 0))
            before = known.get("sources", {}).get(self.name, {})
            read = PlanLog(Path(self.folder) / "plans").read(self.version)
            plan, committed = read.plan, known.get("committed", 0)
            low_level = StreamLowLevel(
                plan, self.name, self.buckets, self.live, self.version, self.folder, committed, read.tables
            )
            chunks = _chunks(chain([first], rows), _stream(plan, self.name), plan)
            scan = FileScan(now, now, now, all=False)
            yield from low_level.exchange(chunks, partition, batch + 1, scan, before, alone=self.alone)


def native_rows(
    session: SparkSession,
    folder: Path,
    version: int,
    stream: Stream,
    buckets: tuple[int, ...],
    *,
    live: bool,
    frame: DataFrame | None = None,
) -> DataFrame:
    """The exchange rows of a stream that Spark reads, by a version of the plan in the checkpoint's folder."""
    plan = PlanLog(folder / "plans").read(version).plan
    loaded = _frame_of(session, stream, frame)
    rows = _declared(loaded, stream, read_schema(stream, plan.columns_read(stream.name)))
    alone = StreamLowLevel(plan, stream.name, buckets, live, version).in_sequence
    task = NativeStream(str(folder), version, stream.name, buckets, live, alone)
    return (rows.coalesce(1) if alone else rows).mapInArrow(_function(task), EXCHANGE)


def check_native(session: SparkSession, stream: Stream, plan: Physical, frame: DataFrame | None = None) -> None:
    """Refuse a stream that Spark cannot read as it is declared; nothing is read."""
    try:
        _declared(_frame_of(session, stream, frame), stream, read_schema(stream, plan.columns_read(stream.name)))
    except PySparkException as error:
        raise _refused(stream, error) from None


def _function(task: NativeStream) -> Callable[[Batches], Batches]:
    # Spark wants a function, and looks at how it is declared.
    def exchanged(batches: Batches) -> Batches:
        return task.exchanged(batches)

    return exchanged


# What Spark gives


def _frame_of(session: SparkSession, stream: Stream, frame: DataFrame | None) -> DataFrame:
    if frame is not None:
        _check_named(frame, stream)
        return frame
    if stream.connector.format == DATAFRAME:
        raise RequestError(
            f'stream "{stream.name}" reads a DataFrame, and none was given',
            hint=f'Declare it in Python: net.stream("{stream.name}", df, time="...").',
        )
    return load(session, stream)


def _check_named(frame: DataFrame, stream: Stream) -> None:
    """Refuse a DataFrame with a source that has no name: Spark would not find it again in a checkpoint."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if leaf.isStreaming() and _UNNAMED in leaf.sourceIdentifyingName().toString():
            raise RequestError(
                f'the DataFrame of stream "{stream.name}" has a source without a name',
                hint=f'Name it where it is read: millrace.spark_session().readStream.name("{stream.name}")...',
            )


def load(session: SparkSession, stream: Stream) -> DataFrame:
    """A stream as Spark reads it, with all columns of its source; refuses what Spark does not know."""
    options = resolved(stream.connector.options, f'stream "{stream.name}"')
    reader = session.readStream.format(stream.connector.format).options(**options)
    reader = reader.name(f"stream_{stream.name}")
    try:
        return _loaded(reader, stream)
    except (PySparkException, Py4JError) as error:
        raise _refused(stream, error) from None


def _loaded(reader: DataStreamReader, stream: Stream) -> DataFrame:
    """The source with its own columns, or with those declared if it asks for them, as files do."""
    try:
        return reader.load()
    except (PySparkException, Py4JError) as error:
        if "schema" not in _message(error).lower():
            raise
        return reader.schema(spark_schema(read_schema(stream, list(stream.schema.names)))).load()


def _refused(stream: Stream, error: Exception) -> RequestError:
    format, message = stream.connector.format, _message(error)
    if is_not_found(error):
        return no_format(f'stream "{stream.name}"', stream.connector, SOURCES)
    return RequestError(
        f'Spark cannot read stream "{stream.name}" from "{format}": {message}',
        hint="Write in OPTIONS what Spark's source of this name asks for.",
    )


def _message(error: Exception) -> str:
    """The first line of what Spark says, whether or not it made an exception of its own of it."""
    text = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return text.splitlines()[0] if text else "no reason was given"


def is_not_found(error: Exception) -> bool:
    """True if Spark says that there is no such source or sink."""
    return any(each in _message(error) for each in ("DATA_SOURCE_NOT_FOUND", "Failed to find data source"))


def no_format(whose: str, connector: Connector, ours: tuple[str, ...]) -> RequestError:
    """What to say of a format that Spark does not find."""
    format = connector.format
    hint = f"{did_you_mean(format, ours)}Ours are {', '.join(ours)}; others need their package on Spark's class path."
    if format.startswith("org.apache.spark.sql.kafka"):
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        hint = f"Start Spark with its package: settings={{'spark.jars.packages': '{package}'}}."
    return RequestError(f'{whose} names "{format}", which Spark does not find', hint=hint.strip())


def spark_schema(schema: pa.Schema) -> StructType:
    """Columns as Spark has them."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def _declared(frame: DataFrame, stream: Stream, schema: pa.Schema) -> DataFrame:
    """The columns that are read, as declared, and the clock of the micro-batch."""
    found = {name.lower(): name for name in frame.columns}
    for name in schema.names:
        if name.lower() not in found:
            raise RequestError(
                f'stream "{stream.name}" declares the column "{name}", which its source does not have',
                hint=f"Its columns are {', '.join(frame.columns)}.",
            )
    kinds = {field.name: field.dataType for field in spark_schema(schema)}
    columns = [_quoted(frame, found[name.lower()]).cast(kinds[name]).alias(name) for name in schema.names]
    return frame.select(*columns, F.current_timestamp().alias(_CLOCK))


def _quoted(frame: DataFrame, name: str) -> Column:
    escaped = name.replace("`", "``")
    return frame[f"`{escaped}`"]


# What a task makes of it


def _stream(plan: Physical, name: str) -> Stream:
    return next(each for each in plan.network.streams() if each.name == name)


def _clock(batch: pa.RecordBatch) -> int:
    return int(batch.column(_CLOCK)[:1].cast(pa.int64())[0].as_py())


def _chunks(batches: Iterable[pa.RecordBatch], stream: Stream, plan: Physical) -> Iterator[Chunk]:
    """Rows as the low level takes them; Spark's batches are small, and each would cost it a step."""
    schema = read_schema(stream, plan.columns_read(stream.name))
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch.select(schema.names))
        if sum(each.num_rows for each in gathered) >= CHUNK_ROWS:
            yield _chunk(gathered, schema, stream)
            gathered = []
    if gathered:
        yield _chunk(gathered, schema, stream)


def _chunk(gathered: list[pa.RecordBatch], schema: pa.Schema, stream: Stream) -> Chunk:
    return Chunk(as_rows(pa.Table.from_batches(gathered), schema, stream.name))
