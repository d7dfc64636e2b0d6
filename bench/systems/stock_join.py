"""A band join of two streams on stock Spark, and a count over it; see `millrace.experiments.stock_spark`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from millrace.experiments.stock_spark import carry_out


@dataclass(frozen=True)
class Join:
    """Rows `a` and `b` of two folders with equal keys, at most `band` seconds apart.

    With a `window` in seconds, the pairs in each, by the time of `a`, are counted by so many `lanes` of `b`.
    """

    a: str
    b: str
    output: str
    checkpoint: str
    schema: str
    band: int
    files_per_batch: int | None
    window: int | None = None
    lanes: int = 1


def joined(session: SparkSession, join: Join) -> DataFrame:
    """The query as a user of Spark would write it. The streams are ordered, hence watermarks without a delay."""
    for name, folder in (("a", join.a), ("b", join.b)):
        reader = session.readStream.schema(join.schema)
        if join.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", join.files_per_batch)
        reader.parquet(folder).withWatermark("ts", "0 seconds").createOrReplaceTempView(name)
    pairs = session.sql(f"""SELECT a.key, a.n AS a_n, b.n AS b_n, a.ts AS a_ts, b.ts AS b_ts FROM a JOIN b
        ON a.key = b.key
        AND a.ts BETWEEN b.ts - INTERVAL {join.band} SECONDS AND b.ts + INTERVAL {join.band} SECONDS""")
    return pairs if join.window is None else _counted(pairs, join.window, join.lanes)


def _counted(pairs: DataFrame, window: int, lanes: int) -> DataFrame:
    """A second stateful operator, behind the join."""
    lane = (f.col("b_n") % lanes).alias("lane")
    counted = pairs.groupBy(f.window("a_ts", f"{window} seconds"), lane).agg(f.count("*").alias("n"))
    return counted.select(f.col("window.start").alias("window_start"), "lane", "n")


if __name__ == "__main__":
    carry_out(sys.argv[1], Join, joined)
