"""Pushed rows wait in a bounded space: then who pushes waits, or is told."""

from __future__ import annotations

import queue
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.connectors.push_pull import Item
from millrace.errors import RequestError, StreamFull

ROW = {"a": 1}


def taken(source: mr.Pushed, rows: int) -> list[Item]:
    return source.take("s", lambda: 0, rows)


def in_a_thread(work: Any) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def attended(**limits: int) -> mr.Pushed:
    source = mr.Pushed(**limits)
    source.attend(True)
    return source


def test_room_is_counted_in_rows_and_in_bytes() -> None:
    table = pa.table({"a": pa.array(range(100), pa.int64())})
    for source, more in ((attended(most_rows=150), 50), (attended(most_bytes=1_200), 50)):
        source.push(table)
        with pytest.raises(StreamFull, match="full: 100 rows of 800 bytes wait"):
            source.push(table, block=False)
        source.push(table.slice(0, more), block=False)
        assert sum(len(rows) for _, rows in taken(source, 60)) == 60
        source.push(table.slice(0, 60), block=False)


def test_rows_of_python_have_a_size_too() -> None:
    source = attended(most_bytes=100_000)
    source.push([{"a": "x" * 1_000}] * 90)
    with pytest.raises(StreamFull):
        source.push([{"a": "x" * 1_000}] * 90, block=False)


def test_what_is_larger_than_the_room_is_pushed_alone() -> None:
    source = attended(most_rows=2)
    source.push([ROW] * 5)
    with pytest.raises(queue.Full):
        source.push(ROW, block=False)
    taken(source, 5)
    source.push([ROW] * 5, block=False)


def test_a_push_waits_until_the_run_has_taken_rows() -> None:
    source, pushed = attended(most_rows=2), []
    source.push([ROW] * 2)
    thread = in_a_thread(lambda: pushed.append(source.push(ROW, timeout=None)))
    assert sum(len(rows) for _, rows in taken(source, 2)) == 2
    thread.join(300)
    assert pushed == [None] and taken(source, 2)[0][1] == ROW


def test_a_push_waits_for_a_time() -> None:
    source = attended(most_rows=1)
    source.push(ROW)
    with pytest.raises(StreamFull, match="has not taken them in time"):
        source.push(ROW, timeout=0.01)


def test_where_no_run_takes_rows_a_push_does_not_wait() -> None:
    source = mr.Pushed(most_rows=1)
    source.push(ROW)
    with pytest.raises(StreamFull, match="no run takes its rows"):
        source.push(ROW, timeout=None)
    source.attend(True)
    thread = in_a_thread(lambda: source.attend(False))
    with pytest.raises(StreamFull, match="no run takes its rows"):
        source.push(ROW, timeout=None)
    thread.join()


def test_a_run_that_pushes_into_its_own_full_stream_is_told() -> None:
    source = attended(most_rows=1)
    source.push(ROW)
    taken(source, 1)
    source.push(ROW)
    with pytest.raises(StreamFull, match="the run that takes its rows pushes them"):
        source.push(ROW, timeout=None)


def test_a_push_that_waits_learns_that_the_stream_was_closed() -> None:
    source = attended(most_rows=1)
    source.push(ROW)
    thread = in_a_thread(source.close)
    with pytest.raises(RequestError, match="has been closed"):
        source.push(ROW, timeout=None)
    thread.join()


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_stream_with_little_room_gives_all_its_rows_to_a_run(host: str) -> None:
    source = mr.Pushed(most_rows=10)
    network = mr.Network()
    network.query("q", network.stream("s", "a BIGINT, ts TIMESTAMP", time="ts", source=source).select("a"))
    if host == "virtual":
        source.push([{"a": number, "ts": "2026-01-01 00:00:00"} for number in range(300)])
        source.close()
        handle = network.run(on="virtual", until="end")
    else:
        handle = network.run(on="local", until="end", background=True)
        for number in range(300):
            source.push({"a": number, "ts": "2026-01-01 00:00:00"}, timeout=None)
        source.close()
    assert handle.wait().results("q").column("a").to_pylist() == list(range(300))
    with pytest.raises(RequestError, match="closed"):
        source.push(ROW)
