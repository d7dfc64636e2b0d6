"""A process in which Spark plans or commits is lost, or the clock is set back: the streaming query is started again."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from millrace.errors import RunError
from millrace.hosts.spark.failures import CarriedError, LostProcesses
from millrace.hosts.spark.host import SparkRun
from millrace.hosts.spark.source.network_source import _clock_of

LOST = PySparkException("[STREAM_FAILED] terminated with exception: Stream closed")


def run_that(*ends: BaseException | None) -> Any:
    """A run whose streaming query ends so, one time after the other, without progress."""
    run: Any = object.__new__(SparkRun)
    run._lost, run.log_file, run.tried, left = LostProcesses(), None, 0, list(ends)
    run._query = SimpleNamespace()
    run._committed = SimpleNamespace(newest={"batch": 4})
    run._control = SimpleNamespace(stopping=Event())
    run._look = lambda: None

    def query() -> None:
        run.tried += 1
        if (end := left.pop(0)) is not None:
            raise end

    run._run_query = query
    return run


def test_a_lost_planner_does_not_end_the_run() -> None:
    run = run_that(LOST, LOST, None)
    run._pass(ends=False)
    assert run.tried == 3


def test_planners_that_are_lost_again_and_again_end_it() -> None:
    run = run_that(*[LOST] * 9)
    with pytest.raises(RunError, match="the run failed: Stream closed"):
        run._pass(ends=False)
    assert run.tried == 4
    assert run._lost.may_go_on(LOST, batch=5), "there has been progress since"


def test_an_error_of_ours_and_the_end_of_java_end_it() -> None:
    with pytest.raises(RunError, match="no room"):
        run_that(PySparkException(str(CarriedError(RunError("no room")))))._pass(ends=False)
    with pytest.raises(RunError, match="Java process has ended"):
        run_that(ConnectionRefusedError(111, "refused"))._pass(ends=False)


def test_the_clock_of_an_offset_is_the_latest_that_it_holds() -> None:
    assert _clock_of({"control": {"now": 5}, "streams": {"a": {"now": 9}, "b": {"now": 7}}}) == 9
    assert _clock_of({"control": {"now": 5}, "streams": {}}) == 5
