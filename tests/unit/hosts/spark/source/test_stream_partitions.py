from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.stream_input import read_schema
from millrace.errors import RunError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.stream_files import START
from millrace.hosts.spark.source.stream_partitions import Slice, StreamPartitions, chunks_of, shares, tasks_of
from tests.unit.connectors.shelf import REMOVED, SHELVES, Shelf, fill, stream_of

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**6), min_size=1)


def partitions_of(folder: Path, shelf: str, *, options: str = "") -> StreamPartitions:
    stream = stream_of(shelf, options=options)
    return StreamPartitions(stream, read_schema(stream, ["n"]), CommitLog(folder))


def read(parts: StreamPartitions, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    slices = [each for task in parts.partitions(start, end) for each in task.slices]
    chunks = chunks_of(parts.stream, parts.schema, slices)
    return [number for chunk in chunks for number in chunk.rows.column("n").to_pylist()]


def test_a_micro_batch_reads_what_came_since_the_one_before_and_a_replay_the_same(tmp_path: Path) -> None:
    fill("spark", {"a": [1, 2], "b": [10]})
    parts = partitions_of(tmp_path, "spark")
    first = parts.next_offset(START, 5)
    SHELVES["spark"]["a"] += [3]
    SHELVES["spark"]["c"] = [20]
    second = parts.next_offset(first, 6)
    # As Spark's log keeps it.
    replayed = json.loads(json.dumps(second))
    assert sorted(read(parts, START, first)) == [1, 2, 10]
    assert sorted(read(parts, first, second)) == sorted(read(parts, first, replayed)) == [3, 20]
    assert parts.next_offset(second, 7) is second
    assert (first["files"], second["files"]) == (2, 4)


def test_where_a_stream_begins_is_settled_before_there_is_anything_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("latest", {"a": [1, 2]})
    monkeypatch.setattr(Shelf, "starts", lambda self, spans: {name: each.end for name, each in spans.items()})
    parts = partitions_of(tmp_path, "latest")
    first = parts.next_offset(START, 5)
    assert parts.partitions(START, first) == []
    SHELVES["latest"]["a"] += [3]
    assert read(parts, first, parts.next_offset(first, 6)) == [3]


def test_a_bounded_run_reads_up_to_where_its_partitions_ended(tmp_path: Path) -> None:
    fill("until", {"a": [1, 2, 3]})
    parts = partitions_of(tmp_path, "until", options=", max_rows_per_trigger '2'")
    parts.prepare()
    SHELVES["until"]["a"] += [4]
    first = parts.next_offset(START, 5)
    second = parts.next_offset(first, 6)
    assert read(parts, START, first) + read(parts, first, second) == [1, 2, 3]
    assert (first["unread"], second["unread"]) == (1, 0)
    assert parts.next_offset(second, 7) is second


def test_the_bound_waits_for_all_partitions_of_the_source(tmp_path: Path) -> None:
    fill("known", {"a": [1], "b": []})
    parts = partitions_of(tmp_path, "known")
    [task] = parts.partitions(START, parts.next_offset(START, 5))
    assert task.known == ("a", "b")


def test_a_run_does_not_go_on_where_rows_are_gone(tmp_path: Path) -> None:
    fill("lost", {"a": [1, 2, 3]})
    parts = partitions_of(tmp_path, "lost", options=", max_rows_per_trigger '1'")
    first = parts.next_offset(START, 5)
    REMOVED["lost"] = {"a": 2}
    with pytest.raises(RunError, match="were deleted before they were read"):
        parts.next_offset(first, 6)


@given(unread=COUNTS, most=st.integers(1, 10**6))
def test_each_partition_with_rows_has_its_share_of_a_limit(unread: dict[str, int], most: int) -> None:
    taken = shares(unread, most)
    assert taken.keys() == unread.keys()
    assert all(1 <= taken[name] <= unread[name] for name in unread)
    assert sum(taken.values()) <= max(most, len(unread))
    assert sum(taken.values()) >= min(most, sum(unread.values()))
    assert shares(unread, None) == unread


@given(unread=COUNTS, most=st.integers(1, 5))
def test_tasks_read_all_slices_in_order(unread: dict[str, int], most: int) -> None:
    slices = [Slice(name, 0, count) for name, count in unread.items()]
    tasks = tasks_of(slices, most)
    assert [each for task in tasks for each in task] == slices
    assert 1 <= len(tasks) <= most
    assert all(tasks)
