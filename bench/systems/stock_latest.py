"""The latest row of every key on stock Spark; see `millrace.experiments.stock_spark`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from millrace.experiments.stock_spark import carry_out

VERSIONS = "versions"
"""The folder of the table, in which every micro-batch leaves a version of its own."""


@dataclass(frozen=True)
class Latest:
    """The latest row of every key of a folder, as a table of parquet files."""

    updates: str
    output: str
    checkpoint: str
    schema: str
    files_per_batch: int | None


def updates(session: SparkSession, latest: Latest) -> DataFrame:
    """The updates as a stream."""
    reader = session.readStream.schema(latest.schema)
    if latest.files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", latest.files_per_batch)
    return reader.parquet(latest.updates)


def merged(frame: DataFrame, latest: Latest, bounded: bool) -> StreamingQuery:
    """The query as a user of Spark would write it: plain files cannot be changed, so the table is written anew."""

    def merge(batch: DataFrame, number: int) -> None:
        folder = Path(latest.output) / VERSIONS
        before = folder / str(number - 1)
        if before.exists():
            batch = batch.sparkSession.read.schema(latest.schema).parquet(str(before)).unionByName(batch)
        newest = batch.groupBy("key").agg(f.max_by(f.struct("value", "ts"), "ts").alias("row"))
        newest.select("key", "row.*").write.mode("overwrite").parquet(str(folder / str(number)))
        shutil.rmtree(folder / str(number - 2), ignore_errors=True)

    writer = frame.writeStream.foreachBatch(merge).option("checkpointLocation", latest.checkpoint)
    return (writer.trigger(availableNow=True) if bounded else writer).start()


if __name__ == "__main__":
    carry_out(sys.argv[1], Latest, updates, merged)
