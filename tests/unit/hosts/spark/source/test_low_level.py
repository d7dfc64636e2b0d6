from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.hosts.spark.exchange.rows import STREAM_PORT
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.kernel.progress.partition_progress import PartitionProgress
from millrace.language import parse_network
from millrace.plan.physical.stages import physical

MINUTE = 60_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")


def low_level(folder: Path, clauses: str, *, live: bool = False) -> StreamLowLevel:
    source = f"FROM parquet OPTIONS (path '{folder}')"
    sql = f"CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts {clauses}".replace("FROM", source, 1)
    return StreamLowLevel(physical(parse_network(f"{sql}; SELECT k FROM s")), "s", (0,), live)


def write(folder: Path, name: str, *rows: tuple[str, int]) -> str:
    path = folder / name
    columns = {"k": [key for key, _ in rows], "ts": pa.array([time for _, time in rows]).cast(TIMESTAMP)}
    pq.write_table(pa.table(columns), path)
    return str(path)


def summary(
    low: StreamLowLevel, paths: list[str], now: int = 0, came: int | None = None, *, alone: bool = True
) -> dict[str, Any]:
    """What the stream has come to after some files, and how many rows each of its ports was sent."""
    notes = [
        json.loads(row["note"])
        for batch in low.read(paths, 0, FileScan(now, now, now if came is None else came, all=True), {}, alone=alone)
        for row in batch.to_pylist()
        if row["port"] == STREAM_PORT
    ]
    (note,) = notes
    return dict(note)


def test_a_live_stream_is_measured_by_the_clock_of_its_offset(tmp_path: Path) -> None:
    path = write(tmp_path, "0.parquet", ("a", 0), ("a", 6 * MINUTE), ("a", MINUTE))
    note = summary(low_level(tmp_path, "ORDERED FROM", live=True), [path], now=MINUTE // 2)
    assert (note["received"], note["quarantined"], note["bound"]) == (3, 1, MINUTE)
    assert summary(low_level(tmp_path, "ORDERED FROM"), [path])["quarantined"] == 0


def test_a_row_of_external_time_came_when_its_file_did(tmp_path: Path) -> None:
    path = write(tmp_path, "0.parquet", ("a", 50))
    note = summary(low_level(tmp_path, "ORDERED FROM", live=True), [path], now=90, came=60)
    assert (note["seen_at"], note["now"]) == (60, 90)


@pytest.mark.parametrize(
    ("clauses", "live", "in_sequence"),
    [
        ("ORDERED FROM", False, False),
        ("ORDERED FROM", True, False),
        ("ORDERED MAX FUTURE SKEW 1 MINUTE FROM", False, True),
        ("ORDERED MAX FUTURE SKEW 1 MINUTE FROM", True, False),
        ("ORDERED MAX FUTURE SKEW 1 MINUTE FROM REPLAY BY ts", True, True),
    ],
)
def test_files_are_read_in_sequence_where_a_row_is_measured_by_those_before_it(
    tmp_path: Path, clauses: str, live: bool, in_sequence: bool
) -> None:
    assert low_level(tmp_path, clauses, live=live).in_sequence == in_sequence


def test_small_files_share_a_task_and_a_large_one_has_its_own(tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{number}.parquet", ("a", number)) for number in range(6)]
    for number, size in ((2, 2**21), (4, 2**20 - 2000)):
        with Path(paths[number]).open("ab") as file:
            file.truncate(size)
    low = replace(low_level(tmp_path, "ORDERED FROM"), buckets=(0, 1, 2, 3))
    assert low.tasks(paths) == [2, 1, 3]
    assert low.tasks(paths[:1]) == [1]
    assert low.tasks([]) == []
    assert low_level(tmp_path, "ORDERED MAX FUTURE SKEW 1 MINUTE FROM").tasks(paths) == [6]


def test_there_are_no_more_tasks_than_buckets_where_files_are_of_one_size(tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{number}.parquet", ("a", number)) for number in range(12)]
    for path in paths:
        with Path(path).open("ab") as file:
            file.truncate(2**20)
    low = replace(low_level(tmp_path, "ORDERED FROM"), buckets=(0, 1, 2, 3))
    assert low.tasks(paths) == [3, 3, 3, 3]
    assert low.tasks(paths[:4]) == [1, 1, 1, 1]


def test_files_in_sequence_are_one_stream(tmp_path: Path) -> None:
    paths = [write(tmp_path, "0.parquet", ("a", 0)), write(tmp_path, "1.parquet", ("a", 2 * MINUTE), ("a", 1))]
    note = summary(low_level(tmp_path, "ORDERED MAX FUTURE SKEW 1 MINUTE FROM"), paths)
    assert (note["files"], note["received"], note["quarantined"], note["greatest"]) == (2, 3, 1, 1)


def test_a_file_among_others_promises_nothing_for_partitions_that_they_may_hold(tmp_path: Path) -> None:
    path = write(tmp_path, "0.parquet", ("a", 50), ("b", 10))
    low = low_level(tmp_path, "ORDERED PARTITIONED BY (k) FROM")
    assert summary(low, [path])["late"] == 1
    note = summary(low, [path], alone=False)
    assert note["late"] == 0
    seen = PartitionProgress()
    seen.restore(note["order"]["partitions"])
    assert dict(zip(seen.names, seen.greatest.tolist(), strict=True)) == {'["a"]': 50, '["b"]': 10}


def test_files_of_fed_rows_are_ours_and_are_not_followed(tmp_path: Path) -> None:
    fed = tmp_path / "state" / "feeds" / "s"
    fed.mkdir(parents=True)
    assert replace(low_level(fed, "ORDERED FROM"), folder=str(tmp_path / "state")).is_ours
    assert not low_level(tmp_path, "ORDERED FROM").is_ours
