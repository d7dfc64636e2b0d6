from __future__ import annotations

from pathlib import Path
from time import sleep, time_ns
from typing import Any

import pytest
from toys import IntegerFiles

from millrace.errors import RunError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.stream_files import START, FileLimit, FilePartition, FileScan, Offset, StreamFiles


class Files(StreamFiles):
    """Files that are looked for by the clock."""

    def next_offset(self, start: Offset, clock: int | None = None) -> Offset:
        return super().next_offset(start, time_ns() // 1000 if clock is None else clock)


def reader(folder: Path, limit: FileLimit | None = None, *, in_sequence: bool = False) -> Files:
    return Files(IntegerFiles(str(folder), in_sequence), "bids", CommitLog(folder / "commits"), limit)


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("1")


def failure(reader: Files, start: dict[str, Any]) -> RunError:
    with pytest.raises(RunError) as raised:
        reader.next_offset(start)
    return raised.value


def test_an_unchanged_listing_gives_the_same_offset(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "a.txt")
    files = reader(tmp_path)
    first = files.next_offset(dict(START))
    assert (first["files"], first["last"]) == (2, "b.txt")
    assert first["now"] > 0
    assert reader(tmp_path).next_offset(first) is first


def test_a_file_came_when_it_was_put_in_its_place_unless_nobody_looked(tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    files = reader(tmp_path)
    first = files.next_offset(dict(START))
    assert first["first"] == first["now"] <= first["came"] <= time_ns() // 1000
    sleep(0.05)
    put(tmp_path, ".b")
    sleep(0.05)
    (tmp_path / ".b").rename(tmp_path / "b.txt")
    placed = time_ns() // 1000
    sleep(0.05)
    second = files.next_offset(first)
    assert first["now"] + 90_000 < second["came"] <= placed < second["now"]
    assert second["first"] == second["came"], "it is the only one"
    put(tmp_path, "c.txt", "d.txt")
    files.limit = FileLimit(files=1)
    sleep(0.05)
    third = files.next_offset(second)
    sleep(0.05)
    fourth = files.next_offset(third)
    assert fourth["came"] == third["now"], "what was there at the last look has come by then"
    assert fourth["first"] <= third["now"] - 40_000, "and is as stale as it is, though a limit left it behind"


def test_the_first_file_of_a_micro_batch_and_the_last_one_came_at_times_of_their_own(tmp_path: Path) -> None:
    files = reader(tmp_path)
    files.next_offset(dict(START))
    put(tmp_path, "a.txt")
    placed = time_ns() // 1000
    sleep(0.05)
    put(tmp_path, "b.txt", "c.txt")
    offset = files.next_offset(dict(START))
    assert offset["files"] == 3
    assert offset["first"] <= placed < placed + 40_000 < offset["came"] <= offset["now"]


def test_an_empty_folder_stays_at_the_start(tmp_path: Path) -> None:
    assert reader(tmp_path).next_offset(dict(START)) == START


def _read(part: FilePartition) -> tuple[list[str], int]:
    return [Path(path).name for path in part.paths], part.index


def test_a_low_level_that_reads_in_sequence_has_one_partition_a_micro_batch(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.txt")
    files = reader(tmp_path, FileLimit(files=1), in_sequence=True)
    one = files.next_offset(dict(START))
    files.limit = FileLimit()
    two = files.next_offset(one)
    parts = [*files.partitions(dict(START), one), *files.partitions(one, two)]
    assert [_read(part) for part in parts] == [(["a.txt"], 0), (["b.txt", "c.txt"], 1)]
    assert all(part.alone for part in parts)
    assert files.partitions(two, two) == []


def test_the_read_limit_is_kept_and_a_partition_is_one_file_in_order(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.txt")
    files = reader(tmp_path, FileLimit.of({"max_files_per_trigger": "2"}))
    one = files.next_offset(dict(START))
    two = files.next_offset(one)
    CommitLog(tmp_path / "commits").write(0, {"sources": {"bids": {"files": 2, "greatest": 8}}})
    parts = [*files.partitions(dict(START), one), *files.partitions(one, two)]
    assert [_read(part) for part in parts] == [(["a.txt"], 0), (["b.txt"], 1), (["c.txt"], 2)]
    assert [part.before for part in parts] == [{}, {}, {"files": 2, "greatest": 8}]
    assert parts[2].scan == FileScan(two["now"], two["first"], two["came"], all=True)
    assert not parts[0].scan.all, "a file is left unread"
    assert [part.alone for part in parts] == [False, False, True]


def test_available_now_stops_at_the_files_that_were_there_at_first(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt")
    files = reader(tmp_path)
    files.prepare()
    put(tmp_path, "c.txt")
    offset = files.next_offset(dict(START))
    assert offset["last"] == "b.txt"
    assert files.next_offset(offset) is offset


def test_a_file_that_appears_out_of_name_order_is_named(tmp_path: Path) -> None:
    put(tmp_path, "b.txt")
    files = reader(tmp_path)
    start = files.next_offset(dict(START))
    put(tmp_path, "a.txt")
    assert failure(files, start).fact == 'file "a.txt" of stream "bids" appeared before "b.txt", which has been read'


def test_a_file_that_appears_out_of_name_order_is_noticed_after_a_restart(tmp_path: Path) -> None:
    put(tmp_path, "b.txt")
    start = reader(tmp_path).next_offset(dict(START))
    put(tmp_path, "a.txt")
    fact = failure(reader(tmp_path), start).fact
    assert fact == 'a file of stream "bids" appeared before "b.txt", which has been read'


@pytest.mark.parametrize("gone", ["a.txt", "b.txt"])
def test_a_file_that_is_gone_after_it_was_read_is_named(tmp_path: Path, gone: str) -> None:
    put(tmp_path, "a.txt", "b.txt")
    files = reader(tmp_path)
    start = files.next_offset(dict(START))
    (tmp_path / gone).unlink()
    assert failure(files, start).fact == f'file "{gone}" of stream "bids" was read, and no longer exists'


def test_one_file_gone_and_another_come_is_noticed_after_a_restart(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "c.txt")
    start = reader(tmp_path).next_offset(dict(START))
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert 'of stream "bids"' in failure(reader(tmp_path), start).fact


def test_a_micro_batch_takes_no_more_bytes_than_its_limit_but_one_file_in_any_case(tmp_path: Path) -> None:
    for name, size in (("a", 4), ("b", 3), ("c", 9), ("d", 1)):
        (tmp_path / f"{name}.txt").write_text("1" * size)
    files, offsets = reader(tmp_path, FileLimit.of({"max_bytes_per_trigger": "7"})), [dict(START)]
    while (after := files.next_offset(offsets[-1])) is not offsets[-1]:
        offsets.append(after)
    assert [offset["last"] for offset in offsets] == ["", "b.txt", "c.txt", "d.txt"]


def test_files_behind_the_limit_are_not_looked_at(tmp_path: Path) -> None:
    class Counted(IntegerFiles):
        def size(self, path: str) -> int:
            sized.append(Path(path).name)
            return super().size(path)

    sized: list[str] = []
    put(tmp_path, "a.txt", "b.txt", "c.txt", "d.txt")
    low_level = Counted(str(tmp_path))
    assert FileLimit(bytes=2).allowed(low_level, low_level.files().paths) == 2
    assert sized == ["a.txt", "b.txt", "c.txt"]
