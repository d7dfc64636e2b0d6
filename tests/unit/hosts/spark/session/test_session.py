from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from millrace.errors import RequestError
from millrace.hosts.spark.session import session as sessions
from millrace.hosts.spark.session.session import (
    java_version,
    join_session,
    leave_session,
    log_tail,
    open_session,
    parallelism,
    with_retries,
)


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


def test_a_java_that_is_slow_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "17.0.15"')
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexec sleep 5\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(sessions, "JAVA_PATIENCE", 0.05)
    with pytest.raises(RequestError, match=r'java -version" did not answer within 0\.05 s'):
        open_session("local[2]", log_file=tmp_path / "log")


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


class Joining:
    """A cluster whose executors register one by one, a look each; their cores are counted as Spark does."""

    master, executors = "spark://host:7077", 0

    def __init__(self, in_all: int) -> None:
        self.in_all = in_all
        status = SimpleNamespace(getExecutorMemoryStatus=lambda: SimpleNamespace(size=self.look))
        self._jsc: Any = SimpleNamespace(sc=lambda: status)

    def look(self) -> int:
        self.executors = min(self.executors + 1, self.in_all)
        return 1 + self.executors

    @property
    def defaultParallelism(self) -> int:
        return max(2, 4 * self.executors)


@pytest.fixture
def counted_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on by sleep alone, however busy the machine is."""
    seconds = [0.0]

    def sleep(more: float) -> None:
        seconds[0] += more

    monkeypatch.setattr(sessions, "time", SimpleNamespace(monotonic=lambda: seconds[0], sleep=sleep))


@pytest.mark.usefixtures("counted_seconds")
def test_the_cores_of_a_cluster_are_counted_when_its_executors_have_come() -> None:
    session: Any = SimpleNamespace(sparkContext=Joining(3))
    assert parallelism(session) == 12


@pytest.mark.usefixtures("counted_seconds")
def test_a_cluster_without_executors_is_not_waited_for_for_ever() -> None:
    session: Any = SimpleNamespace(sparkContext=Joining(0))
    assert parallelism(session) == 2


@pytest.mark.spark
@pytest.mark.slow
def test_a_file_of_state_that_is_written_twice_holds_what_was_written_last_on_spark(
    tmp_path: Path, spark_session: Any
) -> None:
    """Else a batch that is run again after a kill goes on with the state of the attempt that was killed."""
    java, folder = spark_session._jvm, str(tmp_path)
    found = java.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        java.org.apache.hadoop.fs.Path(folder), spark_session._jsparkSession.sessionState().newHadoopConf()
    )
    for text in (b"first", b"second"):
        file = found.createAtomic(java.org.apache.hadoop.fs.Path(folder + "/1.changelog"), True)
        file.write(bytearray(text))
        file.close()
    assert (tmp_path / "1.changelog").read_text() == "second"


class FakeSession:
    """A session that says when it is being ended, and takes its time."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.conf = SimpleNamespace(set=lambda name, value: None)
        self.ending, self.may_end, self.ended = Event(), Event(), False

    def stop(self) -> None:
        self.ending.set()
        self.may_end.wait(300)
        self.ended = True


def test_nobody_joins_a_session_that_is_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    first: Any = FakeSession()
    second: Any = FakeSession()
    monkeypatch.setattr(sessions, "running_session", lambda: None if first.ended else first)
    opened: list[Any] = [second, first]
    with patch.object(first, "ended", True):
        assert join_session(None, opened.pop) == (first, True)
    ending = Thread(target=leave_session, args=(first,))
    ending.start()
    assert first.ending.wait(300)
    found: list[Any] = []
    joining = Thread(target=lambda: found.append(join_session(None, opened.pop)))
    joining.start()
    first.may_end.set()
    joining.join(300)
    ending.join(300)
    assert found == [(second, True)]
    assert not second.ended


def test_the_last_run_ends_the_session_that_one_of_them_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = FakeSession()
    session.may_end.set()
    monkeypatch.setattr(sessions, "running_session", lambda: None)
    assert join_session(session, FakeSession) == (session, False), "it was there before"  # type: ignore[arg-type]
    assert join_session(None, lambda: session) == (session, True)
    assert join_session(session, FakeSession) == (session, True)  # type: ignore[arg-type]
    leave_session(session)
    assert not session.ended
    leave_session(session)
    assert session.ended
