"""Answers are a function of the input alone: not of batching, interleaving, steps, restarts or order within."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import read_schema
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND, without_reserved
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.snapshot import Place
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.nodes.relational_nodes import OrderByTime
from millrace.plan.physical.stages import physical
from millrace.testing import Host
from tests.property.cases import Case, Row, batch, cases, schedules
from tests.reference import multiset

pytestmark = pytest.mark.slow


class Driver:
    """An executor that may be saved and restored between any two pushes."""

    def __init__(self, network: QueryNetwork, rows_per_step: int | None) -> None:
        self.plan = physical(network)
        self.rows_per_step = rows_per_step
        self.executor = self._started()
        self.schemas = {each.name: read_schema(each, self.plan.columns_read(each.name)) for each in network.streams()}
        self.segments: dict[Place, pa.Table] = {}
        self.results: list[Row] = []
        self.bound = NO_BOUND

    def _started(self) -> Executor:
        graph = self.plan.whole()
        # So that operators send their promises as far as the results go, where they are checked.
        graph.nodes["q"].takes_bounds = True
        return Executor(graph, rows_per_step=self.rows_per_step)

    def push(self, stream: str, rows: Sequence[Row], now: int = 0, silent: Sequence[str] = ()) -> None:
        self.executor.push(stream, as_rows(batch(rows), self.schemas[stream], stream), now)
        self.work(now, silent)

    def work(self, now: int = 0, silent: Sequence[str] = ()) -> None:
        self.executor.run(StandingClock(now), silent)
        for batches in self.executor.take(now).values():
            for each in batches:
                assert each.times.min() >= self.bound, "a result is below a bound that was promised before"
                self.results += without_reserved(each.rows).to_pylist()
        before, last = self.bound, self.executor.graph.nodes["q"].inputs[0].producer
        # An operator that is told the bounds of its inputs one by one makes its own promises.
        by_input = last.operator is not None and last.operator.by_input
        self.bound = last.promised if by_input else last.bound
        assert self.bound >= before, "the bound of the results went back"

    def end(self) -> None:
        for stream in self.schemas:
            self.executor.edges.end(stream)
        self.work()

    def restart(self) -> None:
        saved = self.executor.save()
        self.segments.update(saved.added)
        for place in saved.removed:
            del self.segments[place]
        self.executor = self._started()
        self.executor.restore(saved.control, self.segments)


@given(data=st.data(), case=cases(), rows_per_step=st.sampled_from([None, 1, 3]))
def test_batching_interleaving_and_restarts_do_not_change_the_answer(
    data: st.DataObject, case: Case, rows_per_step: int | None
) -> None:
    driver = Driver(case.network, rows_per_step)
    for stream, rows in data.draw(schedules(case.rows)):
        driver.push(stream, rows)
        if data.draw(st.integers(0, 3)) == 0:
            driver.restart()
    driver.end()
    assert multiset(driver.results) == case.expected()
    check_order(case, driver.results)


@given(case=cases())
def test_rows_one_at_a_time_and_all_at_once_give_the_same_answer(case: Case) -> None:
    for size in (1, 1_000):
        driver = Driver(case.network, None)
        for stream, rows in case.rows.items():
            for start in range(0, len(rows), size):
                driver.push(stream, rows[start : start + size])
        driver.end()
        assert multiset(driver.results) == case.expected()


@given(data=st.data(), case=cases())
def test_the_local_and_the_virtual_host_give_the_answer(data: st.DataObject, case: Case) -> None:
    inputs: dict[str, list[pa.Table]] = {stream: [] for stream in case.rows}
    for stream, rows in data.draw(schedules(case.rows)):
        inputs[stream].append(pa.Table.from_batches([batch(rows)]))
    for host in (Host("local"), Host("virtual")):
        found = host.run(case.sql, inputs)["q"]
        assert multiset(found) == case.expected()
        check_order(case, found)


def check_order(case: Case, results: list[dict[str, Any]]) -> None:
    if any(isinstance(node, OrderByTime) for node in walk(case.network.queries[0].root)):
        times = [row["ts"] for row in results]
        assert times == sorted(times)
