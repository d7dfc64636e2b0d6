from __future__ import annotations

import json
from pathlib import Path

import pytest

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.wakeups import NO_WAKEUP as START
from millrace.hosts.spark.source.wakeups import WakeupPartition, Wakeups, wakeup_rows

STREAMS = ("a", "b")


def reader(folder: Path, clock: str = "on") -> Wakeups:
    return Wakeups(CommitLog(folder), clock_on=clock == "on")


def test_it_stays_until_the_wake_up_of_the_newest_commit_is_due(tmp_path: Path) -> None:
    control = reader(tmp_path)
    assert control.next_offset(START, 100, STREAMS) is START
    CommitLog(tmp_path).write(0, {"wake_at": 50})
    assert control.next_offset(START, 49, STREAMS) is START
    woken = {"now": 70, "ended": [], "wants": {}}
    assert control.next_offset(START, 70, STREAMS) == woken
    CommitLog(tmp_path).write(1, {"wake_at": None})
    assert control.next_offset(woken, 1000, STREAMS) is woken


def test_what_a_later_level_begins_to_wait_for_is_told_once(tmp_path: Path) -> None:
    control = reader(tmp_path)
    CommitLog(tmp_path).write(0, {"wake_at": None, "wants": {"p": 50}})
    told = control.next_offset(START, 10, STREAMS)
    assert told == {"now": 10, "ended": [], "wants": {"p": 50}}
    assert control.next_offset(told, 20, STREAMS) is told
    CommitLog(tmp_path).write(1, {"wake_at": None, "wants": {}})
    assert control.next_offset(told, 30, STREAMS) is told, "that nobody waits any more is no reason to wake anyone"
    CommitLog(tmp_path).write(2, {"wake_at": None, "wants": {"p": 60}})
    assert control.next_offset(told, 40, STREAMS)["wants"] == {"p": 60}


@pytest.mark.parametrize("quiet", ["clock off", "available now"])
def test_without_a_clock_only_the_end_counts(tmp_path: Path, quiet: str) -> None:
    CommitLog(tmp_path).write(0, {"wake_at": 50, "wants": {"p": 50}})
    control = reader(tmp_path, clock="off" if quiet == "clock off" else "on")
    if quiet == "available now":
        control.clock_on = False
    assert control.next_offset(START, 70, STREAMS) is START


@pytest.mark.parametrize("how", ["clock off", "available now", "goes on"])
def test_queues_that_hold_rows_back_are_woken_until_they_are_empty(tmp_path: Path, how: str) -> None:
    control = reader(tmp_path, clock="off" if how == "clock off" else "on")
    if how == "available now":
        control.clock_on = False
    CommitLog(tmp_path).write(0, {"wake_at": None, "queued": 7})
    woken = control.next_offset(START, 70, STREAMS)
    assert woken == {"now": 70, "ended": [], "wants": {}}
    CommitLog(tmp_path).write(1, {"wake_at": None, "queued": 2})
    again = control.next_offset(woken, 90, STREAMS)
    assert again["now"] == 90
    CommitLog(tmp_path).write(2, {"wake_at": None, "queued": 0})
    assert control.next_offset(again, 99, STREAMS) is again


def test_the_end_comes_once_and_nothing_after_it(tmp_path: Path) -> None:
    control = reader(tmp_path)
    end = control.next_offset(START, 70, STREAMS, ends=True)
    assert end == {"now": 70, "ended": ["a", "b"], "wants": {}}
    CommitLog(tmp_path).write(0, {"wake_at": 50})
    assert control.next_offset(end, 90, STREAMS, ends=True) is end


def test_a_stream_that_joins_after_the_end_has_one_of_its_own(tmp_path: Path) -> None:
    end = reader(tmp_path).next_offset(START, 70, STREAMS, ends=True)
    control = reader(tmp_path)
    joined = control.next_offset(end, 80, (*STREAMS, "c"), anew=True)
    assert [part.end for part in control.partitions(end, joined)] == [False]
    again = control.next_offset(joined, 90, (*STREAMS, "c"), ends=True)
    assert [part.end for part in control.partitions(joined, again)] == [True]
    assert control.next_offset(again, 99, (*STREAMS, "c"), ends=True) is again
    left = control.next_offset(again, 99, ("c",), anew=True)
    assert left["ended"] == ["c"], "one that has left and comes back is another one"


def test_a_waking_is_one_row_per_bucket(tmp_path: Path) -> None:
    control = reader(tmp_path)
    assert control.partitions(START, START) == []
    (partition,) = control.partitions(START, {"now": 70, "ended": ["a"], "wants": {"p": 50}})
    assert partition == WakeupPartition(now=70, end=True, wants={"p": 50})
    batch = wakeup_rows(partition, (12, 6), plan=3, live=True)
    assert batch.column("bucket").to_pylist() == [12, 6]
    assert set(batch.column("port").to_pylist()) == {"__control"}
    note = {"now": 70, "end": True, "wants": {"p": 50}, "plan": 3, "live": True, "committed": 0}
    assert [json.loads(each) for each in batch.column("note").to_pylist()] == [note] * 2


def test_another_plan_wakes_everyone(tmp_path: Path) -> None:
    woken = reader(tmp_path).next_offset(START, 70, STREAMS, anew=True)
    assert woken == {"now": 70, "ended": [], "wants": {}}
