"""A tumbling count from topic to topic on stock Spark, with its own source and sink for Kafka; see `stock_spark`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from millrace.experiments.stock_spark import carry_out


@dataclass(frozen=True)
class TopicCount:
    """A count of the words of a topic; `output` is the topic of its results."""

    servers: str
    topic: str
    output: str
    checkpoint: str
    window: str
    delay: str
    limit: int | None = None


def counted(session: SparkSession, count: TopicCount) -> DataFrame:
    """The query as a user of Spark would write it."""
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", count.servers)
    reader = reader.option("subscribe", count.topic).option("startingOffsets", "earliest")
    if count.limit is not None:
        reader = reader.option("maxOffsetsPerTrigger", count.limit)
    value = f.from_json(f.col("value").cast("string"), "word string, ts timestamp").alias("value")
    rows = reader.load().select(value).select("value.*").withWatermark("ts", count.delay)
    windows = rows.groupBy(f.window("ts", count.window), "word").agg(f.count("*").alias("n"))
    written = f.to_json(f.struct(f.col("window.start").alias("window_start"), "word", "n"))
    return windows.select(f.col("word").alias("key"), written.alias("value"))


def started(frame: DataFrame, count: TopicCount, bounded: bool) -> StreamingQuery:
    """The query at work."""
    writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", count.servers)
    writer = writer.option("topic", count.output).option("checkpointLocation", count.checkpoint)
    return (writer.trigger(availableNow=True) if bounded else writer).start()


if __name__ == "__main__":
    carry_out(sys.argv[1], TopicCount, counted, started)
