"""What comes from Python becomes files, whole ones, that stay as long as they may be needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import time_ns
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.connectors.pushed import Pushed
from millrace.errors import RunError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.commit_reader import CommitReader
from millrace.hosts.spark.source import feed_files
from millrace.hosts.spark.source.feed_files import count_files, count_removed, put_rows, remove_files
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.python_streams import Polls, write_feed
from millrace.hosts.spark.source.stream_files import START, StreamFiles
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.physical.stages import physical

SQL = """CREATE STREAM s (k STRING, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;
CREATE QUERY q AS SELECT k, n FROM s"""
COLUMNS = ["k", "n", "ts"]


def stream() -> Stream:
    (found,) = mr.parse_network(SQL).streams()
    return found


def row(number: int) -> dict[str, Any]:
    return {"k": "a", "n": number, "ts": number}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_feed_that_is_cut_off_leaves_no_file_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(path: Path, format: str, rows: pa.Table, create: object) -> None:
        path.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    write_feed([[row(1)]], stream(), COLUMNS, tmp_path)
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(feed_files, "write_file", cut_off)
        write_feed([[row(1)], [row(2)]], stream(), COLUMNS, tmp_path)
    assert names(tmp_path) == ["00000000.parquet"]
    assert pq.read_table(tmp_path / "00000000.parquet").column("n").to_pylist() == [1]
    write_feed([[row(1)], [row(2)]], stream(), COLUMNS, tmp_path)
    assert [pq.read_table(tmp_path / name).column("n").to_pylist() for name in names(tmp_path)] == [[1], [2]]


Offset = dict[str, Any]


class Run:
    """A run over one pushed stream, as far as its files are concerned, up to its end or a kill."""

    def __init__(self, folder: Path) -> None:
        self.pushed, self.polls = Pushed(), Polls()
        self.log = CommitLog(folder / "commits")
        self.committed = CommitReader(self.log, profiled=False)
        self.committed.go_on()
        self.folder = folder / "feed"
        connector = self.polls.add(self.pushed, stream(), COLUMNS, self.folder)
        self.files = source(self.folder, connector, self.log)

    def give(self, numbers: Iterable[int]) -> None:
        """A file for each number."""
        for number in numbers:
            self.pushed.push(row(number))
            self.polls.look()

    def next_offset(self, start: Offset) -> Offset:
        return self.files.next_offset(start, time_ns() // 1000)

    def read(self, start: Offset, end: Offset) -> list[int]:
        """What a micro-batch reads."""
        paths = [path for part in self.files.partitions(start, end) for path in part.paths]
        return [number for path in paths for number in pq.read_table(path).column("n").to_pylist()]

    def commit(self, batch: int, end: Offset) -> None:
        known = {"files": end["files"], "received": 0}
        self.log.write(batch, {"batch": batch, "sources": {"s": known}})

    def look(self) -> None:
        """What the driver does now and then."""
        assert all(self.committed.look())
        self.polls.look()
        self.polls.remove(self.committed.settled())


def source(folder: Path, connector: Connector, log: CommitLog) -> StreamFiles:
    network = mr.parse_network(SQL.replace("FROM iterable", f"FROM parquet OPTIONS (path '{folder}')"))
    assert connector == network.streams()[0].connector
    return StreamFiles(StreamLowLevel(physical(network), "s", (0,)), "s", log)


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", [3, 50])
def test_a_long_run_with_kills_reads_each_row_once_and_leaves_few_files(tmp_path: Path, killed_after: int) -> None:
    run, read, begun, end = Run(tmp_path), list[int](), dict(START), dict(START)
    for number in range(150):
        run.pushed.push(row(number))
        run.look()
        if number % killed_after == 0:
            # The record may be there and Spark's own not: the newest micro-batch is replayed.
            again = Run(tmp_path)
            assert again.read(begun, end) == run.read(begun, end)
            run = again
        begun, end = end, run.next_offset(end)
        read += run.read(begun, end)
        run.commit(number, end)
    assert read == list(range(150))
    assert run.next_offset(end) is end
    assert count_files(run.folder) == 150
    assert len(names(run.folder)) < 60 < count_removed(run.folder)


def test_files_that_a_kill_left_after_they_were_counted_as_removed_are_not_read_and_go_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, missing_ok: bool) -> None:
        raise KeyboardInterrupt

    run = Run(tmp_path)
    run.give(range(6))
    end = run.next_offset(dict(START))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", killed)
        remove_files(run.folder, 4)
    assert len(names(run.folder)) == 6
    after = Run(tmp_path)
    assert after.next_offset(end) is end
    assert after.files.low_level.files().removed == 4
    after.pushed.push(row(6))
    assert after.polls.ask(["s"]) == {"s": 7}
    assert after.read(end, after.next_offset(end)) == [6]
    remove_files(run.folder, 5)
    assert names(run.folder) == ["00000005.parquet", "00000006.parquet"]


def test_numbers_go_on_also_when_no_file_is_left(tmp_path: Path) -> None:
    put_rows(tmp_path, 0, pa.table({"n": [0]}))
    assert (count_files(tmp_path), count_removed(tmp_path), count_removed(tmp_path / "none")) == (1, 0, 0)
    remove_files(tmp_path, 1)
    assert (count_files(tmp_path), count_removed(tmp_path), names(tmp_path)) == (1, 1, [])


def test_a_stream_that_is_read_anew_begins_with_the_first_file_that_is_there(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.give(range(6))
    remove_files(run.folder, 4)
    end = run.next_offset(dict(START))
    assert (end["files"], end["removed"], run.read(dict(START), end)) == (6, 4, [4, 5])
    assert [part.index for part in run.files.partitions(dict(START), end)] == [4]


def test_a_micro_batch_whose_files_have_been_removed_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.give(range(3))
    begun = run.next_offset(dict(START))
    run.give(range(3, 6))
    end = run.next_offset(begun)
    remove_files(run.folder, 4)
    for read in (lambda: run.read(begun, end), lambda: run.next_offset(begun)):
        with pytest.raises(RunError, match=r'"00000003.parquet" of stream "s" was read, and no longer exists'):
            read()


def test_a_file_that_is_missing_though_it_was_not_removed_is_still_noticed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.give(range(6))
    end = run.next_offset(dict(START))
    remove_files(run.folder, 3)
    (run.folder / "00000004.parquet").unlink()
    with pytest.raises(RunError, match=r'"00000004.parquet" of stream "s" was read, and no longer exists'):
        run.next_offset(end)


def test_what_the_newest_micro_batch_read_or_a_stream_that_came_back_is_not_settled(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)

    def commit(batch: int, **files: int) -> None:
        log.write(batch, {"batch": batch, "sources": {name: {"files": n, "received": 0} for name, n in files.items()}})

    def settled() -> dict[str, int]:
        assert all(committed.look())
        return committed.settled()

    commit(0, a=3)
    committed = CommitReader(log, profiled=False)
    committed.go_on()
    assert settled() == {}
    commit(1, a=5, b=1)
    assert settled() == {"a": 3}
    commit(2, b=2)
    assert settled() == {"b": 1}
    commit(3, a=9, b=2)
    commit(4, a=9, b=2)
    assert settled() == {"a": 9, "b": 2}
