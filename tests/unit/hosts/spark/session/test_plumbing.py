"""What we assume of Spark itself, and what is said when it does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millrace.hosts.spark.exchange.buckets import bucket_ids

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_bucket_ids_hit_each_partition_once_by_the_hash_of_spark_itself_on_spark(spark_session: SparkSession) -> None:
    ids = [(count, number) for count in (1, 2, 7) for number in bucket_ids(count)]
    given = spark_session.createDataFrame(ids, "count int, id int")
    rows = given.selectExpr("count", "pmod(hash(id), count) AS partition")
    assert [tuple(row) for row in rows.collect()] == [
        (count, partition) for count in (1, 2, 7) for partition in range(count)
    ]


def test_a_spark_that_does_not_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from millrace.hosts.spark.session.session import open_session;"
        f"open_session('local[2]', log_file=Path({str(tmp_path / 'log')!r}), settings={{'spark.driver.memory': '1x'}})"
    )
    failed = subprocess.run([sys.executable, "-c", program], env=_environment(), capture_output=True, text=True)
    assert "Spark did not start; the end of its log:" in failed.stderr
    assert "Invalid maximum heap size" in failed.stderr


def _environment() -> dict[str, str]:
    """This process's, with the package where this process found it."""
    source = str(Path(sys.modules["millrace.errors"].__file__ or "").parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])}
