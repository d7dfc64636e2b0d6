"""The whole path on a real session: sources, a stateful stage, the sink and its commits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toys
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from toys import BUCKETS, Toy

from millrace.errors import MalformedRow, RunError
from millrace.hosts.spark.buckets import bucket_ids
from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.failures import unwrap

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_bucket_ids_hit_each_partition_once_by_the_hash_of_spark_itself(spark: SparkSession) -> None:
    ids = [(count, number) for count in (1, 2, 7) for number in bucket_ids(count)]
    rows = spark.createDataFrame(ids, "count int, id int").selectExpr("count", "pmod(hash(id), count) AS partition")
    assert [tuple(row) for row in rows.collect()] == [
        (count, partition) for count in (1, 2, 7) for partition in range(count)
    ]


def test_a_run_reads_in_name_order_goes_on_after_a_restart_and_ends_once(spark: SparkSession, tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    for name, number in (("c", 100), ("a", 1), ("b", 10)):
        toy.put(name, number)
    toy.run(spark)
    first = [("numbers", 1), ("numbers", 11), ("numbers", 111)]
    assert toy.results(BUCKETS[0]) == toy.results(BUCKETS[1]) == first

    toy.put("d", 1000)
    toy.run(spark)
    assert toy.results() == [*first, ("numbers", 1111)]
    assert CommitLog(toy.commits).source("numbers", 4) == {"files": 4}

    CommitLog(toy.commits).mark_end()
    toy.run(spark)
    toy.run(spark)
    assert toy.results() == [*first, ("numbers", 1111), ("end", 1111)]
    assert [batch for batch, _ in CommitLog(toy.commits).records()] == [0, 1, 2, 3, 4]


def test_an_error_in_the_low_level_reaches_the_driver_whole(spark: SparkSession, tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    toy.put("a", "x")
    query = toy.start(spark)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    for error in (raised.value, query.exception()):
        ours = unwrap(error)
        assert (type(ours), ours.fact, ours.hint) == (MalformedRow, 'file "a.txt" holds "x"', "Write integers.")


def test_a_file_that_sorts_before_one_read_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    toy.put("b", 1)
    query = toy.start(spark, every="100 milliseconds")
    _wait_until(lambda: toy.results() != [])
    toy.put("a", 1)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(30)
    ours = unwrap(raised.value)
    assert isinstance(ours, RunError)
    assert ours.fact == 'file "a.txt" of stream "numbers" appeared before "b.txt", which has been read'


def test_the_clock_wakes_the_buckets_once_when_it_is_due_and_not_before(spark: SparkSession, tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    toy.put("a", 5)
    query = toy.start(spark, every="200 milliseconds", wake_after=3_000_000)
    try:
        _wait_until(lambda: toy.results() == [("numbers", 5), ("woken", 5)])
        time.sleep(1.0)
    finally:
        query.stop()
    assert toy.results() == [("numbers", 5), ("woken", 5)]
    asked, woken = (record for _, record in CommitLog(toy.commits).records())
    assert woken["now"] >= asked["wake_at"] == asked["now"] + 3_000_000
    assert woken["wake_at"] is None


def test_a_kill_between_our_commit_and_that_of_spark_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    for name, number in (("a", 1), ("b", 10), ("c", 100)):
        toy.put(name, number)
    command = [sys.executable, toys.__file__, str(tmp_path)]
    killed = subprocess.run(command, start_new_session=True, env=_environment(), capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert (killed.stdout, killed.stderr) == (b"", b""), "Spark talks to the terminal"
    assert CommitLog(toy.commits).newest()["batch"] == 1
    assert not (tmp_path / "checkpoint" / "commits" / "1").exists()

    toy.run(spark)
    expected = [("numbers", 1), ("numbers", 11), ("numbers", 111)]
    assert toy.results(BUCKETS[0]) == toy.results(BUCKETS[1]) == expected


def test_a_spark_that_does_not_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from millrace.hosts.spark.session import open_session;"
        f"open_session('local[2]', log_file=Path({str(tmp_path / 'log')!r}), settings={{'spark.driver.memory': '1x'}})"
    )
    failed = subprocess.run([sys.executable, "-c", program], env=_environment(), capture_output=True, text=True)
    assert "Spark did not start; its last words:" in failed.stderr
    assert "Invalid maximum heap size" in failed.stderr


def _environment() -> dict[str, str]:
    """This process's, with the package where this process found it."""
    source = str(Path(sys.modules["millrace.errors"].__file__ or "").parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ["PYTHONPATH"]])}


def _wait_until(condition: object, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.05)
