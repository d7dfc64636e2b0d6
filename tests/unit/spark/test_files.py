from __future__ import annotations

from pathlib import Path
from time import sleep, time_ns
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
from toys import IntegerFiles

from millrace.errors import RunError
from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.failures import CarriedError, unwrap
from millrace.hosts.spark.files import START, FilePartition, FilesReader, Look, encode

ALL = ReadAllAvailable()


def reader(folder: Path, **options: str) -> FilesReader:
    low_level = encode(IntegerFiles(str(folder)))
    return FilesReader({"low_level": low_level, "stream": "bids", "commits": str(folder / "commits"), **options})


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("1")


def failure(reader: FilesReader, start: dict[str, Any]) -> RunError:
    with pytest.raises(CarriedError) as raised:
        reader.latestOffset(start, ALL)
    error = unwrap(raised.value)
    assert isinstance(error, RunError)
    return error


def test_an_unchanged_listing_gives_the_same_offset(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "a.txt")
    files = reader(tmp_path)
    first = files.latestOffset(files.initialOffset(), ALL)
    assert (first["files"], first["last"]) == (2, "b.txt")
    assert first["now"] > 0
    assert reader(tmp_path).latestOffset(first, ALL) is first


def test_a_file_came_when_it_was_put_in_its_place_unless_nobody_looked(tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    files = reader(tmp_path)
    first = files.latestOffset(dict(START), ALL)
    assert first["came"] == first["now"]
    sleep(0.05)
    put(tmp_path, ".b")
    sleep(0.05)
    (tmp_path / ".b").rename(tmp_path / "b.txt")
    placed = time_ns() // 1000
    sleep(0.05)
    second = files.latestOffset(first, ALL)
    assert first["now"] + 90_000 < second["came"] <= placed < second["now"]
    put(tmp_path, "c.txt", "d.txt")
    third = files.latestOffset(second, ReadMaxFiles(1))
    sleep(0.05)
    fourth = files.latestOffset(third, ReadMaxFiles(1))
    assert fourth["came"] == third["now"], "what was there at the last look has come by then"


def test_an_empty_folder_stays_at_the_start(tmp_path: Path) -> None:
    assert reader(tmp_path).latestOffset(dict(START), ALL) == START


def _read(part: FilePartition) -> tuple[list[str], int]:
    return [Path(path).name for path in part.paths], part.index


def test_a_low_level_that_reads_in_sequence_has_one_partition_a_micro_batch(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.txt")
    low_level = encode(IntegerFiles(str(tmp_path), in_sequence=True))
    files = FilesReader({"low_level": low_level, "stream": "bids", "commits": str(tmp_path / "commits")})
    one = files.latestOffset(dict(START), ReadMaxFiles(1))
    two = files.latestOffset(one, ALL)
    parts = [*files.partitions(dict(START), one), *files.partitions(one, two)]
    assert [_read(part) for part in parts] == [(["a.txt"], 0), (["b.txt", "c.txt"], 1)]
    assert all(part.alone for part in parts)
    assert files.partitions(two, two) == []


def test_the_read_limit_is_kept_and_a_partition_is_one_file_in_order(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.txt")
    files = reader(tmp_path, max_files="2")
    assert files.getDefaultReadLimit() == ReadMaxFiles(2)
    one = files.latestOffset(dict(START), ReadMaxFiles(2))
    two = files.latestOffset(one, ReadMaxFiles(2))
    CommitLog(tmp_path / "commits").write(0, {"sources": {"bids": {"files": 2, "greatest": 8}}})
    parts = [*files.partitions(dict(START), one), *files.partitions(one, two)]
    assert [_read(part) for part in parts] == [(["a.txt"], 0), (["b.txt"], 1), (["c.txt"], 2)]
    assert [part.before for part in parts] == [{}, {}, {"files": 2, "greatest": 8}]
    assert parts[2].look == Look(two["now"], two["came"], all=True)
    assert not parts[0].look.all, "a file is left unread"
    assert [part.alone for part in parts] == [False, False, True]


def test_available_now_stops_at_the_files_that_were_there_at_first(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt")
    files = reader(tmp_path)
    files.prepareForTriggerAvailableNow()
    put(tmp_path, "c.txt")
    offset = files.latestOffset(dict(START), ALL)
    assert offset["last"] == "b.txt"
    assert files.latestOffset(offset, ALL) is offset


def test_a_file_that_appears_out_of_name_order_is_named(tmp_path: Path) -> None:
    put(tmp_path, "b.txt")
    files = reader(tmp_path)
    start = files.latestOffset(dict(START), ALL)
    put(tmp_path, "a.txt")
    assert failure(files, start).fact == 'file "a.txt" of stream "bids" appeared before "b.txt", which has been read'


def test_a_file_that_appears_out_of_name_order_is_noticed_after_a_restart(tmp_path: Path) -> None:
    put(tmp_path, "b.txt")
    start = reader(tmp_path).latestOffset(dict(START), ALL)
    put(tmp_path, "a.txt")
    fact = failure(reader(tmp_path), start).fact
    assert fact == 'a file of stream "bids" appeared before "b.txt", which has been read'


@pytest.mark.parametrize("gone", ["a.txt", "b.txt"])
def test_a_file_that_is_gone_after_it_was_read_is_named(tmp_path: Path, gone: str) -> None:
    put(tmp_path, "a.txt", "b.txt")
    files = reader(tmp_path)
    start = files.latestOffset(dict(START), ALL)
    (tmp_path / gone).unlink()
    assert failure(files, start).fact == f'file "{gone}" of stream "bids" has been read and is gone'


def test_one_file_gone_and_another_come_is_noticed_after_a_restart(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "c.txt")
    start = reader(tmp_path).latestOffset(dict(START), ALL)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert 'of stream "bids"' in failure(reader(tmp_path), start).fact
