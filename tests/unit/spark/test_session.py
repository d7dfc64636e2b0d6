from __future__ import annotations

from pathlib import Path

import pytest

from millrace.errors import RequestError
from millrace.hosts.spark.session import java_version, log_tail, open_session, with_retries


def fake_java(home: Path, says: str) -> None:
    """A JAVA_HOME whose `java -version` says that."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ('openjdk version "17.0.15" 2025-04-15', ("17.0.15", 17)),
        ('java version "1.8.0_402"', ("1.8.0_402", 8)),
        ('openjdk version "21" 2023-09-19', ("21", 21)),
        ("bash: no such thing", None),
    ],
)
def test_the_version_of_java_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: tuple[str, int] | None
) -> None:
    fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() == found


def test_no_java_is_refused_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match="Spark needs Java, and none was found") as raised:
        open_session("local[2]", log_file=tmp_path / "log")
    assert "openjdk-17" in raised.value.hint


def test_an_old_java_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match=r'"11\.0\.2" was found'):
        open_session("local[2]", log_file=tmp_path / "log")


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_local_masters_get_retries(master: str, expected: str) -> None:
    assert with_retries(master) == expected


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert log_tail(log) == ""
    log.write_text("\n".join(map(str, range(50))))
    assert log_tail(log, lines=2) == "48\n49"
