"""The benchmarks of update queues at a small size: the same rows leave them all, and staleness is what it is."""

from __future__ import annotations

import doctest
import importlib
import math
import os
from pathlib import Path
from random import Random
from threading import Event, current_thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.measures import observed_staleness
from bench.measures.answers import WrongAnswers
from bench.measures.memory import resident
from bench.measures.observed_staleness import stale_for
from bench.queries.latest_values import check_latest, write_latest
from bench.systems.engines import Task
from bench.systems.engines import local as local_engine
from bench.systems.queue_speed import KEEPERS, Load, bytes_a_key, measured
from bench.workloads import stale_quotes
from bench.workloads.stale_quotes import Overload, local, table
from tests.counted_clock import CountedClock

pytestmark = pytest.mark.slow

LOADS = [Load(keys, batch, rows=600) for keys in (5, 300) for batch in (1, 7, 1_000)]


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_the_same_rows_leave_the_queue_and_the_dicts(load: Load) -> None:
    first, *others = (measured(name, load) for name in KEEPERS)
    assert all(first.answers) and all(each.answers == first.answers for each in others)
    assert min(first.entered, first.left) > 0


@pytest.mark.skipif(
    not resident(os.getpid()), reason="the system does not say what memory a process has; runs on Linux"
)
@pytest.mark.parametrize("name", KEEPERS)
def test_a_key_that_waits_costs_memory(name: str) -> None:
    waiting, _ = bytes_a_key(name, 100_000)
    assert waiting > 20


def test_the_last_values_of_an_update_query_are_checked(tmp_path: Path) -> None:
    task = Task(write_latest(tmp_path / "in", files=3, size=2_000, keys=100), tmp_path / "runs", 1, files_per_batch=1)
    local_engine(task, "local host")
    output = task.output("local host", 1)
    assert check_latest(task.workload, output, "local host") == 100
    newest = max(output.glob("part-*.parquet"))
    rows = pq.read_table(newest)
    pq.write_table(rows.slice(0, rows.num_rows - 1), newest)
    with pytest.raises(WrongAnswers, match="not its last"):
        check_latest(task.workload, output, "local host")


@pytest.mark.parametrize("seed", range(20))
def test_staleness_from_outside_is_that_of_looking_at_every_microsecond(seed: int) -> None:
    draw, until = Random(seed), 200
    due = sorted(draw.sample(range(150), draw.randrange(1, 12)))
    moments = sorted(draw.sample(range(due[0], 199), draw.randrange(0, 9)))
    reached = sorted(draw.randrange(sum(each <= moment for each in due) + 1) for moment in moments)
    # A result cannot be newer than what had come.
    reached = [min(many, sum(each <= moment for each in due)) for many, moment in zip(reached, moments, strict=True)]
    total = 0.0
    for at in range(due[0], until):
        # In the middle of the microsecond, so that the sum is the integral.
        have = max((many for moment, many in zip(moments, reached, strict=True) if moment <= at), default=0)
        total += at + 0.5 - due[have] if have < len(due) and due[have] <= at else 0.0
    found = stale_for(np.array(due), np.array(moments, np.int64), np.array(reached, np.int64), until)
    assert found == pytest.approx(total / (until - due[0]))


class UntilItsEnd(CountedClock):
    """Stands still at its end, for which the thread that made it waits."""

    def __init__(self, seconds: float) -> None:
        self._end, self._asker, self._reached = math.inf, current_thread(), Event()
        super().__init__()
        self._end = self.time + round(seconds * 1e6)

    @property
    def time(self) -> int:
        return self._time

    @time.setter
    def time(self, time: int) -> None:
        self._time = min(time, self._end)
        if self._time == self._end:
            self._reached.set()

    def wait(self, woken: Event, seconds: float) -> None:
        if current_thread() is self._asker:
            assert self._reached.wait(300)
        else:
            super().wait(woken, seconds)


def test_staleness_seen_from_outside_is_what_the_queue_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(stale_quotes.EXAMPLES))
    count = 6_000
    columns = {"venue": ["v"] * count, "symbol": [str(row % 4) for row in range(count)]}
    times = pa.array(np.arange(count) * 1_000).cast(pa.timestamp("us", tz="UTC"))
    quotes = pa.table({**columns, "bid": np.ones(count), "ask": np.ones(count), "ts": times})
    found = {}

    def middle(bid: float, ask: float, micros: int) -> float:
        clock.time += micros
        return (bid + ask) / 2

    monkeypatch.setattr(importlib.import_module("slow_quotes"), "middle", middle)
    for queue in ("append", "inplace"):
        (tmp_path / queue).mkdir()
        clock = UntilItsEnd(3.0)
        overload = Overload(quotes, tmp_path / queue, speed=1.0, micros=4_000, seconds=3.0, clock=clock)
        found[queue] = local(overload, queue)
    assert found["append"].mean > 3 * found["inplace"].mean
    for each in found.values():
        told = sum(each.by_queue.values()) / len(each.by_queue)
        # What is made of results until they are handed on is not in both.
        assert each.mean == pytest.approx(told, rel=1e-3)
    assert len(table(found)) == 1 + 4 + 2


def test_what_the_benchmarks_show_in_their_documentation() -> None:
    assert not doctest.testmod(stale_quotes).failed
    assert not doctest.testmod(observed_staleness).failed
