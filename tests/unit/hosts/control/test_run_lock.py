"""Other threads look at a run between two of its steps, or while it waits, whatever it is at work on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import Event, Thread
from time import sleep

import pyarrow as pa
import pytest

from millrace.hosts.control.run_lock import RunLock
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Report
from millrace.hosts.run_options import RunOptions
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network

SQL = """
CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable REPLAY BY ts;
CREATE STREAM t (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER 2 SECONDS FROM iterable REPLAY BY ts;
CREATE QUERY q WITH (queue = 'inplace', budget = '40 rows') AS SELECT k, v * 2 AS v, ts FROM s WHERE v >= 0;
CREATE QUERY w AS SELECT k, count(*) AS n FROM t [RANGE 2 SECONDS WA ts] GROUP BY k;
"""
HOSTS = pytest.mark.parametrize("host", [LocalRun, VirtualRun])


def rows(first: int, count: int) -> pa.Table:
    """Rows of ever new keys, a hundred a second."""
    numbers = range(first, first + count)
    times = pa.array([number * 10_000 for number in numbers]).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"k": pa.array(numbers, pa.int32()), "v": pa.array(numbers, pa.int32()), "ts": times})


def run_of(host: type[LocalRun | VirtualRun], chunks: int, size: int) -> LocalRun | VirtualRun:
    feeds = {name: [rows(number * size, size) for number in range(chunks)] for name in "st"}
    sql = SQL if host is VirtualRun else SQL.replace(" REPLAY BY ts", "")
    return host(parse_network(sql), RunOptions("local", "available"), feeds=feeds)


def adds_up(report: Report) -> bool:
    """True if every row is in one count of its stream, and of its queue."""
    sources, queues = report.sources.values(), report.queues.values()
    return all(
        each.received == each.processed + each.late + each.quarantined + each.shed + each.superseded + each.buffered
        and each.processed >= 0
        for each in sources
    ) and all(each.entered == each.let_go + each.superseded + each.shed + each.waiting for each in queues)


def watched(run: LocalRun | VirtualRun, look: Callable[[], None], watchers: int = 1) -> None:
    """Let the run work to its end, while threads look again and again."""
    failed, over = list[Exception](), Event()

    def watch() -> None:
        try:
            while not over.is_set():
                look()
        except Exception as error:
            failed.append(error)

    threads = [Thread(target=watch) for _ in range(watchers)]
    for thread in threads:
        thread.start()
    try:
        run.run()
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert not failed, failed


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@HOSTS
def test_whoever_looks_at_any_time_sees_counts_that_add_up(
    host: type[LocalRun | VirtualRun], eager_threads: None
) -> None:
    run, seen = run_of(host, 4, 120), list[int]()

    def look() -> None:
        with run.changes.lock.look():
            report, staleness = run.report(), run.staleness("q")
        assert adds_up(report), report
        assert len(staleness) == report.queues["q"].keys
        run.lag()
        seen.append(report.received)
        sleep(0.002)

    watched(run, look, watchers=2)
    assert min(seen) < 960, "it was looked at while rows came"
    assert run.report().received == 960


@HOSTS
def test_a_look_waits_for_the_end_of_a_step_and_not_for_that_of_a_turn(
    host: type[LocalRun | VirtualRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, steps, looks, at_work = run_of(host, 1, 20), list[bool](), list[int](), Event()
    run.executor.step_size.rows = 1
    step = run.executor._step.run

    def slow(*arguments: object) -> int:
        steps.append(True)
        at_work.set()
        sleep(0.001)
        taken = step(*arguments)  # type: ignore[arg-type]
        steps[-1] = False
        return taken

    monkeypatch.setattr(run.executor._step, "run", slow)
    monkeypatch.setattr(run, "metrics", lambda metrics=run.metrics: (looks.append(len(steps)), metrics())[1])

    def look() -> None:
        assert at_work.wait(60)
        with run.changes.lock.look():
            assert not any(steps)
        run.report()

    watched(run, look)
    assert looks[0] < len(steps) / 2, "there were many more steps"


def test_who_is_interrupted_before_it_looks_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = RunLock()

    class Interrupted(AbstractContextManager[None]):
        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            raise AssertionError("it was not entered")

    monkeypatch.setattr(lock, "_lock", Interrupted())
    with pytest.raises(KeyboardInterrupt), lock.look():
        pass
    assert not lock._looking


def test_a_look_that_fails_is_over() -> None:
    lock = RunLock()
    with pytest.raises(ValueError, match="wrong"), lock.look(), lock.look():
        raise ValueError("wrong")
    assert not lock._looking


def test_a_run_that_waits_is_looked_at_at_once() -> None:
    lock, looked = RunLock(), Event()

    def look() -> None:
        with lock.look():
            looked.set()

    with lock.work(), lock.work():
        with lock.wait():
            Thread(target=look).start()
            assert looked.wait(60)
        assert lock._depth == 2
    with lock.wait():
        pass
