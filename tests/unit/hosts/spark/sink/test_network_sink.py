from __future__ import annotations

import json
from pathlib import Path
from time import time_ns
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toys import ToyWriter

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.exchange.rows import pack
from millrace.hosts.spark.failures import CarriedError, unwrap
from millrace.hosts.spark.sink.network_sink import NetworkWriter, TaskOutput, clean
from millrace.plan.nodes.query_network import QueryNetwork

SCHEMA = pa.schema([("output", pa.string()), ("blob", pa.binary()), ("note", pa.string())])
REPORT = {"sources": {"a": {"files": 1}}, "wake_at": None, "wants": {}, "metrics": {}, "now": 5, "plan": 2}


def writer(folder: Path) -> ToyWriter:
    sinks = {"out": {"format": "parquet", "path": str(folder / "out")}}
    PlanLog(folder / "plans").write(2, Version(QueryNetwork(()), sinks))
    return ToyWriter({"folder": str(folder)})


def rows(*values: int) -> list[dict[str, Any]]:
    """Output rows of one task: two blobs and a report."""
    blobs = [pack(pa.table({"n": [value]})) for value in values]
    results = [{"output": "out", "blob": blob, "note": ""} for blob in blobs]
    return [*results, {"output": "__report", "blob": None, "note": json.dumps(REPORT)}]


def written(folder: Path, partition: int, *values: int) -> TaskOutput:
    task = writer(folder).write(iter([pa.RecordBatch.from_pylist(rows(*values), schema=SCHEMA)]))
    return TaskOutput(partition, task.files, task.reports)


def visible(folder: Path) -> dict[str, list[int]]:
    files = sorted((folder / "out").glob("part-*"))
    return {file.name: pq.read_table(file)["n"].to_pylist() for file in files}


def test_results_are_hidden_until_the_commit_and_then_named_by_batch_and_partition(tmp_path: Path) -> None:
    began = time_ns() // 1000
    tasks = [written(tmp_path, 1, 3), written(tmp_path, 0, 1, 2)]
    assert visible(tmp_path) == {}
    writer(tmp_path).commit(list(tasks), 7)
    assert visible(tmp_path) == {"part-00000007-0000.parquet": [1, 2], "part-00000007-0001.parquet": [3]}
    record = CommitLog(tmp_path / "commits").newest()
    assert record["metrics"]["took"].keys() == {"write", "commit"}
    files = ["part-00000007-0000.parquet", "part-00000007-0001.parquet"]
    outputs = {"out": {"rows": 3, "files": files}}
    assert began <= record.pop("committed") <= time_ns() // 1000
    assert record == {"batch": 7, "outputs": outputs, **REPORT, "metrics": record["metrics"]}


def test_a_replayed_batch_replaces_its_files_and_drops_what_it_no_longer_has(tmp_path: Path) -> None:
    writer(tmp_path).commit([written(tmp_path, 0, 1), written(tmp_path, 1, 2)], 3)
    writer(tmp_path).commit([written(tmp_path, 0, 1), written(tmp_path, 1)], 3)
    assert visible(tmp_path) == {"part-00000003-0000.parquet": [1]}


def test_a_task_without_results_leaves_no_file(tmp_path: Path) -> None:
    writer(tmp_path).commit([written(tmp_path, 0)], 0)
    assert not (tmp_path / "out").exists()
    assert CommitLog(tmp_path / "commits").newest()["outputs"] == {"out": {"rows": 0, "files": []}}


def test_the_folder_of_a_sink_that_was_removed_during_the_run_is_not_made_again(tmp_path: Path) -> None:
    sinks = {"out": {"format": "csv", "path": str(tmp_path / "sink")}}
    checkpoint = tmp_path / "checkpoint"
    PlanLog(checkpoint / "plans").write(2, Version(QueryNetwork(()), sinks))
    task = NetworkWriter({"folder": str(checkpoint)})
    batch = pa.RecordBatch.from_pylist(rows(1), schema=SCHEMA)
    with pytest.raises(CarriedError) as found:
        task.write(iter([batch]))
    assert "cannot be used: no such file or directory" in str(unwrap(found.value))
    assert not (tmp_path / "sink").exists()


def test_an_aborted_batch_leaves_nothing(tmp_path: Path) -> None:
    writer(tmp_path).abort([written(tmp_path, 0, 1), None], 0)
    assert list((tmp_path / "out").iterdir()) == []


def test_cleaning_removes_what_dead_tasks_left_and_nothing_else(tmp_path: Path) -> None:
    writer(tmp_path).commit([written(tmp_path, 0, 1)], 0)
    written(tmp_path, 0, 2)
    (tmp_path / "out" / ".keep").touch()
    clean(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".keep", "part-00000000-0000.parquet"]
