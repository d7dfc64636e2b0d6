"""Files that change after they were read are errors that name the file, at a restart and while a run goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.connectors.files import file_stamp
from millrace.connectors.files.file_stamp import check_stamp, stamp
from millrace.connectors.inputs import open_input
from millrace.errors import MalformedRow, RunError
from millrace.hosts.local.cut_input import CutInput
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.followed_files import FollowedFiles
from millrace.hosts.spark.source.stream_files import START
from millrace.language import parse_network
from tests.unit.hosts.spark.toys import IntegerFiles

SQL = """
CREATE STREAM s (n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {1} OPTIONS (path '{0}/in');
CREATE SINK o TO csv OPTIONS (path '{0}/out');
CREATE QUERY q INTO o AS SELECT n FROM s;
"""
Change = Callable[[Path], object]


def rewritten(path: Path) -> None:
    """Other rows, as many bytes, and the old time of change."""
    before = path.stat()
    path.write_text(path.read_text().replace("\n1,", "\n7,"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


def replaced(path: Path) -> None:
    other = path.with_name(".other")
    other.write_text("n,ts\n5,2024-01-01 00:00:01\n6,2024-01-01 00:00:01\n")
    other.replace(path)


def emptied(path: Path) -> None:
    path.write_text("")


def put(folder: Path, *numbers: int) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    path = folder / "in" / f"{numbers[0]}.csv"
    path.write_text("n,ts\n" + "".join(f"{number},2024-01-01 00:00:{number:02d}\n" for number in numbers))
    return path


def run(folder: Path) -> None:
    network = parse_network(SQL.format(folder, "csv"))
    LocalRun(network, RunOptions("local", "available", checkpoint=folder / "state")).run()


def results(folder: Path) -> str:
    return "".join(path.read_text().replace('"n"\n', "") for path in sorted((folder / "out").glob("part-*")))


OTHERS, FEWER = "the first [0-9]+ bytes, which were read, are others", "[0-9]+ bytes of it were read, and it has [0-9]+"


@pytest.mark.parametrize(
    ("change", "how"), [(rewritten, OTHERS), (truncated, FEWER), (replaced, OTHERS), (emptied, FEWER)]
)
def test_a_file_that_has_changed_since_it_was_read_is_named_at_a_restart_on_local(
    tmp_path: Path, change: Change, how: str
) -> None:
    put(tmp_path, 1)
    put(tmp_path, 2)
    run(tmp_path)
    change(tmp_path / "in" / "1.csv")
    put(tmp_path, 3)
    with pytest.raises(RunError, match=rf'file ".*/in/1.csv" of stream "s" has changed since it was read: {how}'):
        run(tmp_path)
    assert results(tmp_path) == "1\n2\n"


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    known = stamp(str(path := put(tmp_path, 1)))
    path.unlink()
    with pytest.raises(RunError, match='of stream "s" has changed since it was read: it is gone'):
        check_stamp(str(path), known, "s")


def test_files_that_are_touched_or_copied_are_the_same_and_what_they_gain_is_read(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        put(tmp_path, number)
    run(tmp_path)
    os.utime(tmp_path / "in" / "1.csv", ns=(1, 1))
    copy = tmp_path / "in" / ".copy"
    copy.write_bytes((tmp_path / "in" / "2.csv").read_bytes())
    copy.replace(tmp_path / "in" / "2.csv")
    with (tmp_path / "in" / "3.csv").open("a") as file:
        file.write("9,2024-01-01 00:00:09\n")
    put(tmp_path, 4)
    run(tmp_path)
    assert results(tmp_path) == "1\n2\n3\n9\n"


@pytest.mark.parametrize("change", [rewritten, truncated, replaced])
def test_a_change_is_found_while_a_stream_is_read(tmp_path: Path, change: Change) -> None:
    path = put(tmp_path, 1)
    stream = parse_network(SQL.format(tmp_path, "csv")).streams()[0]
    source = open_input(stream, ["n"], None, None)
    assert source.read() is not None and source.read() is None
    change(path)
    with pytest.raises(RunError, match=r'file ".*/in/1.csv" of stream "s" has changed'):
        source.read()


def big(folder: Path) -> Path:
    """A file of three blocks: the first two have been read where the third is malformed."""
    (folder / "in").mkdir()
    path = folder / "in" / "1.csv"
    lines = [f"{number % 10},2024-01-01 00:00:00" for number in range(120_000)]
    path.write_text("\n".join(["n,ts", *lines, "x,2024-01-01 00:00:00", ""]))
    return path


def half_read(folder: Path) -> dict[str, object]:
    """The position behind all rows before the malformed one."""
    source = open_input(parse_network(SQL.format(folder, "csv")).streams()[0], ["n"], None, None)
    with pytest.raises(MalformedRow):
        while source.read():
            pass
    return source.position()


def test_what_was_read_of_an_open_file_must_stay_and_the_rest_may_be_mended(tmp_path: Path) -> None:
    path = big(tmp_path)
    position, stream = half_read(tmp_path), parse_network(SQL.format(tmp_path, "csv")).streams()[0]
    text = path.read_text()
    path.write_text(text.replace("x,2024", "8,2024"))
    chunk = open_input(stream, ["n"], None, position).read()
    assert chunk is not None and chunk.rows.to_pylist() == [{"n": 8}]
    path.write_text(text.replace("\n0,", "\n5,", 1))
    with pytest.raises(RunError, match=r"the first .* bytes, which were read, are others"):
        open_input(stream, ["n"], None, position)


def test_what_was_read_of_a_parquet_file_must_stay(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"n": pa.array(range(300_000), pa.int32()), "ts": pa.array([0] * 300_000, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in" / "1.parquet", row_group_size=100_000, compression="none")
    stream = parse_network(SQL.format(tmp_path, "parquet")).streams()[0]
    source = open_input(stream, ["n"], None, None)
    source.read()
    source.read()
    position = source.position()
    open_input(stream, ["n"], None, position)
    content = bytearray((tmp_path / "in" / "1.parquet").read_bytes())
    content[40] ^= 1
    (tmp_path / "in" / "1.parquet").write_bytes(content)
    with pytest.raises(RunError, match="has changed since it was read"):
        open_input(stream, ["n"], None, position)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_that_is_read_at_once_is_digested_once(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    digested: list[int] = []
    monkeypatch.setattr(file_stamp, "_digest", lambda path, size: digested.append(size) or "")
    monkeypatch.setattr(file_stamp, "_TICK", -1)
    path = put(tmp_path, 1, 2)
    if format == "parquet":
        table = pa.table({"n": pa.array([1, 2], pa.int32()), "ts": pa.array([0, 1], pa.timestamp("us"))})
        path = path.rename(tmp_path / "1.csv").with_name("in") / "1.parquet"
        pq.write_table(table, path)
    source = CutInput(open_input(parse_network(SQL.format(tmp_path, format)).streams()[0], ["n"], None, None))
    while source.read():
        pass
    assert digested == [path.stat().st_size]


def test_a_large_file_that_was_written_again_counts_as_changed_wherever_the_change_is(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(3 << 20))
    known = stamp(str(path))
    with path.open("r+b") as file:
        # Between two pieces of the sample.
        file.seek((1 << 16) + 5)
        file.write(b"1")
    os.utime(path, ns=(1, 1))
    with pytest.raises(RunError, match="written again"):
        check_stamp(str(path), known, "s")


def test_a_change_in_the_moment_after_the_stamp_is_found_though_the_times_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("123")
    known = stamp(str(path))
    rewritten_at = path.stat().st_mtime_ns
    path.write_text("923")
    os.utime(path, ns=(rewritten_at, rewritten_at))
    with pytest.raises(RunError, match="which were read, are others"):
        check_stamp(str(path), replace(known, changed=path.stat().st_ctime_ns if known.changed else 0), "s")


def spark_files(folder: Path) -> FollowedFiles:
    stream = parse_network(SQL.format(folder, "json")).streams()[0]
    return FollowedFiles(IntegerFiles(str(folder)), stream, CommitLog(folder / "state" / "commits"))


@pytest.mark.parametrize("restarted", [True, False])
def test_a_file_that_has_changed_since_it_was_read_is_named_by_the_source_of_spark(
    tmp_path: Path, restarted: bool
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("123\n")
    files = spark_files(tmp_path)
    start = files.next_offset(START, 1)
    assert start["files"] == 2
    files.partitions(START, start)
    (tmp_path / "b.txt").touch()
    files = spark_files(tmp_path) if restarted else files
    assert files.next_offset(start, 2) is start
    (tmp_path / "a.txt").write_text("923\n")
    with pytest.raises(RunError, match=r'file ".*/a.txt" of stream "s" has changed since it was read'):
        (spark_files(tmp_path) if restarted else files).next_offset(start, 3)


@pytest.mark.parametrize("committed", [True, False])
def test_a_file_may_be_mended_on_spark_until_its_micro_batch_is_committed(tmp_path: Path, committed: bool) -> None:
    (tmp_path / "a.txt").write_text("x23\n")
    files = spark_files(tmp_path)
    start = files.next_offset(START, 1)
    files.partitions(START, start)
    if committed:
        files.commits.write(0, {"sources": {"s": {"files": 1}}})
    (tmp_path / "a.txt").write_text("1234\n")
    # Spark replays what it has not marked as committed.
    files = spark_files(tmp_path)
    files.partitions(START, start)
    if not committed:
        assert files.next_offset(start, 2) is start
        (tmp_path / "a.txt").write_text("9234\n")
        files = spark_files(tmp_path)
    with pytest.raises(RunError, match="has changed since it was read"):
        files.next_offset(start, 3)
