from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from millrace.errors import RunError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.exchange.rows import CONTROL_PORT, STREAM_PORT
from millrace.hosts.spark.failures import CarriedError, unwrap
from millrace.hosts.spark.source.network_source import NetworkReader
from millrace.language import parse_network

ALL = ReadAllAvailable()
Offset = dict[str, Any]


def declared(folder: Path, *streams: str) -> str:
    return "".join(
        f"CREATE STREAM {name} (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{folder / name}');"
        for name in streams
    )


def write_plan(folder: Path, number: int, *streams: str) -> None:
    for name in streams:
        (folder / name).mkdir(exist_ok=True)
    selects = "".join(f"CREATE QUERY q_{name} AS SELECT v FROM {name};" for name in streams)
    PlanLog(folder / "plans").write(number, Version(parse_network(declared(folder, *streams) + selects)))


def put(folder: Path, stream: str, number: int) -> None:
    (folder / stream / f"{number:04d}.csv").write_text(f"v,ts\n{number},2024-01-01 00:00:{number:02d}\n")


def reader(folder: Path, plan: int = 1, *, live: bool = True, ends: bool = False) -> NetworkReader:
    options = {"folder": str(folder), "plan": str(plan), "buckets": "[12, 6]"}
    return NetworkReader(options | {"live": str(live).lower(), "ends": str(ends).lower()})


def through_spark(offset: Offset) -> Offset:
    """An offset as Spark hands it back."""
    given: Offset = json.loads(json.dumps(offset))
    return given


def rows(source: NetworkReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    parts = source.partitions(start, end)
    # A task has a reader of its own, made before any offset was.
    return [
        row for part in parts for given in reader(source.plans.folder.parent).read(part) for row in given.to_pylist()
    ]


def told(given: list[dict[str, Any]], port: str) -> list[dict[str, Any]]:
    return [json.loads(row["note"]) for row in given if row["port"] == port and row["bucket"] == 12]


def test_one_offset_holds_all_streams_and_the_plan_by_which_they_are_read(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a", "b")
    source = reader(tmp_path)
    start = source.initialOffset()
    assert source.latestOffset(start, ALL) is start, "nothing is there"
    put(tmp_path, "b", 1)
    end = through_spark(source.latestOffset(start, ALL))
    assert (end["plan"], end["streams"]["a"]["files"], end["streams"]["b"]["files"]) == (1, 0, 1)
    assert source.latestOffset(end, ALL) is end
    (note,) = told(rows(source, start, end), STREAM_PORT)
    assert (note["stream"], note["files"], note["plan"]) == ("b", 1, 1)


def test_a_source_that_is_held_says_so_and_stays(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 1)
    source, log = reader(tmp_path), CommitLog(tmp_path / "commits")
    log.hold()
    assert not log.is_held(), "it has yet to come to a stop"
    start = source.initialOffset()
    assert source.latestOffset(start, ALL) is start
    assert log.is_held()
    log.release()
    assert source.latestOffset(start, ALL)["streams"]["a"]["files"] == 1
    assert not log.is_held()


def test_a_new_plan_wakes_everyone_and_streams_come_and_go_with_it(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a", "b")
    put(tmp_path, "a", 1)
    put(tmp_path, "b", 1)
    source = reader(tmp_path)
    first = through_spark(source.latestOffset(source.initialOffset(), ALL))
    write_plan(tmp_path, 2, "b", "c")
    put(tmp_path, "c", 1)
    second = through_spark(source.latestOffset(first, ALL))
    assert second["plan"] == 2
    assert {name: offset["files"] for name, offset in second["streams"].items()} == {"b": 1, "c": 1}
    given = rows(source, first, second)
    assert [note["stream"] for note in told(given, STREAM_PORT)] == ["c"]
    assert [note["plan"] for note in told(given, CONTROL_PORT)] == [2]
    assert source.latestOffset(second, ALL) is second


def test_a_stream_that_comes_back_is_read_from_its_beginning(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a", "b")
    put(tmp_path, "a", 1)
    source = reader(tmp_path)
    offset = through_spark(source.latestOffset(source.initialOffset(), ALL))
    for number, streams in ((2, ("b",)), (3, ("a", "b"))):
        write_plan(tmp_path, number, *streams)
        before, offset = offset, through_spark(source.latestOffset(offset, ALL))
    assert [note["files"] for note in told(rows(source, before, offset), STREAM_PORT)] == [1]


def test_a_micro_batch_is_replayed_by_its_own_plan_or_a_later_one_that_the_run_began_with(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 1)
    source = reader(tmp_path)
    start = source.initialOffset()
    end = through_spark(source.latestOffset(start, ALL))
    write_plan(tmp_path, 2, "a", "b")
    put(tmp_path, "b", 1)
    for least, plan in ((1, 1), (2, 2)):
        given = rows(reader(tmp_path, least), start, end)
        assert [(note["stream"], note["plan"]) for note in told(given, STREAM_PORT)] == [("a", plan)]


def test_a_replay_speaks_for_silent_streams_if_the_first_attempt_did(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 1)
    for live in (True, False):
        source = reader(tmp_path, live=live)
        start = source.initialOffset()
        end = through_spark(source.latestOffset(start, ALL))
        (note,) = told(rows(reader(tmp_path, live=not live), start, end), STREAM_PORT)
        assert note["live"] == live


def test_tasks_are_told_when_the_micro_batch_before_was_committed_also_on_a_replay(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 1)
    source, log = reader(tmp_path, live=True), CommitLog(tmp_path / "commits")
    first = through_spark(source.latestOffset(source.initialOffset(), ALL))
    assert [note["committed"] for note in told(rows(source, source.initialOffset(), first), STREAM_PORT)] == [0]
    known = {"batch": 0, "sources": {}, "committed": 70, "queued": 1}
    log.write(0, known)
    put(tmp_path, "a", 2)
    second = through_spark(source.latestOffset(first, ALL))
    log.write(1, {**known, "batch": 1, "committed": 90})
    given = rows(reader(tmp_path, live=True), first, second)
    assert [note["committed"] for port in (STREAM_PORT, CONTROL_PORT) for note in told(given, port)] == [70, 70]


def test_what_there_is_now_is_all_that_a_bounded_run_reads(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 1)
    source = reader(tmp_path, live=False)
    source.prepareForTriggerAvailableNow()
    put(tmp_path, "a", 2)
    end = source.latestOffset(source.initialOffset(), ALL)
    assert end["streams"]["a"]["files"] == 1
    assert source.latestOffset(end, ALL) is end


def test_the_end_comes_when_all_has_been_read_and_files_that_come_later_are_refused(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a", "b")
    put(tmp_path, "a", 1)
    source = reader(tmp_path, live=False, ends=True)
    source.prepareForTriggerAvailableNow()
    offset = through_spark(source.latestOffset(source.initialOffset(), ALL))
    assert (offset["streams"]["a"]["files"], offset["control"]["ended"]) == (1, [])
    put(tmp_path, "a", 2)
    end = through_spark(source.latestOffset(offset, ALL))
    assert (end["streams"]["a"]["files"], end["control"]["ended"]) == (1, ["a", "b"])
    assert [note["end"] for note in told(rows(source, offset, end), CONTROL_PORT)] == [True]
    assert source.latestOffset(end, ALL) is end
    with pytest.raises(CarriedError) as raised:
        reader(tmp_path).latestOffset(end, ALL)
    assert unwrap(raised.value).fact == 'stream "a" has ended, and now has more files'


def test_a_fault_of_a_stream_reaches_the_driver_whole(tmp_path: Path) -> None:
    write_plan(tmp_path, 1, "a")
    put(tmp_path, "a", 5)
    source = reader(tmp_path)
    end = source.latestOffset(source.initialOffset(), ALL)
    put(tmp_path, "a", 1)
    with pytest.raises(CarriedError) as raised:
        source.latestOffset(end, ALL)
    ours = unwrap(raised.value)
    assert isinstance(ours, RunError)
    assert ours.fact.endswith('a/0001.csv" of stream "a" sorts before "0005.csv", which has been read')
