from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.connectors.files.file_stamp import stamp
from millrace.connectors.files.input_files import list_files
from millrace.connectors.files.pieces.file_piece import FilePiece, ReadPiece
from millrace.connectors.files.pieces.piece_finder import PieceFinder
from millrace.errors import RequestError, RunError
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Stream

SQL = "CREATE STREAM s (n INT) LATENT TIMESTAMP FROM {} OPTIONS (path '{}'{}); SELECT n FROM s"


def stream_of(folder: Path, format: str = "csv", options: str = "") -> Stream:
    return parse_network(SQL.format(format, folder, options)).streams()[0]


def finder_of(
    folder: Path, format: str = "csv", options: str = "", *, ends: bool = False, bounded: bool = True
) -> PieceFinder:
    stream = stream_of(folder, format, options)
    return PieceFinder(stream, lambda: list_files(stream.connector, "s"), (), ends=ends, bounded=bounded)


def take(finder: PieceFinder) -> list[tuple[str, int, int]]:
    """The names and spans of what there is to read; it counts as read."""
    found = finder.look()
    for piece in found:
        finder.took(ReadPiece(piece, stamp(piece.path, piece.stop)))
    return [(Path(each.path).name, *each.span) for each in found]


def put(path: Path, text: str, *, rested: bool = False) -> Path:
    with path.open("a", newline="") as file:
        file.write(text)
    if rested:
        os.utime(path, ns=(1, time.time_ns() - 60_000_000_000))
    return path


def test_whole_lines_are_read_of_a_file_that_is_being_written_and_all_of_one_that_rests(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    path = put(tmp_path / "a.csv", "n\n1\n2")
    assert take(finder) == [("a.csv", 0, 4)] and finder.waiting
    assert take(finder) == [] and finder.waiting
    put(path, "3\n4", rested=True)
    assert take(finder) == [("a.csv", 4, 8)] and not finder.waiting
    put(path, "\n5\n")
    assert take(finder) == [("a.csv", 9, 11)] and not finder.waiting


def test_a_run_that_goes_on_holds_a_half_line_back_however_long_its_writer_pauses(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, bounded=False)
    path = put(tmp_path / "a.csv", "n\n1\n2", rested=True)
    assert take(finder) == [("a.csv", 0, 4)]
    assert take(finder) == []
    put(path, "3\n4", rested=True)
    assert take(finder) == [("a.csv", 4, 7)]
    put(tmp_path / "b.csv", "n\n5", rested=True)
    assert take(finder) == [("b.csv", 0, 2)], "a file that grew may go on, whatever other files come"
    put(path, "4\n", rested=True)
    assert take(finder) == [("a.csv", 7, 10)]


def test_only_half_a_line_is_an_empty_file_to_a_run_that_goes_on(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, bounded=False)
    path = put(tmp_path / "a.csv", "n", rested=True)
    assert take(finder) == [("a.csv", 0, 0)]
    put(path, "\n1\n", rested=True)
    assert take(finder) == [("a.csv", 0, 4)]


@pytest.mark.parametrize("seen", [True, False])
def test_a_last_line_without_an_end_is_taken_before_the_next_file(tmp_path: Path, seen: bool) -> None:
    finder = finder_of(tmp_path, bounded=False)
    put(tmp_path / "a.csv", "n\n1\n2", rested=True)
    if seen:
        assert take(finder) == [("a.csv", 0, 4)]
    put(tmp_path / "b.csv", "n\n3\n4", rested=True)
    assert take(finder) == [("a.csv", 4 if seen else 0, 5), ("b.csv", 0, 4)]


def test_half_a_line_of_column_names_is_waited_for_though_another_file_has_come(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, bounded=False)
    path = put(tmp_path / "a.csv", "n,", rested=True)
    put(tmp_path / "b.csv", "n\n1\n", rested=True)
    assert take(finder) == [("a.csv", 0, 0), ("b.csv", 0, 4)]
    assert take(finder_of(tmp_path, options=", header 'false'", bounded=False))[0] == ("a.csv", 0, 2)
    put(path, "m\n2,2\n3", rested=True)
    assert take(finder) == [("a.csv", 0, 8)]


def test_a_compressed_file_that_rests_is_read_though_no_other_follows(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, bounded=False)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n\n1"))
    assert take(finder) == []
    put(tmp_path / "a.csv.gz", "", rested=True)
    assert [name for name, _, _ in take(finder)] == ["a.csv.gz"]


def test_a_line_that_goes_on_after_it_was_read_is_an_error(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    path = put(tmp_path / "a.csv", "n\n1\n2", rested=True)
    assert take(finder) == [("a.csv", 0, 5)]
    put(path, "3\n")
    with pytest.raises(
        RunError, match=r'file ".*/a.csv" of stream "s" was extended in its last line, which had been read'
    ):
        finder.look()


def test_half_a_line_end_is_waited_for(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    path = put(tmp_path / "a.csv", "n\r\n1\r\n2", rested=True)
    assert take(finder) == [("a.csv", 0, 7)]
    put(path, "\r")
    assert take(finder) == []
    put(path, "\n3\r\n")
    assert take(finder) == [("a.csv", 9, 12)]


def test_a_record_of_several_lines_is_read_when_it_is_whole(tmp_path: Path) -> None:
    stream = "CREATE STREAM s (n INT, t STRING) LATENT TIMESTAMP FROM csv OPTIONS (path '{}'); SELECT n, t FROM s"
    declared = parse_network(stream.format(tmp_path)).streams()[0]
    finder = PieceFinder(declared, lambda: list_files(declared.connector, "s"), (), ends=False, bounded=True)
    path = put(tmp_path / "a.csv", 'n,t\n1,"a\n')
    assert take(finder) == [("a.csv", 0, 4)]
    put(path, 'b"\n2,5" nails\n3,c\n')
    assert take(finder) == [("a.csv", 4, path.stat().st_size)], "a quote within a field opens nothing"


def test_a_file_that_cannot_be_read_yet_holds_back_those_after_it(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    path = put(tmp_path / "a.csv", "n")
    put(tmp_path / "b.csv", "n\n1\n")
    assert take(finder) == [] and finder.waiting
    put(path, "\n")
    assert take(finder) == [("a.csv", 0, 2), ("b.csv", 0, 4)]


def test_an_empty_file_that_rests_is_read_and_may_grow(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    path = put(tmp_path / "a.csv", "", rested=True)
    assert take(finder) == [("a.csv", 0, 0)]
    put(path, "n\n1\n")
    assert take(finder) == [("a.csv", 0, 4)]


@pytest.mark.parametrize("format", ["parquet", "gz"])
def test_a_file_that_cannot_be_read_on_is_named_when_it_grows(tmp_path: Path, format: str) -> None:
    finder = finder_of(tmp_path, "csv" if format == "gz" else format)
    if format == "gz":
        path = tmp_path / "a.csv.gz"
        path.write_bytes(gzip.compress(b"n\n1\n"))
        assert take(finder) == [] and finder.waiting, "nothing tells when it is whole"
        put(path, "", rested=True)
    else:
        path = tmp_path / "a.parquet"
        path.write_bytes(b"PAR1half of it")
        assert take(finder) == [] and finder.waiting
        pq.write_table(pa.table({"n": [1]}), path)
    assert len(take(finder)) == 1
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(RunError, match=rf'file ".*/{path.name}" of stream "s" has grown since it was read'):
        finder.look()


@pytest.mark.parametrize(
    ("order", "names"), [("name", ["a", "b", "c"]), ("modified", ["c", "a", "b"]), ("arrival", ["b", "c", "a"])]
)
def test_files_are_read_in_the_order_that_is_asked_for(tmp_path: Path, order: str, names: list[str]) -> None:
    for name in ("b", "c", "a"):
        put(tmp_path / f"{name}.csv", "n\n1\n")
        time.sleep(0.02)
    changes = {name: (tmp_path / f"{name}.csv").stat().st_ctime_ns for name in "abc"}
    if order == "modified":
        for age, name in enumerate(("b", "a", "c"), 1):
            os.utime(tmp_path / f"{name}.csv", ns=(1, 10**18 - age))
    assert order == "modified" or sorted(changes, key=changes.__getitem__) == ["b", "c", "a"]
    finder = finder_of(tmp_path, options=f", order_by '{order}'")
    assert [name for name, _, _ in take(finder)] == [f"{name}.csv" for name in names]


@pytest.mark.parametrize(("order", "how"), [("name", "sorts before"), ("modified", "was modified before")])
def test_a_file_before_one_that_was_read_is_refused_or_read(tmp_path: Path, order: str, how: str) -> None:
    put(tmp_path / "b.csv", "n\n1\n", rested=True)
    strict = finder_of(tmp_path, options=f", order_by '{order}'")
    lenient = finder_of(tmp_path, options=f", order_by '{order}', earlier_files 'read'")
    assert len(take(strict)) == len(take(lenient)) == 1
    os.utime(put(tmp_path / "a.csv", "n\n2\n"), ns=(1, 1))
    with pytest.raises(RunError, match=rf'file ".*/a.csv" of stream "s" {how} "b.csv", which has been read'):
        strict.look()
    assert take(lenient) == [("a.csv", 0, 4)]


def test_what_a_file_gains_does_not_change_its_place_by_time(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, options=", order_by 'modified'")
    path = put(tmp_path / "a.csv", "n\n1\n", rested=True)
    take(finder)
    put(path, "2\n")
    assert take(finder) == [("a.csv", 4, 6)]
    put(tmp_path / "b.csv", "n\n3\n")
    os.utime(tmp_path / "b.csv", ns=(1, time.time_ns() - 30_000_000_000))
    assert take(finder) == [("b.csv", 0, 4)]


def test_files_that_were_read_must_stay(tmp_path: Path) -> None:
    finder = finder_of(tmp_path)
    put(tmp_path / "a.csv", "n\n1\n")
    put(tmp_path / "b.csv", "n\n2\n")
    take(finder)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(RunError, match=r'file ".*/a.csv" of stream "s" was read, and no longer exists'):
        finder.look()


def test_an_order_of_arrival_leaves_nothing_that_comes_earlier(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no file is earlier than another"):
        finder_of(tmp_path, options=", order_by 'arrival', earlier_files 'read'")
    with pytest.raises(RequestError, match='option "order_by" does not take "size"'):
        finder_of(tmp_path, options=", order_by 'size'")


def test_a_piece_knows_its_size() -> None:
    assert FilePiece("a", 3, 7, 0).size == 4
