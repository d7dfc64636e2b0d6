"""Segments that worker processes of one machine share as files, beside Spark's state."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from staged import Staged, State

from millrace.errors import CheckpointError
from millrace.hosts.spark.exchange.rows import pack, unpack
from millrace.hosts.spark.stage import segment_files
from millrace.hosts.spark.stage.bucket_state import BucketState
from millrace.hosts.spark.stage.segment_files import SegmentFiles, shared_folder
from millrace.language import parse_network

ROWS = pa.table({"k": ["a", "b", None], "n": [1, 2, 3]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "blockmgr-1").mkdir()
    return tmp_path / "blockmgr-1" / "millrace-segments"


def store(state: State, folder: Path | None, checkpoint: str = "here") -> BucketState:
    return BucketState(state, SegmentFiles(checkpoint, folder), 3, 1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_another_process_reads_the_file_and_not_the_state(folder: Path) -> None:
    state = State()
    place = store(state, folder).add("node", ROWS)
    reader = store(state, folder)
    assert reader.segment("node", place).equals(ROWS)
    assert reader.counts["reads"] == 0


def test_a_segment_that_is_not_there_comes_from_the_state_and_is_there_from_then_on(folder: Path) -> None:
    state = State()
    place = store(state, None).add("node", ROWS)
    first, second = store(state, folder), store(state, folder)
    assert first.segment("node", place).equals(ROWS)
    assert second.segment("node", place).equals(ROWS)
    assert (first.counts["reads"], second.counts["reads"]) == (1, 0)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_off_is_not_believed(folder: Path, share: float) -> None:
    state = State()
    place = store(state, folder).add("node", ROWS)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[: int(len(content) * share)])
    reader = store(state, folder)
    assert reader.segment("node", place).equals(ROWS)
    assert reader.counts["reads"] == 1


def test_a_segment_of_another_checkpoint_or_operator_is_not_taken(folder: Path) -> None:
    SegmentFiles("here", folder).write("node", 7, ROWS)
    assert SegmentFiles("here", folder).read("node", 7) is not None
    assert SegmentFiles("there", folder).read("node", 7) is None
    assert SegmentFiles("here", folder).read("other", 7) is None


def test_what_is_removed_from_the_state_is_removed_here_and_stays_with_who_reads_it(folder: Path) -> None:
    state = State()
    writer = store(state, folder)
    place = writer.add("node", ROWS)
    read = store(state, folder).segment("node", place)
    writer.remove("node", place)
    assert names(folder) == []
    assert read.equals(ROWS)


def test_where_there_is_no_room_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = SegmentFiles("here", folder)
    files.write("node", 1, ROWS)
    (size,) = (path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(segment_files, "_MOST_BYTES", size + ROWS.nbytes - 1)
    files.write("node", 2, ROWS)
    assert files.read("node", 1) is not None
    assert files.read("node", 2) is None


def test_files_that_nobody_has_read_for_long_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = SegmentFiles("here", folder)
    for place in (1, 2):
        files.write("node", place, ROWS)
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    monkeypatch.setattr(segment_files, "_MOST_BYTES", 2 * path.stat().st_size)
    assert files.read("node", 1) is not None, "to read a file is to use it"
    files.write("node", 3, ROWS)
    assert [files.read("node", place) is not None for place in (1, 2, 3)] == [True, False, True]


def test_a_folder_that_cannot_be_written_to_is_no_error(folder: Path) -> None:
    folder.write_text("not a folder")
    state = State()
    writer = store(state, folder)
    place = writer.add("node", ROWS)
    assert writer.segment("node", place).equals(ROWS)
    writer.remove("node", place)


def test_only_a_folder_that_goes_with_the_executor_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert shared_folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/data/scratch")
    assert shared_folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/data/scratch,/data/spark-2/blockmgr-3")
    assert shared_folder() == Path("/data/spark-2/blockmgr-3/millrace-segments")


def test_a_bucket_in_another_process_goes_on_from_files(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(folder.parent))
    network = parse_network(
        """CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path 'in');
        CREATE SINK out TO parquet OPTIONS (path 'out');
        CREATE QUERY q INTO out AS
            SELECT k, count(*) AS n FROM s [RANGE 60 SECONDS SLIDE 60 SECONDS WA ts] GROUP BY k;"""
    )
    staged = Staged(network, tmp_path, buckets=(3,))
    for second in (1, 2):
        staged.batch({"s": [_at(second, ["a", "b"])]}, second * 1_000_000)
        staged.restart()
    (state,) = staged.states
    for key in [key for key in state.values[3] if key[0]]:
        # A worker that asked the state for a segment would fail.
        state.values[3][key] = (b"",)
    found = staged.batch({"s": [_at(61, ["a"])]}, 61_000_000)
    assert sorted((row["k"], row["n"]) for row in found["q"]) == [("a", 2), ("b", 2)]
    assert staged.record["metrics"]["state"]["reads"] == 1


def test_blobs_are_small_and_those_of_earlier_versions_can_be_read() -> None:
    rows = pa.table({"k": ["10.0.0.1"] * 1_000, "n": range(1_000)})
    plain = pa.BufferOutputStream()
    with pa.ipc.new_stream(plain, rows.schema) as stream:
        stream.write(rows)
    assert len(pack(rows)) * 2 < plain.tell()
    assert unpack(pack(rows)).equals(rows)
    assert unpack(bytes(plain.getvalue())).equals(rows)


def _at(second: int, keys: list[str]) -> pa.Table:
    times = pa.array([second * 1_000_000] * len(keys), pa.timestamp("us", tz="UTC"))
    return pa.table({"k": keys, "ts": times})


def test_a_damaged_file_is_not_believed_and_a_damaged_state_is_refused(folder: Path) -> None:
    kept = State()
    place = store(kept, folder).add("join#1", ROWS)
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert store(kept, folder).segment("join#1", place) == ROWS
    blob = bytearray(kept.values[0]["join#1", place][0])
    blob[len(blob) // 2] ^= 1
    kept.values[0]["join#1", place] = (bytes(blob),)
    file.unlink()
    with pytest.raises(CheckpointError, match=r'a segment of operator "join#1" in the state of bucket 3 of level 1'):
        store(kept, folder).segment("join#1", place)
    store(kept, folder).write_manifest({"layout": 1})
    kept.values[0]["", 0] = (kept.values[0]["", 0][0].replace(b"1}", b"0}"),)
    with pytest.raises(CheckpointError, match="the manifest in the state of bucket 3 of level 1"):
        store(kept, folder).manifest()
