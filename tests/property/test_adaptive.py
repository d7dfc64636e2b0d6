"""The adaptive join while rates change: as fast as Filter-Order promises, as small as Sync-Filter (003 section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from millrace.experiments.figures.ordered_joins import (
    ADAPTIVE,
    FILTER,
    SYNC,
    JoinArrivals,
    even,
    network,
    poisson,
    responses,
)
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import Times
from millrace.kernel.joins.in_order.ordered_join import OrderedJoin
from millrace.language import parse_network

pytestmark = pytest.mark.slow

SECOND = 1_000_000
WINDOW = 10.0
PHASE = 60.0
"""Seconds that rates stay: six windows."""
ALPHA = 0.3
LOW, HIGH = (1.0, 5.0), (2.0, 10.0)
"""Rows a second; the product is four times as great."""
PAIR = 2_000
"""Microseconds a pair: c|w|λ1λ2 is 0.1, and then 0.4."""


@dataclass(frozen=True)
class Ran:
    """What came of a run: when fast rows arrived and what they took; when the join held how many rows, and its mode."""

    arrived: Times
    taken: Times
    moments: Times
    held: Times
    modes: list[str]
    results: list[object]

    def slowest(self, phase: int) -> float:
        """The 95th percentile of the response times in a phase, from two windows after its beginning on."""
        return float(np.quantile(self.taken[settled(self.arrived, phase)], 0.95))

    def memory(self, phase: int) -> Times:
        return self.held[settled(self.moments, phase)]

    def modes_in(self, phase: int) -> set[str]:
        places = np.flatnonzero(settled(self.moments, phase))
        return {self.modes[place] for place in places.tolist()}


def settled(times: Times, phase: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    begin, end = phase * PHASE + 2 * WINDOW, (phase + 1) * PHASE
    return (times >= begin * SECOND) & (times < end * SECOND)


class Watched(VirtualRun):
    """A run that notes what its join holds after every event."""

    def watch(self) -> Ran:
        (join,) = (node.operator for node in self.executor.graph.operators() if node.operator is not None
                   and isinstance(node.operator, OrderedJoin))  # fmt: skip
        self.join, self.noted = join, list[tuple[int, int, str]]()
        self.run()
        arrived, taken = responses(self)
        moments, held, modes = zip(*self.noted, strict=True)
        results = [row for each in self.deliveries for row in each.rows.column("ts").cast(pa.int64()).to_pylist()]
        return Ran(arrived, taken, np.array(moments), np.array(held), list(modes), results)

    def _event(self) -> bool:
        went_on = super()._event()
        self.noted.append((self.clock.time, self.join.held, self.join.mode))
        return went_on


def phases(at_random: bool) -> JoinArrivals:
    """Low rates, high ones, and low ones again."""
    parts = [poisson(*rates, PHASE, seed) if at_random else even(*rates, PHASE)
             for seed, rates in enumerate((LOW, HIGH, LOW))]  # fmt: skip
    starts = [round(number * PHASE * SECOND) for number in range(len(parts))]
    return JoinArrivals(
        np.concatenate([part.slow + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.fast + start for part, start in zip(parts, starts, strict=True)]),
    )


@pytest.fixture(scope="module")
def ran() -> dict[str, Ran]:
    return {method: watched(method, phases(at_random=False)) for method in (SYNC, FILTER, ADAPTIVE)}


def watched(method: str, arrivals: JoinArrivals) -> Ran:
    network_ = parse_network(network(method, WINDOW, ALPHA))
    return Watched(network_, feeds=arrivals.feeds(), cost=Costs(pair=PAIR), rows_per_step=1).watch()


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_two_windows_after_a_change_the_adaptive_join_responds_as_alpha_promises(
    ran: dict[str, Ran], phase: int
) -> None:
    assert ran[ADAPTIVE].slowest(phase) <= (1 + ALPHA) * ran[FILTER].slowest(phase)


def test_without_adapting_the_promise_would_be_broken(ran: dict[str, Ran]) -> None:
    assert np.mean(ran[SYNC].taken[settled(ran[SYNC].arrived, 1)]) > (1 + ALPHA) * np.mean(
        ran[ADAPTIVE].taken[settled(ran[ADAPTIVE].arrived, 1)]
    )


@pytest.mark.parametrize("phase", [0, 2])
def test_at_low_rates_the_adaptive_join_holds_as_little_as_sync_filter(ran: dict[str, Ran], phase: int) -> None:
    for measure in (np.max, np.mean):
        assert measure(ran[ADAPTIVE].memory(phase)) <= 1.1 * measure(ran[SYNC].memory(phase))


def test_it_changes_its_method_with_the_rates(ran: dict[str, Ran]) -> None:
    assert [ran[ADAPTIVE].modes_in(phase) for phase in range(3)] == [{"sync_filter"}, {"filter_order"}, {"sync_filter"}]
    assert "draining" in ran[ADAPTIVE].modes


def test_all_methods_give_the_same_results_in_the_same_order(ran: dict[str, Ran]) -> None:
    assert ran[SYNC].results == ran[FILTER].results == ran[ADAPTIVE].results
    assert ran[SYNC].results == sorted(ran[SYNC].results, key=int)


def test_with_rows_at_random_it_still_goes_there_and_back() -> None:
    found = watched(ADAPTIVE, phases(at_random=True))
    assert "filter_order" in found.modes_in(1) and "sync_filter" in found.modes_in(2)
    assert found.results == sorted(found.results, key=int)
