"""A network as one streaming query of Spark: sources, stateful stages, sink."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millrace.hosts.spark.exchange.rows import EXCHANGE, OUTPUT
from millrace.hosts.spark.sink.network_sink import NetworkSink
from millrace.hosts.spark.source.network_source import NetworkSource
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.hosts.spark.stage.shipped_stage import ShippedStage

_PARTITIONS = "spark.sql.shuffle.partitions"
_STARTING = Lock()
"""Held while the session is changed for a query: runs of one process share it."""


def network_rows(
    session: SparkSession, folder: Path, plan: int, buckets: Sequence[int], *, live: bool, ends: bool
) -> DataFrame:
    """The exchange rows of all streams that Millrace reads itself, and of its wake-ups; see `NetworkSource`."""
    with _STARTING:
        session.dataSource.register(NetworkSource)
    reader = session.readStream.format(NetworkSource.name()).option("folder", str(folder)).option("plan", plan)
    reader = reader.option("buckets", json.dumps(list(buckets))).option("live", live).option("ends", ends)
    return reader.name("network").load()


def start_query(
    session: SparkSession,
    rows: DataFrame,
    folder: Path,
    levels: int,
    buckets: Sequence[int],
    trigger: str | None,
    owner: str,
) -> StreamingQuery:
    """Start the query over exchange rows: every `trigger`, or, without one, until all that is there has been read.

    `owner` is the run, as it has claimed the commit log.
    """
    interval = _micros(session, trigger) if trigger else None
    pace = TriggerPace.of(interval, session.sparkContext.defaultParallelism, len(buckets))
    for level in range(1, levels + 1):
        last = level == levels
        rows = rows.groupBy("bucket").transformWithStateInPandas(
            ShippedStage(str(folder), buckets, level=level, last=last, pace=pace),
            outputStructType=OUTPUT if last else EXCHANGE,
            outputMode="append",
            timeMode="none",
        )
    writer = rows.writeStream.format(NetworkSink.name()).outputMode("append").option("folder", str(folder))
    writer = writer.option("owner", owner)
    writer = writer.option("checkpointLocation", str(folder / "spark"))
    writer = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
    with _STARTING:
        session.dataSource.register(NetworkSink)
        # A streaming query keeps the settings that it was started with; the session may be the user's.
        partitions = str(session.conf.get(_PARTITIONS))
        session.conf.set(_PARTITIONS, str(len(buckets)))
        try:
            return writer.start()
        finally:
            session.conf.set(_PARTITIONS, partitions)


def _micros(session: SparkSession, trigger: str) -> int:
    """How long a trigger's interval is, as Spark reads it."""
    assert session._jvm is not None
    java_trigger = session._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger)
    return int(java_trigger.intervalMs()) * 1000
