"""A band join of two streams on stock Spark: run as a process of its own, see `millrace.hosts.spark.stock`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from millrace.hosts.spark.stock import carry_out


@dataclass(frozen=True)
class Join:
    """Rows `a` and `b` of two folders with equal keys, at most `band` seconds apart."""

    a: str
    b: str
    output: str
    checkpoint: str
    schema: str
    band: int
    files_per_batch: int | None


def joined(session: SparkSession, join: Join) -> DataFrame:
    """The query as a user of Spark would write it. The streams are ordered, hence watermarks without a delay."""
    for name, folder in (("a", join.a), ("b", join.b)):
        reader = session.readStream.schema(join.schema)
        if join.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", join.files_per_batch)
        reader.parquet(folder).withWatermark("ts", "0 seconds").createOrReplaceTempView(name)
    return session.sql(f"""SELECT a.key, a.n AS a_n, b.n AS b_n, a.ts AS a_ts, b.ts AS b_ts FROM a JOIN b
        ON a.key = b.key
        AND a.ts BETWEEN b.ts - INTERVAL {join.band} SECONDS AND b.ts + INTERVAL {join.band} SECONDS""")


if __name__ == "__main__":
    carry_out(sys.argv[1], Join, joined)
