"""Results of a query as a streaming DataFrame: from the files in which its network commits them, each once."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from millrace.errors import RequestError
from millrace.hosts.checkpoint.durable_files import make_folder
from millrace.hosts.sinks.sinks import sink_folder
from millrace.hosts.spark.source.native_streams import spark_schema
from millrace.plan.nodes.query_network import Query

_NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""Where this is not set, as in a session of Spark Connect, Spark refuses sources with a name."""


def result_frame(session: SparkSession, query: Query) -> DataFrame:
    """The results of a query that writes parquet, as they are committed.

    A file of results has its name when it is whole, and keeps it when a micro-batch is run again: whatever reads the
    frame with a checkpoint of its own has each row once.
    """
    if query.sink.connector.format != "parquet":
        raise RequestError(
            f'the results of query "{query.name}" go to "{query.sink.connector.format}", and a DataFrame reads parquet',
            hint="Give the query a sink of its own: sink='parquet', path='out'.",
        )
    folder = make_folder(sink_folder(query.sink), f'the path of sink "{query.sink.name}"').resolve()
    reader = session.readStream.schema(spark_schema(query.root.schema)).format("parquet")
    if session.conf.get(_NAMED_SOURCES, "false") == "true":
        reader = reader.name(f"millrace_{query.name}")
    return reader.load(str(folder))
