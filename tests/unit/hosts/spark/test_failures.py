from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from millrace.errors import MillraceError, Place, QueryError, RunError
from millrace.hosts.spark.failures import CarriedError, carrying, is_lost_process, unwrap

WORKER = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
Traceback (most recent call last):
  File "worker.py", line 3, in read
    int("x")
ValueError: invalid literal
\tat org.apache.spark.Something
"""


def carried(error: MillraceError) -> str:
    """What a worker writes to Spark when the error is raised in it."""
    with pytest.raises(CarriedError) as raised, carrying():
        raise error
    return "".join(traceback.format_exception(raised.value))


def test_an_error_of_ours_is_found_in_the_text_that_spark_passes_on() -> None:
    sent = QueryError('column "a" is unknown\nin two lines', hint="Say ü.", place=Place(1, 2, "a", "SELECT a"))
    got = unwrap(Exception(f"[STREAM_FAILED] ...\n{carried(sent)}\n\tat java"))
    assert type(got) is QueryError
    assert (got.fact, got.hint, got.place) == (sent.fact, sent.hint, sent.place)


def test_an_error_of_ours_itself_is_left_as_it_is() -> None:
    error = RunError("it stopped")
    assert unwrap(error) is error


def test_of_a_foreign_error_the_last_words_are_kept_and_the_log_is_named(tmp_path: Path) -> None:
    got = unwrap(Exception(WORKER), tmp_path / "spark.log")
    assert type(got) is RunError
    assert got.fact == "the run failed: ValueError: invalid literal"
    assert str(tmp_path / "spark.log") in got.hint


def test_without_a_traceback_the_first_line_is_kept() -> None:
    got = unwrap(Exception("[STREAM_FAILED] Query [id = 1] terminated with exception: disk full\n=== Plan ==="))
    assert got.fact == "the run failed: disk full"


def test_other_exceptions_pass_through_carrying() -> None:
    with pytest.raises(KeyError), carrying():
        raise KeyError("a")


def test_a_java_process_that_is_gone_is_named() -> None:
    gone = unwrap(Py4JError("An error occurred while calling o144.isActive"))
    assert gone.fact == "Spark's Java process has ended"
    assert gone.hint is not None and "start again" in gone.hint


def test_a_java_process_that_refuses_is_gone() -> None:
    assert unwrap(ConnectionRefusedError(111, "refused")).fact == "Spark's Java process has ended"


def test_a_full_disk_is_named_wherever_it_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(CarriedError, match=r'out/a.csv" cannot be used: no space left on device'), carrying():
        raise OSError(28, "full", "out/a.csv")
    java = "[STREAM_FAILED] terminated with exception: x\njava.io.IOException: No space left on device\n\tat java.base"
    told = unwrap(Exception(java), tmp_path / "spark.log")
    assert told.fact == f'"{tmp_path}" cannot be used: no space left on device'
    assert told.hint.startswith("Make room on its disk")
    with pytest.raises(BrokenPipeError), carrying():
        raise BrokenPipeError(32, "pipe")


def test_a_secret_in_the_cause_does_not_reach_the_log_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millrace.errors._hidden", {"hunter2-swordfish"})
    for cause, is_shown in (("no hunter2-swordfish", False), ("no such table", True)):
        with pytest.raises(CarriedError) as carried, carrying():
            raise RunError("the writer failed") from ValueError(cause)
        logged = "".join(traceback.format_exception(carried.value))
        assert "the writer failed" in logged and "hunter2" not in logged
        assert (cause in logged) is is_shown


def test_a_lost_process_is_told_from_an_error_of_ours() -> None:
    lost = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
    assert is_lost_process(Exception(lost))
    assert not is_lost_process(Exception(lost + carried(RunError("it stopped"))))
    assert not is_lost_process(Exception(WORKER))
