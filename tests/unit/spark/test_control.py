from __future__ import annotations

import json
from pathlib import Path

import pytest

from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.control import ControlPartition, ControlReader

START = {"now": 0, "end": False}


def reader(folder: Path, clock: str = "on") -> ControlReader:
    return ControlReader({"commits": str(folder), "buckets": "[12, 6]", "clock": clock})


def test_it_stays_until_the_wake_up_of_the_newest_commit_is_due(tmp_path: Path) -> None:
    control = reader(tmp_path)
    assert control.next_offset(START, clock=100) is START
    CommitLog(tmp_path).write(0, {"wake_at": 50})
    assert control.next_offset(START, clock=49) is START
    assert control.next_offset(START, clock=70) == {"now": 70, "end": False}
    CommitLog(tmp_path).write(1, {"wake_at": None})
    assert control.next_offset({"now": 70, "end": False}, clock=1000) == {"now": 70, "end": False}


@pytest.mark.parametrize("quiet", ["clock off", "available now"])
def test_without_a_clock_only_the_end_counts(tmp_path: Path, quiet: str) -> None:
    CommitLog(tmp_path).write(0, {"wake_at": 50})
    control = reader(tmp_path, clock="off" if quiet == "clock off" else "on")
    if quiet == "available now":
        control.prepareForTriggerAvailableNow()
    assert control.next_offset(START, clock=70) is START


def test_the_end_comes_once_and_nothing_after_it(tmp_path: Path) -> None:
    CommitLog(tmp_path).mark_end()
    control = reader(tmp_path)
    end = control.next_offset(START, clock=70)
    assert end == {"now": 70, "end": True}
    CommitLog(tmp_path).write(0, {"wake_at": 50})
    assert control.next_offset(end, clock=90) is end


def test_an_end_that_is_marked_during_an_available_now_run_is_for_the_next_one(tmp_path: Path) -> None:
    control = reader(tmp_path)
    control.prepareForTriggerAvailableNow()
    CommitLog(tmp_path).mark_end()
    assert control.next_offset(START, clock=70) is START


def test_a_waking_is_one_row_per_bucket(tmp_path: Path) -> None:
    control = reader(tmp_path)
    assert control.partitions(START, START) == []
    (partition,) = control.partitions(START, {"now": 70, "end": True})
    assert partition == ControlPartition(now=70, end=True)
    (batch,) = control.read(partition)
    assert batch.column("bucket").to_pylist() == [12, 6]
    assert set(batch.column("port").to_pylist()) == {"__control"}
    assert [json.loads(note) for note in batch.column("note").to_pylist()] == [{"now": 70, "end": True}] * 2
