from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.torn_files import remove_torn

OFFSET, COMMIT = 'v2\n{"conf":{}}\nnetwork:{"plan": 1}\nrate:7\nother:-', "v1\n{}"


def spark_files(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / "spark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.with_name(f".{path.name}.crc").touch()


def left(folder: Path) -> set[str]:
    found = (folder / "spark").rglob("*")
    return {str(path.relative_to(folder / "spark")) for path in found if path.is_file() and path.suffix != ".crc"}


@pytest.mark.parametrize("torn", ["", "v2\n", "v2\n{", "v2\n{}\n", 'v2\n{}\nnetwork:{"pl', "\0\0\0\0"])
def test_what_spark_wrote_after_the_newest_record_is_removed_if_it_is_torn(tmp_path: Path, torn: str) -> None:
    CommitLog(tmp_path / "commits").write(3, {"batch": 3})
    whole = {"metadata": '{"id":"1"}', "offsets/3": OFFSET, "offsets/4": torn, "commits/2": COMMIT, "commits/3": torn}
    spark_files(tmp_path, whole)
    remove_torn(tmp_path, 3)
    # What is torn as an offset may be whole as a commit, which has one line less.
    assert left(tmp_path) - {"commits/3"} == {"metadata", "offsets/3", "commits/2"}
    assert (tmp_path / "spark" / "commits" / "3").exists() == (torn == "v2\n{}\n")
    assert not (tmp_path / "spark" / "offsets" / ".4.crc").exists()


def test_what_is_whole_and_what_is_on_record_stays(tmp_path: Path) -> None:
    CommitLog(tmp_path / "commits").write(3, {"batch": 3})
    spark_files(tmp_path, {"offsets/2": "", "offsets/4": OFFSET, "commits/3": COMMIT, "state/0/_metadata/v2/0": COMMIT})
    remove_torn(tmp_path, 3)
    assert left(tmp_path) == {"offsets/2", "offsets/4", "commits/3", "state/0/_metadata/v2/0"}


def test_without_a_record_torn_files_let_sparks_part_begin_anew(tmp_path: Path) -> None:
    spark_files(tmp_path, {"metadata": "", "offsets/0": OFFSET})
    remove_torn(tmp_path, None)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("newest", [3, None])
def test_a_torn_snapshot_that_is_later_than_the_record_is_removed(tmp_path: Path, newest: int | None) -> None:
    if newest is not None:
        CommitLog(tmp_path / "commits").write(newest, {"batch": newest})
    spark_files(tmp_path, {"state/0/0/4.zip": "", "state/0/0/4.changelog": "", "state/0/1/SSTs/1.sst": "1"})
    with ZipFile(tmp_path / "spark" / "state" / "0" / "1" / "4.zip", "w") as archive:
        archive.writestr("metadata", "v1")
    remove_torn(tmp_path, newest)
    assert left(tmp_path) == {"state/0/0/4.changelog", "state/0/1/4.zip", "state/0/1/SSTs/1.sst"}


HOUR = 3_600 * 10**9


@pytest.mark.parametrize(
    ("name", "later", "stays"),
    [("4", -1, True), ("4", 0, False), ("4", 1, False), ("5", -HOUR, False), ("5_1b7e", -HOUR, False)],
)
def test_a_torn_snapshot_is_as_late_as_its_file_or_its_number(
    tmp_path: Path, name: str, later: int, stays: bool
) -> None:
    CommitLog(tmp_path / "commits").write(3, {"batch": 3})
    spark_files(tmp_path, {f"state/0/0/{name}.zip": ""})
    recorded = (tmp_path / "commits" / "00000003.json").stat().st_mtime_ns
    # Its time is before that of the record if the clock was set back between the two.
    os.utime(tmp_path / "spark" / "state" / "0" / "0" / f"{name}.zip", ns=(recorded + later, recorded + later))
    remove_torn(tmp_path, 3)
    assert left(tmp_path) == ({f"state/0/0/{name}.zip"} if stays else set())
