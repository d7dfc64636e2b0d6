"""The archive of Java's classes: who writes it, who uses it, and what becomes of what is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from millrace.hosts.spark.session import class_archive
from millrace.hosts.spark.session.class_archive import archive_options, kept_folder, lean_home

LONG_AGO = 1_000_000_000
NOBODY = 2**22 + 1
"""A process number above all that there are."""


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A Java that brings the archive of its own classes."""
    command, base = tmp_path / "java" / "bin" / "java", tmp_path / "java" / "lib" / "server" / "classes.jsa"
    for file in (command, base):
        file.parent.mkdir(parents=True)
        file.touch()
    command.write_text('#!/bin/sh\n! grep -q broken "${1#*=}"\n')
    command.chmod(0o755)
    return str(command)


@pytest.fixture
def folder(tmp_path: Path, java: str) -> Path:
    """The folder of a Spark that has run once."""
    folder = tmp_path / "cache" / "spark-0"
    folder.mkdir(parents=True)
    assert archive_options(folder, java) == []
    return folder


def part(folder: Path, process: int, contents: bytes, age: int = LONG_AGO) -> Path:
    file = folder / f"classes.jsa.{process}.part"
    file.write_bytes(contents)
    os.utime(file, (age, age))
    return file


def test_the_second_run_writes_it_and_the_third_uses_it(folder: Path, java: str) -> None:
    writes, _ = archive_options(folder, java)
    assert writes == f'"-XX:ArchiveClassesAtExit={folder}/classes.jsa.{os.getpid()}.part"'
    (folder / f"classes.jsa.{os.getpid()}.part").write_bytes(b"\xa8\xba\x0b\xf0 and more")
    uses, _ = archive_options(folder, java)
    assert uses == f'"-XX:SharedArchiveFile={folder}/classes.jsa"'
    assert (folder / "classes.jsa").read_bytes().endswith(b"and more")


def test_an_archive_that_java_dies_of_is_not_used(folder: Path, java: str) -> None:
    part(folder, NOBODY, b"\xa8\xba\x0b\xf0 broken")
    assert "ArchiveClassesAtExit" in archive_options(folder, java)[0]
    assert not (folder / "classes.jsa").exists()


def test_an_archive_that_was_cut_short_later_is_not_used(folder: Path, java: str) -> None:
    part(folder, NOBODY, b"\xa8\xba\x0b\xf0 and more")
    assert "SharedArchiveFile" in archive_options(folder, java)[0]
    (folder / "classes.jsa").write_bytes(b"\xa8\xba\x0b\xf0")
    assert "ArchiveClassesAtExit" in archive_options(folder, java)[0]


def test_a_java_with_options_of_the_users_uses_an_archive_but_writes_none(folder: Path, java: str) -> None:
    assert archive_options(folder, java, write=False) == []
    part(folder, NOBODY, b"\xa8\xba\x0b\xf0 and more")
    assert "SharedArchiveFile" in archive_options(folder, java, write=False)[0]


def test_one_run_at_a_time_writes_it(folder: Path, java: str) -> None:
    part(folder, os.getppid(), b"")
    assert archive_options(folder, java) == []


def test_java_may_still_write_when_its_run_has_ended(folder: Path, java: str) -> None:
    file = part(folder, NOBODY, b"\0\0\0\0half")
    os.utime(file)
    assert archive_options(folder, java) == []
    assert file.exists()


def test_what_a_killed_java_has_left_is_removed_and_written_anew(folder: Path, java: str) -> None:
    left = part(folder, NOBODY, b"\0\0\0\0half")
    assert "ArchiveClassesAtExit" in archive_options(folder, java)[0]
    assert not left.exists()


def test_a_java_without_an_archive_of_its_own_writes_none(folder: Path, java: str) -> None:
    (Path(java).parents[1] / "lib" / "server" / "classes.jsa").unlink()
    assert archive_options(folder, java) == []


def test_the_home_is_the_same_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = kept_folder("/usr/bin/java", "17.0.1")
    assert folder is not None and folder == kept_folder("/usr/bin/java", "17.0.1")
    assert folder != kept_folder("/usr/bin/java", "21")
    assert lean_home(folder) == lean_home(folder)
    assert (lean_home(folder) / "jars").is_dir()
    assert not (lean_home(folder) / "python").exists()


def test_a_folder_that_cannot_be_made_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert kept_folder("/usr/bin/java", "17.0.1") is None


def test_what_belongs_to_a_spark_that_is_gone_is_dropped(tmp_path: Path, java: str) -> None:
    dead, live = tmp_path / "spark-dead", tmp_path / "spark-live"
    for folder in (dead, live):
        (folder / "spark").mkdir(parents=True)
        (folder / "spark" / "jars").symlink_to(tmp_path / ("jars" if folder is live else "nowhere"))
    (tmp_path / "jars").mkdir()
    archive_options(live, java)
    assert live.exists() and not dead.exists()


_START = """
import sys
from pathlib import Path
from millrace.hosts.spark.session.session import open_session
session = open_session("local[1]", log_file=Path(sys.argv[1]))
print(session.range(3).count())
java = session.sparkContext._gateway.proc
session.stop()
java.stdin.close()
java.wait()
"""


@pytest.mark.spark
@pytest.mark.long
def test_a_later_start_maps_the_classes_from_the_archive(tmp_path: Path) -> None:
    unset = {"SPARK_HOME", "SPARK_CONF_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["XDG_CACHE_HOME"] = str(tmp_path)

    def start() -> list[Path]:
        command = [sys.executable, "-c", _START, str(tmp_path / "log")]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout.split() == ["3"]
        return sorted(tmp_path.glob("millrace/spark-*/classes.jsa*"))

    assert start() == []
    assert [class_archive._whole(each) for each in start()] == [True]
    environment["JAVA_TOOL_OPTIONS"] = f"-Xlog:class+load=info:file={tmp_path / 'classes'}"
    assert [each.name for each in start()] == ["classes.jsa"]
    loaded = (tmp_path / "classes").read_text()
    assert "org.apache.spark.SparkContext source: shared objects file (top)" in loaded
